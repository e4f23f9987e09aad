"""How many GPUs the model takes: the numbers of its table give sensible answers."""

from __future__ import annotations

import dataclasses

import pytest

from cpufree.engines.gpu_choice import (
    MODEL,
    Model,
    Size,
    candidates,
    choose,
    fits,
    latency,
    memory_each,
    predict,
)
from cpufree.errors import OutOfMemoryError

FREE = 139 * 2**30
# Round numbers, whatever the measured ones are.
GIVEN = dataclasses.replace(
    MODEL,
    memory_bandwidth=3e12,
    chip_bandwidth=12e12,
    chip_bytes=25e6,
    latency={1: 5.0e-6, 2: 6.5e-6, 4: 7.0e-6, 8: 8.0e-6},
)


def count_of(size: Size, gpus: int, model: Model = MODEL) -> int:
    """Return how many of so many idle GPUs are chosen."""
    return len(choose(size, range(gpus), lambda _: FREE, model)[0])


def system(rows: int, per_row: int = 7, value_bytes: int = 8) -> Size:
    """Return the size of a system with so many entries per row."""
    return Size(rows, rows * per_row, value_bytes)


def test_prediction_is_bytes_over_bandwidth_plus_latency() -> None:
    size = Size(10_000_000, 70_000_000, 8)
    moved = 12 * size.nnz + 100 * size.rows
    assert predict(size, 1, GIVEN) == pytest.approx(moved / 3e12 + 5.0e-6)
    assert predict(size, 4, GIVEN) == pytest.approx(moved / 4 / 3e12 + 7.0e-6)


def test_share_that_fits_on_chip_moves_at_the_bandwidth_of_the_chip() -> None:
    size = Size(100_000, 1_250_000, 8)  # 25 MB to the byte
    assert predict(size, 1, GIVEN) == pytest.approx(25e6 / 12e12 + 5.0e-6)
    larger = Size(100_000, 1_250_001, 8)
    assert predict(larger, 1, GIVEN) == pytest.approx(25e6 / 3e12 + 5.0e-6)
    assert predict(larger, 2, GIVEN) == pytest.approx(12.5e6 / 12e12 + 6.5e-6)


def test_float32_moves_fewer_bytes() -> None:
    size = Size(10_000_000, 70_000_000, 4)
    assert predict(size, 1, GIVEN) == pytest.approx((8 * 7e7 + 60 * 1e7) / 3e12 + 5.0e-6)


@pytest.mark.parametrize(
    ("gpus", "seconds"), [(1, 5.0e-6), (2, 6.5e-6), (3, 6.75e-6), (6, 7.5e-6), (16, 10.0e-6)]
)
def test_latency_lies_on_the_lines_of_the_table(gpus: int, seconds: float) -> None:
    assert latency(gpus, GIVEN) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("there", "compared"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (6, [1, 2, 4, 6])],
)
def test_powers_of_two_and_all_are_compared(there: int, compared: list[int]) -> None:
    assert candidates(there) == compared


def test_small_systems_get_one_gpu_and_large_ones_all() -> None:
    assert count_of(system(10_000), 8) == 1
    assert count_of(system(20_000_000), 8) == 8


def test_number_of_gpus_grows_with_the_system() -> None:
    counts = [count_of(system(10**k), 8) for k in range(3, 9)]
    assert counts == sorted(counts)


@pytest.mark.parametrize(("saved", "taken"), [(0.149, 1), (0.151, 2)])
def test_more_gpus_are_taken_from_a_gain_of_15_percent_on(saved: float, taken: int) -> None:
    size = Size(1, 1, 8)
    idle = dataclasses.replace(MODEL, latency={1: 1.0, 2: 1.0 - saved})
    assert count_of(size, 2, idle) == taken


def test_small_gains_that_add_up_are_taken_as_far_as_they_pay() -> None:
    # 1 -> 4 saves 26 %, but 2 -> 4 only 14 %: two suffice.
    idle = dataclasses.replace(MODEL, latency={1: 1.0, 2: 0.86, 4: 0.74})
    assert count_of(Size(1, 1, 8), 4, idle) == 2


def test_why_tells_the_times_that_were_compared() -> None:
    why = choose(system(20_000_000), [0, 1], lambda _: FREE, GIVEN)[1]
    assert why == "predicted 620 µs per iteration, 1.23 ms on 1"


def test_memory_holds_the_matrix_and_14_vectors() -> None:
    assert memory_each(Size(1000, 7000, 8), 2) == (14 * 7000 + 14 * 8 * 1000) / 2
    assert memory_each(Size(1000, 7000, 4), 1) == 10 * 7000 + 14 * 4 * 1000


def test_85_percent_of_the_free_memory_may_be_used() -> None:
    size = Size(1000, 7000, 8)  # 210 kB
    assert fits(size, 1, 247_100)
    assert not fits(size, 1, 247_000)
    assert fits(size, 2, 123_600)


def test_more_gpus_are_taken_than_pay_where_the_memory_asks_for_them() -> None:
    chosen, why = choose(Size(1000, 7000, 8), range(4), lambda _: 100_000)
    assert chosen == [0, 1, 2, 3]
    assert why.endswith("no room on 2")


def test_full_gpus_are_passed_over() -> None:
    free = {0: 1000, 1: FREE, 2: FREE}
    assert choose(Size(1000, 7000, 8), [0, 1, 2], free.__getitem__)[0] == [1]


def test_gpus_that_are_not_needed_are_not_asked() -> None:
    asked: list[int] = []

    def free(gpu: int) -> int:
        asked.append(gpu)
        return FREE

    choose(system(10_000), range(8), free)
    assert asked == [0]


def test_no_gpu_is_asked_twice() -> None:
    asked: list[int] = []

    def free(gpu: int) -> int:
        asked.append(gpu)
        return 100_000

    choose(Size(1000, 7000, 8), range(4), free)
    assert asked == [0, 1, 2, 3]


def test_system_too_large_for_all_is_refused_with_the_numbers() -> None:
    size = Size(10**9, 7 * 10**9, 8)
    with pytest.raises(OutOfMemoryError) as caught:
        choose(size, range(2), lambda _: 80 * 2**30)
    message = str(caught.value)
    assert "about 97.8 GiB on each of 2 GPUs" in message
    assert "68 GiB" in message
    assert "85%" in message
    assert "cpu_threads" in message
