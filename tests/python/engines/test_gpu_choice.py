"""How many GPUs the model takes: the numbers of its table give sensible answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cpufree.engines.gpu_choice import Size, candidates, choose, fits
from cpufree.errors import OutOfMemoryError

FREE = 139 * 2**30
LATENCY = {1: 5.0e-6, 2: 6.5e-6, 4: 7.0e-6, 8: 8.0e-6}


def seconds_of(size: Size, latency: dict[int, float] = LATENCY) -> Callable[[int], float]:
    """Return the seconds of an iteration on GPUs of 3 TB/s."""
    return lambda gpus: size.moved / gpus / 3e12 + latency[gpus]


def flat(gpus: int) -> float:
    """Return the same seconds for any number of GPUs."""
    return 1.0


def count_of(size: Size, gpus: int, latency: dict[int, float] = LATENCY) -> int:
    """Return how many of a number of idle GPUs are chosen."""
    return len(choose(size, range(gpus), lambda _: FREE, seconds_of(size, latency))[0])


def system(rows: int, per_row: int = 7, value_bytes: int = 8) -> Size:
    """Return the size of a system with a number of entries per row."""
    return Size(rows, rows * per_row, value_bytes)


def test_iteration_moves_values_columns_and_vectors() -> None:
    assert Size(10, 70, 8).moved == 12 * 70 + 100 * 10
    assert Size(10, 70, 4).moved == 8 * 70 + 52 * 10


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
    assert count_of(Size(1, 1, 8), 2, {1: 1.0, 2: 1.0 - saved}) == taken


def test_small_gains_that_add_up_are_taken_as_far_as_they_pay() -> None:
    # 1 -> 4 saves 26 %, but 2 -> 4 only 14 %: two suffice.
    assert count_of(Size(1, 1, 8), 4, {1: 1.0, 2: 0.86, 4: 0.74}) == 2


def test_why_tells_the_times_that_were_compared() -> None:
    size = system(20_000_000)
    why = choose(size, [0, 1], lambda _: FREE, seconds_of(size))[1]
    assert why == "predicted 620 µs per iteration, 1.23 ms on 1"


def test_memory_holds_the_matrix_and_14_vectors() -> None:
    assert Size(1000, 7000, 8).stored == 14 * 7000 + 14 * 8 * 1000
    assert Size(1000, 7000, 4).stored == 10 * 7000 + 14 * 4 * 1000


def test_85_percent_of_the_free_memory_may_be_used() -> None:
    size = Size(1000, 7000, 8)  # 210 kB
    assert fits(size, 1, 247_100)
    assert not fits(size, 1, 247_000)
    assert fits(size, 2, 123_600)


def test_more_gpus_are_taken_than_pay_where_the_memory_asks_for_them() -> None:
    chosen, why = choose(Size(1000, 7000, 8), range(4), lambda _: 100_000, flat)
    assert chosen == [0, 1, 2, 3]
    assert why.endswith("no room on 2")


def test_full_gpus_are_passed_over() -> None:
    free = {0: 1000, 1: FREE, 2: FREE}
    assert choose(Size(1000, 7000, 8), [0, 1, 2], free.__getitem__, flat)[0] == [1]


def test_gpus_that_are_not_needed_are_not_asked() -> None:
    asked: list[int] = []

    def free(gpu: int) -> int:
        asked.append(gpu)
        return FREE

    choose(system(10_000), range(8), free, flat)
    assert asked == [0]


def test_no_gpu_is_asked_twice() -> None:
    asked: list[int] = []

    def free(gpu: int) -> int:
        asked.append(gpu)
        return 100_000

    choose(Size(1000, 7000, 8), range(4), free, flat)
    assert asked == [0, 1, 2, 3]


def test_system_too_large_for_all_is_refused_with_the_numbers() -> None:
    size = Size(10**9, 7 * 10**9, 8)
    with pytest.raises(OutOfMemoryError) as caught:
        choose(size, range(2), lambda _: 80 * 2**30, flat)
    message = str(caught.value)
    assert "about 97.8 GiB on each of 2 GPUs" in message
    assert "68 GiB" in message
    assert "85%" in message
    assert "cpu_threads" in message
