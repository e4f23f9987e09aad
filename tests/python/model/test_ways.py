"""Measurements between two processes: what is measured, and what happens when one is gone."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from cpufree.errors import EngineError, InvalidInputError
from cpufree.model import measure
from cpufree.model.measure import Plan, steps_of, with_sizes
from cpufree.model.samples import MODES
from cpufree.model.ways import catalog as ways
from cpufree.model.ways import pipe_peer as peer
from cpufree.model.ways.catalog import WAYS, PipeWay, ProcessWay, SocketWay, find_ways

SMALL = Plan((8, 24, 4096), (24,), (4,), 1 << 20, rounds=3, seconds=60.0, repeats=2)


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[ProcessWay]:
    """Return an open way."""
    made: ProcessWay = request.param()
    made.open()
    yield made
    made.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 8, 100_000])
def test_all_modes_take_a_time_in_any_order(way: ProcessWay, mode: str, size: int) -> None:
    for other in (mode, *MODES):
        taken = way.time(other, min(size, 8192), 3 if other == "window" else 1)
        assert 0.0 < taken < 5.0


def test_messages_larger_than_any_buffer_arrive(way: ProcessWay) -> None:
    assert 0.0 < way.time("single", 1 << 22, 1) < 5.0


@pytest.mark.parametrize("size", [0, peer.MOST_BYTES + 1])
def test_sizes_that_a_way_cannot_send_are_refused(way: ProcessWay, size: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"way {way.name} cannot send messages of {size}"):
        way.time("single", size, 1)
    assert way.time("single", 8, 1) > 0.0  # and the way still works


def test_a_process_that_is_gone_is_an_error(way: ProcessWay) -> None:
    assert way._process is not None
    way._process.kill()
    way._process.wait()
    for mode in MODES:
        with pytest.raises(EngineError, match=f"way {way.name}: the process at the other end"):
            way.time(mode, 8, 1)


def test_a_process_that_stands_still_is_ended(
    way: ProcessWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "LIMIT", 0.2)
    assert way._process is not None
    os.kill(way._process.pid, 19)  # SIGSTOP
    with pytest.raises(EngineError, match=r"took longer than 0\.2 s"):
        way.time("single", 8, 1)


def test_closing_ends_the_other_process_and_its_descriptors(way: ProcessWay) -> None:
    process, descriptors = way._process, {way._source, way._sink}
    way.close()
    assert process is not None and process.returncode is not None
    for descriptor in descriptors:
        with pytest.raises(OSError):
            os.fstat(descriptor)
    way.close()  # once more does nothing


def test_a_single_message_comes_back_unchanged() -> None:
    (ours, theirs_out), (theirs, ours_out) = os.pipe(), os.pipe()
    server = threading.Thread(target=peer.serve, args=[theirs, theirs_out])
    server.start()
    sent, got = bytes(range(200)), memoryview(bytearray(200))
    peer.write_all(ours_out, memoryview(peer.ORDER.pack(peer.SINGLE, 200, 1) + sent))
    peer.read_all(ours, got)
    assert bytes(got) == sent
    peer.write_all(ours_out, memoryview(peer.ORDER.pack(peer.END, 0, 0)))
    server.join(120)
    assert not server.is_alive()
    for descriptor in (ours, theirs_out, theirs, ours_out):
        os.close(descriptor)


def test_measuring_gives_all_modes_and_sizes() -> None:
    found = measure.measure(find_ways(("pipe", "socket")), SMALL, "a test")
    assert found.ways() == ["pipe", "socket"]
    series = {(row.way, row.mode, row.bytes): row for row in found.rows}
    assert len(series) == len(found.rows) == 2 * 4 * 3
    assert all(len(row.seconds) == 6 for row in found.rows)
    assert {row.messages for row in found.rows if row.mode == "window"} == {4}
    assert found.machine["cores"] >= 1 and found.held_out == (24,)


def test_the_order_is_random_and_the_same_for_a_seed() -> None:
    orders = []
    for seed in (1, 1, 2):
        seen: list[tuple[str, int]] = []

        class Recorded(PipeWay):
            def time(self, mode: str, size: int, messages: int = 1, seen: list = seen) -> float:  # type: ignore[type-arg]
                seen.append((mode, size))
                return 1.0

        measure.measure([Recorded()], Plan((8, 64, 512), (), (4,), seed=seed, rounds=3), "")
        orders.append(list(dict.fromkeys(seen)))
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) and orders[0] != sorted(orders[0])


def test_every_step_is_warmed_up_20_times_before_it_counts() -> None:
    seen: list[tuple[str, int, int]] = []

    class Recorded(PipeWay):
        def time(self, mode: str, size: int, messages: int = 1) -> float:
            seen.append((mode, size, messages))
            return float(len(seen))

    found = measure.measure([Recorded()], Plan((8,), (), (4,), rounds=3, repeats=2), "")
    row = next(row for row in found.rows if row.mode == "single")
    first = [k for k, step in enumerate(seen) if step[0] == "single"].index(int(row.seconds[0]) - 1)
    assert first == 20


@pytest.mark.parametrize("repeats", [1, 4])
def test_every_size_is_measured_in_several_rounds_however_little_time_there_is(
    repeats: int,
) -> None:
    plan = Plan((8,), (), (4,), rounds=50, seconds=0.0, repeats=repeats)
    found = measure.measure([PipeWay()], plan, "")
    assert {len(row.seconds) for row in found.rows} == {measure.LEAST_ROUNDS * repeats}


def test_a_way_that_the_machine_lacks_is_listed_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*address: object) -> socket.socket:
        raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(socket, "create_server", refuse)
    found = measure.measure(find_ways(("pipe", "socket")), SMALL, "")
    assert found.ways() == ["pipe"]
    assert found.missing == {"socket": "no socket on 127.0.0.1: Cannot assign requested address"}


def test_calls_alone_are_timed_for_small_messages_only() -> None:
    steps = steps_of(SocketWay(), Plan((8, 1 << 20), (), (16,)))
    assert [(mode, size) for _, mode, size, _ in steps if mode in ("send", "receive")] == [
        ("send", 8), ("receive", 8),
    ]  # fmt: skip


def test_windows_have_no_more_bytes_than_planned() -> None:
    steps = steps_of(PipeWay(), Plan())
    longest = {w: max(s for _, _, s, messages in steps if messages == w) for w in (16, 10_000)}
    assert longest == {16: 1 << 23, 10_000: 12_288 if 12_288 in Plan().sizes else 8192}


def test_sizes_below_1_or_beyond_the_way_are_refused_before_anything_is_measured() -> None:
    with pytest.raises(InvalidInputError, match="messages of 0 B: a message has at least 1"):
        with_sizes(SMALL, [8, 0])
    large = with_sizes(SMALL, [1 << 40])
    with pytest.raises(InvalidInputError, match="way pipe cannot send messages of 1099511627776 B"):
        measure.measure([PipeWay()], large, "")


@pytest.mark.parametrize(
    ("names", "message"),
    [(("pip",), r"no way 'pip' \(did you mean pipe\?\): there are pipe, socket, thr"),
     (("pipe", "pipe"), "way 'pipe' is there twice")],
)  # fmt: skip
def test_names_that_are_no_ways_are_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        find_ways(names)
