"""Traces of solves and stencils on the CPU engine: what they record, and what is made of it."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.errors import FileFormatError, InvalidInputError, UnsupportedError
from cpufree.trace import Recording, clocks, protobuf
from cpufree.trace.files import checked, unpack
from cpufree.trace.records import Kind, Trace
from cpufree.trace.report import BlockWaits, channels_of, report
from cpufree.trace.texts import lines_of
from cpufree.trace.timeline import KERNELS, Timeline
from cpufree.trace.timeline_picture import shown_tracks, window

MATRICES = {
    "poisson1d": lambda: cpufree.generate.generate("poisson1d", n=200),
    "poisson2d": lambda: cpufree.generate.poisson2d(20, 17),
    "poisson3d": lambda: cpufree.generate.poisson3d(9, 8, 7),
    "stencil27": lambda: cpufree.generate.generate("stencil27", nx=7, ny=8, nz=6),
    **{
        f"random {seed}": lambda seed=seed: random_matrix(150 + 10 * seed, seed)
        for seed in range(6)
    },
}


def random_matrix(n: int, seed: int) -> Any:
    """Return a diagonally dominant matrix of a random pattern."""
    import scipy.sparse as sp

    a = sp.random_array((n, n), density=4.0 / n, rng=np.random.default_rng(seed))
    a = a + a.T
    return sp.csr_array(a + sp.diags_array(1.0 + abs(a).sum(axis=1)))


def traced(A: Any, pes: int = 2, blocks: int = 2, **how: Any) -> tuple[Any, Any]:
    """Return the Result of a traced solve, and the plan."""
    with cpufree.Solver(
        A, engine="cpu_threads", pes=pes, blocks=blocks, pc=how.get("pc", "jacobi")
    ) as solver:
        b = np.random.default_rng(3).standard_normal(A.shape[0])
        return solver.solve(b, rtol=1e-8, trace=True, **how), solver.plan


@pytest.fixture(scope="module")
def trace() -> Trace:
    found: Trace = traced(MATRICES["poisson2d"](), pes=3)[0].trace
    return found


@pytest.mark.parametrize("pes", range(1, 9))
@pytest.mark.parametrize("name", MATRICES)
def test_payload_is_that_of_the_halo_plan(name: str, pes: int) -> None:
    result, plan = traced(MATRICES[name](), pes, blocks=1 + pes % 2)
    planned = np.zeros((pes, pes), np.int64)
    for pe, neighbours in enumerate(plan["neighbours"]):
        for other, values in neighbours:
            planned[pe, other] = 8 * values * result.counts["exchanges"]
    assert np.array_equal(result.trace.bytes, planned)
    assert planned.any() == (pes > 1)


@pytest.mark.parametrize(
    ("method", "pc"),
    [
        *(("prcg", "jacobi"), ("cg", "none")),
        *(
            pytest.param(*kind, marks=pytest.mark.slow)
            for kind in (
                *(("pipecg", "jacobi"), ("prcg", "chebyshev"), ("cg", "amg"), ("prcg", "fsai")),
            )
        ),
    ],
)
def test_a_trace_costs_no_bit_of_the_result(method: str, pc: str) -> None:
    A = MATRICES["poisson3d"]()
    b = np.random.default_rng(3).standard_normal(A.shape[0])
    how: dict[str, Any] = {"engine": "cpu_threads", "pes": 2, "blocks": 2, "pc": pc}
    with cpufree.Solver(A, **how) as solver:
        plain = solver.solve(b, method=method, rtol=1e-8)
        found = solver.solve(b, method=method, rtol=1e-8, trace=True)
    assert found.trace is not None and plain.trace is None
    assert found.iterations == plain.iterations
    assert np.array_equal(found.x, plain.x)


@pytest.mark.slow
def test_levels_of_multigrid_are_phases() -> None:
    A = cpufree.generate.poisson2d(64, 64)
    line = Timeline(traced(A, 2, 1, method="cg", pc="amg")[0].trace)
    assert len(line.slices.begin) > 0
    assert {"level 0", "level 1"} <= set(line.names.texts)


def test_all_waits_are_ended_by_a_message_that_is_known(trace: Trace) -> None:
    line = Timeline(trace)
    assert len(line.waits.begin) > 0
    assert (line.waits.sent >= 0).all()
    assert len(line.messages.seen) == len(trace.select(Kind.WAIT_END, Kind.FOUND))


def test_no_message_is_seen_before_it_is_sent(trace: Trace) -> None:
    messages = Timeline(trace).messages
    assert (trace.time[messages.seen] >= trace.time[messages.sent]).all()
    assert trace.facts["early"] == 0


def test_a_clock_that_is_wrong_is_found_and_put_right(trace: Trace) -> None:
    wrong = trace.starts + np.array([0, 5_000_000, -7_000_000])
    facts = {**trace.facts, "one_clock": False}
    shifted = Trace(trace.tracks, trace.words, trace.bytes, wrong, facts)
    found = cpufree.trace.files.checked(shifted)
    bound = found.facts["clock_bound"]
    offsets = np.array(found.facts["clock_offsets"])
    assert (abs(offsets - [0, 5_000_000, -7_000_000]) <= bound).all()
    assert found.facts["early"] == 0


def test_clocks_without_messages_both_ways_are_not_known(trace: Trace) -> None:
    words = trace.words.copy()
    seen = np.isin(trace.kind, (Kind.WAIT_END, Kind.FOUND)) & (trace.pe == 0)
    words[seen, 0] &= ~np.uint64(0xFF << 16)  # of another kind
    later = trace.starts + 10**6 * np.arange(trace.pes)
    facts = {**trace.facts, "one_clock": False}
    found = checked(replace(trace, words=words, starts=later, facts=facts))
    assert (found.facts["clock_bound"], found.facts["early"]) == (-1, 0)
    assert "waits of one PE for another are not to be trusted" in "\n".join(lines_of(report(found)))


def test_slices_of_a_track_are_nested(trace: Trace) -> None:
    require_nested(trace)


def require_nested(trace: Trace) -> None:
    """Assert that slices of a track lie beside or within one another."""
    slices = Timeline(trace).slices
    for track in range(len(trace.tracks)):
        mine = slices.track == track
        order = np.lexsort((-slices.end[mine], slices.begin[mine]))
        open_until: list[int] = []
        for k in order:
            begin, end = int(slices.begin[mine][k]), int(slices.end[mine][k])
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)


def test_phases_alone_count_no_payload_and_cost_no_bit() -> None:
    A = cpufree.generate.poisson2d(24, 24)
    with cpufree.Solver(A, engine="cpu_threads", pes=2, blocks=1) as solver:
        system = solver._matrix.layout.opened()
        options = {"method": "prcg", "pc": "jacobi", "rtol": 1e-8}
        plain = system.solve(np.ones(576), None, None, options, None)
        options |= {"study": "trace", "trace": {"kinds": 1 << Kind.PHASE}}
        found = system.solve(np.ones(576), None, None, options, None)
    assert np.array_equal(plain["x"], found["x"])
    trace = Trace.of_core(found["trace"], {})
    assert set(trace.kind) == {Kind.PHASE}
    assert not trace.bytes.any()


@pytest.mark.parametrize("every", [1, 3, 50])
def test_one_iteration_in_several_is_recorded(every: int) -> None:
    A, pes = MATRICES["poisson2d"](), 3
    b = np.random.default_rng(3).standard_normal(A.shape[0])
    with cpufree.Solver(A, engine="cpu_threads", pes=pes, blocks=2, pc="jacobi") as solver:
        how: dict[str, Any] = {"rtol": 0.0, "maxiter": 40}
        plain = solver.solve(b, trace=True, **how)
        found = solver.solve(b, trace=Recording(every=every), **how)
    assert np.array_equal(found.x, plain.x)
    assert plain.trace is not None and found.trace is not None
    assert np.array_equal(found.trace.bytes, plain.trace.bytes)  # of all iterations
    turns = plain.iterations
    begun = turns + 1  # with the one that finds that the last one was the last
    assert found.trace.left_out == begun - -(-begun // every)
    assert len(found.trace.kind) <= 1.6 * len(plain.trace.kind) / every + 100 * pes
    told = report(found.trace)
    gaps = f"{found.trace.left_out} left out" in "\n".join(lines_of(told))
    assert gaps == (every > 1)
    assert told.recorded == (turns if every == 1 else begun - found.trace.left_out)
    require_nested(found.trace)


def test_rings_that_are_too_small_keep_the_last_records() -> None:
    A = MATRICES["poisson2d"]()
    with cpufree.Solver(A, engine="cpu_threads", pes=2, blocks=1) as solver:
        system: Any = solver._matrix.layout.opened()
        options = {"maxiter": 50, "rtol": 0.0, "study": "trace"}
        raws = [
            system.solve(np.ones(A.shape[0]), None, None, {**options, "trace": {"events": n}}, None)
            for n in (64, 1 << 15)
        ]
    few, many = (Trace.of_core(raw["trace"], {}) for raw in raws)
    assert many.lost == 0
    assert few.lost == int(few.tracks[:, 3].sum()) - 2 * 64 > 0
    assert np.bincount(few.track).tolist() == [64, 64]


@pytest.mark.parametrize("suffix", ["pftrace", "json"])
def test_a_file_has_all_records(trace: Trace, tmp_path: Path, suffix: str) -> None:
    cpufree.trace.save(trace, tmp_path / f"t.{suffix}")
    again = cpufree.trace.load(tmp_path / f"t.{suffix}")
    for name in ("tracks", "words", "bytes", "starts"):
        assert np.array_equal(getattr(again, name), getattr(trace, name))
    assert again.facts["what"] == "solve, prcg, jacobi"


def test_events_of_perfetto_are_complete(trace: Trace, tmp_path: Path) -> None:
    cpufree.trace.save(trace, tmp_path / "t.pftrace")
    kinds: dict[int, int] = {}
    begun: set[int] = set()
    ended: set[int] = set()
    for _, packet in protobuf.fields((tmp_path / "t.pftrace").read_bytes()):
        assert not isinstance(packet, int)
        for field, event in protobuf.fields(packet):
            if field != 11 or isinstance(event, int):
                continue
            content = dict(protobuf.fields(event))
            kind = content[9]
            assert isinstance(kind, int)
            kinds[kind] = kinds.get(kind, 0) + 1
            begun.update(v for f, v in content.items() if f == 47 and isinstance(v, int))
            ended.update(v for f, v in content.items() if f == 48 and isinstance(v, int))
    line = Timeline(trace)
    assert kinds[1] == kinds[2] == len(line.slices.begin) + len(line.host)
    assert ended == begun and len(begun) == len(Timeline(trace).arrows.sent)


def test_the_set_up_comes_before_the_kernel(trace: Trace) -> None:
    line = Timeline(trace)
    names = [name for name, *_ in line.host]
    assert names.index("solve: kernel") > 0
    assert line.base == sum(end - begin for _, begin, end in line.host[: names.index(KERNELS[0])])
    assert line.base > 0


def test_chrome_gets_slices_and_arrows(trace: Trace, tmp_path: Path) -> None:
    cpufree.trace.save(trace, tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    phases = [event["ph"] for event in events]
    line = Timeline(trace)
    assert phases.count("X") == len(line.slices.begin) + len(line.host)
    assert phases.count("s") == phases.count("f") == len(Timeline(trace).arrows.sent)


def test_the_table_has_a_line_for_each_record(trace: Trace, tmp_path: Path) -> None:
    cpufree.trace.save(trace, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == len(trace.kind)
    times = [int(row["ns"]) for row in rows]
    assert times == sorted(times)
    assert all(None not in row and None not in row.values() for row in rows)


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    for name, content in (("a.pftrace", b"\x0a\x02\x08\x01"), ("b.json", b"{}"), ("c", b"\xff")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileFormatError, match="no trace of cpufree"):
            cpufree.trace.load(tmp_path / name)


def test_another_ending_is_refused_before_the_solve() -> None:
    with pytest.raises(InvalidInputError, match=r"must end in one of \.pftrace"):
        cpufree.solve(MATRICES["poisson2d"](), np.ones(340), trace="out.txt")


@pytest.mark.parametrize(
    "given", [{"every": 0}, {"every": True}, {"every": 1.5}, {"after": 0.0}, {"on_wait": 3}]
)
def test_recordings_that_can_be_none_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(given))):
        Recording(**given)


def test_several_right_hand_sides_are_not_traced() -> None:
    with pytest.raises(UnsupportedError, match="one right-hand side"):
        cpufree.solve(MATRICES["poisson2d"](), np.ones((340, 2)), trace=True)


def test_the_critical_path_is_as_long_as_the_trace(trace: Trace) -> None:
    found = report(trace)
    assert found.path.whole == pytest.approx(found.seconds, rel=0.5)
    assert found.path.whole <= found.seconds * (1 + 1e-9)
    assert found.path.hops > 0


def test_waits_are_late_sender_and_transfer_of_blocks(trace: Trace) -> None:
    found, line = report(trace), Timeline(trace)
    channels = channels_of(trace, line.waits.begin)
    waited: dict[Any, list[range]] = defaultdict(list)
    for k, (begin, end) in enumerate(zip(line.waits.begin, line.waits.end, strict=True)):
        block = tuple(trace.tracks[trace.track[begin], :2].tolist())
        waited[block, channels[k]].append(range(int(trace.time[begin]), int(trace.time[end])))
    whole = 1e-9 * sum(len(set().union(*those)) for those in waited.values())
    split = sum(found.late_sender.values()) + sum(found.transfer.values())
    assert split == pytest.approx(whole)
    per_block = split / (trace.pes * len({block for _, block in trace.tracks[:, :2].tolist()}))
    assert per_block <= found.seconds


def test_threads_that_wait_side_by_side_count_once(trace: Trace) -> None:
    line = Timeline(trace)
    one = BlockWaits.of(line)
    again = {name: np.concatenate([getattr(trace, name)] * 2) for name in ("tracks", "words")}
    twice = replace(trace, **again)  # as if a second warp of each block did the same
    both = BlockWaits.of(Timeline(twice))
    assert len(both.late) == len(one.late)
    assert int((both.late + both.transfer).sum()) == int((one.late + one.transfer).sum())


@pytest.mark.parametrize("pes", [2, 3])
def test_a_stencil_is_traced_and_keeps_its_bits(pes: int) -> None:
    u0 = np.random.default_rng(0).standard_normal((64, 48))
    how: dict[str, Any] = {"engine": "cpu_threads", "pes": pes, "blocks": 1, "halo_steps": 1}
    plain = cpufree.stencil.jacobi(u0, 20, **how)
    found = cpufree.stencil.jacobi(u0, 20, trace=True, **how)
    assert np.array_equal(found.u, plain.u)
    assert found.trace is not None
    points = found.plan["pe_halo_points"] * found.plan["exchanges"]
    assert int(found.trace.bytes.sum()) == 8 * points
    known = clocks.measure(replace(found.trace, facts={"one_clock": False}))
    assert (known.bounds >= 0).all()
    assert (Timeline(found.trace).waits.sent >= 0).all()


def test_iterations_of_a_gpu_are_found_by_its_sums() -> None:
    """A GPU tells the host of few iterations; the record has four on two GPUs."""
    record = Path(__file__).parents[3] / "bench/results/trace-2x-2026-11-30.records"
    found = checked(unpack(record.read_bytes()))
    begin, end = window(found)
    sums = found.select(Kind.REDUCE)
    inside = (found.time[sums] >= begin) & (found.time[sums] < end) & (found.lower[sums] == 1)
    blocks = len(np.unique(found.tracks[:, :2], axis=0))
    assert inside.sum() == pytest.approx(2 * blocks, rel=0.02)
    rows = found.tracks[shown_tracks(found, Timeline(found))]
    assert [np.sum(rows[:, 0] == pe) for pe in range(2)] == [4, 4]
    assert (rows[:, 2] == 0).all()
