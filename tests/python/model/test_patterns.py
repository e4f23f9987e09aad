"""Patterns of messages: what they are, what they take, what is predicted, how that is judged."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from fake_core import FakeCore
from synthetic_samples import LOGGOP, rows_of, samples_of

from cpufree.cli.model.pattern_halos import halos_of
from cpufree.errors import FileFormatError
from cpufree.machine.communication import Communication
from cpufree.model.fit import fit
from cpufree.model.patterns import measure as patterns
from cpufree.model.patterns.measure import Place, many_to_one, measure_patterns, ring, sharing
from cpufree.model.patterns.messages import Message, Messages, owner
from cpufree.model.patterns.predict import predict_pattern
from cpufree.model.patterns.validate import check_patterns
from cpufree.model.samples import PatternSample, read_samples, write_samples
from cpufree.model.validate import validate

pytestmark = pytest.mark.usefixtures("few_replicates")
SLOWER = dataclasses.replace(LOGGOP, L=4 * LOGGOP.L)


@pytest.fixture(scope="module")
def machine() -> Communication:
    """Return a machine on which messages between GPUs take longer than on one GPU."""
    found = fit(samples_of(rows_of(LOGGOP, "near") + rows_of(SLOWER, "far")))
    near = ("threads-store", "threads-get", "shared-store-block", "shared-get", "shared-copy")
    far = ("device-store-block", "device-get", "host-copy", "host-copy-get")
    ways = {name: found.ways[k] for k, names in (("near", near), ("far", far)) for name in names}
    return dataclasses.replace(found, ways=ways)


def sample(pattern: str, pes: int, size: int = 4096, **more: object) -> PatternSample:
    table = more.pop("table", ())
    made = PatternSample(pattern, "threads", pes, (), size, tuple(table), 0.0, (1e-5,) * 3)
    return dataclasses.replace(made, **more)


def message(machine: Communication, size: int = 4096) -> tuple[float, float]:
    one = Messages(machine, sample("ring", 2), False).of(0, 1, size)
    return one.single, one.further


def test_a_ring_takes_a_message_and_many_to_one_a_message_and_what_others_add(
    machine: Communication,
) -> None:
    single, further = message(machine)
    found = predict_pattern(machine, sample("ring", 5, table=ring(5, 4096)))
    assert found == pytest.approx(single)
    found = predict_pattern(machine, sample("many to one", 5, table=many_to_one(5, 4096)))
    assert found == pytest.approx(single + 3 * further)


def test_messages_of_one_sender_follow_one_another(machine: Communication) -> None:
    single, further = message(machine)
    table = (0, 4096, 4096, 0, 0, 0, 0, 0, 0)
    assert predict_pattern(machine, sample("halos", 3, table=table)) == pytest.approx(
        single + further
    )


def test_what_a_round_takes_without_messages_is_added(machine: Communication) -> None:
    ringed = sample("ring", 5, table=ring(5, 4096))
    bare = predict_pattern(machine, ringed)
    found = predict_pattern(machine, dataclasses.replace(ringed, alone=3e-6, apart=1e-6))
    assert bare is not None and found == pytest.approx(bare + 3e-6)


def test_gpus_that_take_several_messages_spend_the_receivers_overhead_on_each(
    machine: Communication,
) -> None:
    table = many_to_one(5, 4096)
    shared = sample("many to one", 5, table=table, engine="gpus", gpus=(0,) * 5)
    one = Messages(machine, shared, False).of(1, 0, 4096)
    assert one.taken == machine.ways["shared-store-block"].parameters["o_recv"].value
    assert predict_pattern(machine, shared) == pytest.approx(one.single + 3 * one.taken)


def test_stores_on_a_gpu_whose_other_pes_store_to_another_one_take_as_long(
    machine: Communication,
) -> None:
    for gpus, gets, way in (
        ((0, 0), False, "shared-store-block"),
        ((0, 0, 1, 1), False, "device-store-block"),
        ((0, 0, 1, 1), True, "shared-get"),  # no fence
    ):
        ring = sample("ring", len(gpus), engine="gpus", gpus=gpus)
        assert Messages(machine, ring, gets).way(0, 1) == way


def driven(pattern: str, gpus: tuple[int, ...], **more: object) -> PatternSample:
    return sample(f"{pattern}, host-driven", len(gpus), engine="gpus", gpus=gpus, **more)


def copy(machine: Communication, product: PatternSample, size: int = 4096) -> Message:
    return Messages(machine, product, "gets" in product.pattern).of(0, 1, size)


def test_a_host_waits_for_each_copy_of_a_product(machine: Communication) -> None:
    gets = driven("product, gets", (0, 1, 2, 3))  # no way between GPUs is shared
    one = copy(machine, gets)
    assert predict_pattern(machine, gets) == pytest.approx(2 * one.single)
    # PE 1 waits for the second tile that PE 3 puts, and then puts one that PE 0 waits for.
    puts = driven("product, puts", (0, 1, 2, 3))
    assert predict_pattern(machine, puts) == pytest.approx(3 * one.single)


def test_copies_of_pes_on_the_same_gpus_share_the_way_between_them(
    machine: Communication,
) -> None:
    size = 1 << 20
    alone = driven("product, gets", (0, 1, 2, 3), size=size)
    two = driven("product, gets", (0, 0, 1, 1), size=size)
    near = driven("product, gets", (0, 0, 0, 0), size=size)
    one, close = copy(machine, alone, size), copy(machine, near, size)
    assert predict_pattern(machine, alone) == pytest.approx(2 * one.single)
    # In a step four tiles go, all of them the same way where there is one GPU.
    crowded = predict_pattern(machine, near)
    assert crowded is not None and crowded > 2 * close.single + 2 * close.further
    between = predict_pattern(machine, two)
    assert between is not None and crowded > between > 2 * one.single


def test_copies_that_the_host_queues_follow_one_another(machine: Communication) -> None:
    product = driven("product, gets overlapped", tuple(range(9)), alone=3e-12)
    one = copy(machine, product)
    found = predict_pattern(machine, product)
    assert found == pytest.approx(one.single + 3 * one.further, rel=1e-3)


def test_compute_hides_the_copies_that_the_host_queues(machine: Communication) -> None:
    for verb in ("gets", "puts"):
        product = driven(f"product, {verb} overlapped", tuple(range(4)))
        one = copy(machine, product)
        long = 1000 * one.single
        found = predict_pattern(machine, dataclasses.replace(product, alone=2 * long))
        # But those of the first step, which are two at most.
        assert found == pytest.approx(2 * long + one.single + one.further)


def test_products_whose_threads_take_turns_are_no_test_of_the_model(
    machine: Communication,
) -> None:
    given = samples_of(rows_of(LOGGOP, "shared-copy"))
    product = driven("product, gets", (0,) * 4, alone=1e-6)
    for cores, aside in ((2, True), (4, False)):
        samples = dataclasses.replace(given, machine={"cores": cores}, patterns=(product,))
        (check,) = check_patterns(machine, samples)
        assert bool(check.aside) is aside and check.pattern == "product, gets, host-driven"


def test_who_computes_faster_waits_for_tiles_that_others_put(machine: Communication) -> None:
    product = sample("product, puts", 4, alone=1e-5)
    bare = predict_pattern(machine, product)
    found = predict_pattern(machine, dataclasses.replace(product, apart=4e-6))
    assert bare is not None and found == pytest.approx(bare + 4e-6)


def test_pes_on_gpus_wait_in_each_step_for_the_slowest_one(machine: Communication) -> None:
    for pes, steps in ((4, 2), (9, 3)):
        product = sample("product, puts", pes, engine="gpus", gpus=(0,) * pes, alone=1e-5)
        bare = predict_pattern(machine, product)
        found = predict_pattern(machine, dataclasses.replace(product, apart=4e-6))
        assert bare is not None and found == pytest.approx(bare + steps**0.5 * 4e-6)


def test_tiles_that_a_second_block_of_a_gpu_moves_are_passed_on_by_messages(
    machine: Communication,
) -> None:
    product = sample("product, gets overlapped", 4, engine="gpus", gpus=(0,) * 4, alone=3e-12)
    get = Messages(machine, product, True).of(0, 1, 4096).single
    passed = Messages(machine, product, False).of(0, 0, 8)
    # By its first message the second block begins; two tiles follow, the last one seen at once.
    found = predict_pattern(machine, product)
    assert found == pytest.approx(2 * passed.single + 2 * get + passed.further, rel=1e-3)


@pytest.mark.parametrize(("pes", "count"), [(4, 2), (9, 4), (16, 6)])
def test_a_product_gets_all_tiles_but_its_own(machine: Communication, pes: int, count: int) -> None:
    single, _ = message(machine)
    found = predict_pattern(machine, sample("product, gets", pes))
    assert found == pytest.approx(count * single)


def test_no_two_pes_of_a_row_or_column_need_the_same_tile_in_a_step() -> None:
    for side in (2, 3, 4):
        for step in range(side):
            for which in (0, 1):
                owners = [owner(pe, side, step, which) for pe in range(side**2)]
                assert sorted(owners) == list(range(side**2))


def test_compute_hides_all_messages_but_the_first(machine: Communication) -> None:
    single, _ = message(machine)
    long = 1000 * single
    for verb in ("gets", "puts"):
        product = sample(f"product, {verb} overlapped", 4, alone=2 * long)
        found = predict_pattern(machine, product)
        assert found is not None and 2 * long <= found <= 2 * long + 3 * single


def test_messages_hide_all_compute_but_the_last(machine: Communication) -> None:
    single, _ = message(machine)
    product = sample("product, gets overlapped", 9, alone=3e-12)
    assert predict_pattern(machine, product) == pytest.approx(4 * single, rel=1e-3)


def test_puts_block_for_one_message_and_the_next(machine: Communication) -> None:
    single, further = message(machine)
    found = predict_pattern(machine, sample("product, puts", 4))
    assert found is not None and single <= found <= 2 * (single + further)


def test_messages_on_one_gpu_are_those_of_pes_that_share_one(machine: Communication) -> None:
    table = ring(4, 4096)
    apart = sample("ring", 4, table=table, engine="gpus", gpus=(0, 1, 2, 3))
    together = dataclasses.replace(apart, gpus=(0, 0, 0, 0))
    near, far = predict_pattern(machine, together), predict_pattern(machine, apart)
    assert near is not None and far is not None and far > near + 2 * LOGGOP.L


def test_ways_that_are_not_known_predict_nothing() -> None:
    other = fit(samples_of(rows_of(LOGGOP, "w")))
    assert predict_pattern(other, sample("ring", 2, table=ring(2, 8))) is None


def test_gpus_are_shared_by_neighbours() -> None:
    assert sharing((0, 1), 4) == (0, 0, 1, 1)
    assert sharing((3,), 3) == (3, 3, 3)


def test_halos_are_what_other_parts_read() -> None:
    table = np.array(halos_of("gen:poisson2d?nx=8,ny=8")(2)).reshape(2, 2)
    assert table[0, 0] == table[1, 1] == 0
    assert table[0, 1] == table[1, 0] == 8 * 8  # one row of the grid either way


def test_patterns_are_measured_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "places", lambda engine: ([Place(engine, 4)], ""))
    monkeypatch.setattr(patterns, "MESSAGES", (8, 1024))
    monkeypatch.setitem(patterns.TILES, "threads", (4, 8))
    found, lacking = measure_patterns({"A": lambda pes: ring(pes, 56)}, 60.0, ["threads"])
    assert not lacking
    names = [one.pattern for one in found]
    assert {*names} == {"ring", "many to one", "halos of A", *patterns.PRODUCTS}
    assert names.count("product, puts overlapped") == 2
    assert all(len(one.seconds) == patterns.REPEATS for one in found)
    assert all(min(one.seconds) > 0.0 for one in found)
    assert all(0.0 <= one.apart <= one.alone and one.alone > 0.0 for one in found)


class DrivenCore(FakeCore):
    """A core whose products take a microsecond a step, of which a tenth is moving."""

    class HostProduct:
        def __init__(self, gpus: list[int], most_rows: int) -> None:
            self.pes, self.most_rows = len(gpus), most_rows

        def multiply(self, tile: int, *order: object) -> list[float]:
            puts, overlapped, local, _, repeats, limit = order
            assert tile % 32 == 0 and tile <= self.most_rows and limit
            spent = 1e-6 * (3 if local else 4 + bool(puts))
            moving = 0.0 if overlapped or local else 0.1 * spent
            return [spent] * (self.pes * repeats) + [moving] * (self.pes * repeats)

    class Probe(HostProduct):
        def __init__(self, pes: int, blocks: int, room: int, **_: object) -> None:
            super().__init__([0] * pes, room)

        def multiply(self, tile: int, *order: object) -> list[float]:
            return super().multiply(32 * -(-tile // 32), *order)

        def disturbances(self) -> int:
            return 0


def test_products_on_gpus_are_driven_by_kernels_and_by_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cpufree._core", DrivenCore())
    found = patterns._products(Place("gpus", 4, (0, 0, 1, 1)))
    by_name: dict[str, list[PatternSample]] = {}
    for one in found:
        by_name.setdefault(one.pattern, []).append(one)
    assert {*by_name} == {*patterns.PRODUCTS, *(f"{n}, host-driven" for n in patterns.PRODUCTS)}
    blocking = by_name["product, puts, host-driven"][0]
    assert blocking.seconds[0] == pytest.approx(5e-7) and blocking.alone == pytest.approx(3e-6)
    overlapped = by_name["product, gets overlapped, host-driven"][-1]
    assert overlapped.bytes == 8 * 1024**2 and overlapped.seconds[0] == pytest.approx(4e-6)
    # By kernels: what is computed in a product by gets, without what is moved.
    assert by_name["product, puts"][0].alone == pytest.approx(0.9 * 4e-6)


def test_patterns_end_when_their_time_is_over_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "places", lambda engine: ([Place(engine, 2)], ""))
    found, lacking = measure_patterns({}, -1.0, ["threads"])
    assert not found and lacking == {"patterns on 2 PEs, threads": "-1 s were over"}


def test_machines_without_gpus_lack_patterns_on_them() -> None:
    found, lacking = measure_patterns({}, 60.0, ["gpus"])
    if not found:
        assert lacking["patterns on gpus"]


def test_patterns_are_read_as_they_were_written(tmp_path: Path) -> None:
    both = (
        sample("ring", 2, table=ring(2, 8)),
        sample("product, gets", 4, alone=1e-6, engine="gpus", gpus=(0, 0, 1, 1)),
    )
    given = dataclasses.replace(samples_of(rows_of(LOGGOP, sizes=(8, 24))), patterns=both)
    write_samples(tmp_path / "s.jsonl", given)
    assert read_samples(tmp_path / "s.jsonl").patterns == both


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("table", [8, 8, 8], ": .*must be for the 2 PEs, or empty"),
        ("gpus", [0], ": .*must be for the 2 PEs, or empty"),
        ("alone", -1.0, ": .*both must be times"),
        ("apart", 1.0, ": .*at most as long as the second"),
        ("engine", "abacus", r"\.engine: .*must be one of threads, gpus"),
        ("seconds", [0.0] * 3, r"\.seconds: .*times must be above 0"),
        ("pes", 1, r"\.pes: .*must be a whole number from 2"),
    ],
)
def test_damaged_patterns_are_refused_with_their_line(
    tmp_path: Path, name: str, value: object, message: str
) -> None:
    path = tmp_path / "s.jsonl"
    ringed = sample("ring", 2, table=ring(2, 8))
    rows = rows_of(LOGGOP, sizes=(8,), modes=("single",))
    write_samples(path, dataclasses.replace(samples_of(rows), patterns=(ringed,)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[2][name] = value
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(FileFormatError, match=rf"line 3{message}"):
        read_samples(path)


def rings(machine: Communication, factor: float, cores: int) -> tuple[PatternSample, ...]:
    """Return rings that take `factor` times as long as predicted."""
    made = []
    for size in (8, 1024, 65536):
        one = sample("ring", 2, size, table=ring(2, size))
        predicted = predict_pattern(machine, one)
        assert predicted is not None
        made.append(dataclasses.replace(one, seconds=(factor * predicted,) * 3))
    return tuple(made)


@pytest.mark.parametrize(("factor", "passed"), [(1.0, True), (1.2, True), (2.0, False)])
def test_patterns_are_judged_by_their_error(
    machine: Communication, factor: float, passed: bool
) -> None:
    rows = rows_of(LOGGOP, "threads-store", noise=0.0)
    given = dataclasses.replace(samples_of(rows), patterns=rings(machine, factor, 2))
    (check,) = validate(machine, given).patterns
    assert check.passed is passed and not check.aside
    assert check.error == pytest.approx(abs(1 / factor - 1), rel=1e-6)
    assert validate(machine, given).verdicts[-1] is passed


def test_threads_that_take_turns_are_no_test_of_the_model(machine: Communication) -> None:
    rows = rows_of(LOGGOP, "threads-store", noise=0.0)
    given = dataclasses.replace(
        samples_of(rows), patterns=rings(machine, 50.0, 1), machine={"cores": 1}
    )
    (check,) = check_patterns(machine, given)
    assert check.aside == "threads take turns on 1 cores"
    assert validate(machine, given).groups["patterns"] == []
