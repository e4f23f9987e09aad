"""Programs of the simulator, against times that can be added up by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from cpufree.errors import DeadlockError, InvalidInputError
from cpufree.generate import generate
from cpufree.machine.clusters import load_cluster
from cpufree.matrix.load import as_csr
from cpufree.simulate.collectives import all_reduce, ring
from cpufree.simulate.goal import goal_lines
from cpufree.simulate.graph import KINDS, NEXT_ROUND, TRIGGER, Builder, begin
from cpufree.simulate.halo import box_of, coarse_shares, shares_of_parts
from cpufree.simulate.krylov import krylov
from cpufree.simulate.programs import Workload, jacobi, one_message, vector_all_reduce
from cpufree.simulate.run import run
from cpufree.simulate.sweep import Coarse, Problem, answer, pes_of, sweep
from cpufree.simulate.timeline import perfetto
from cpufree.simulate.way import Messages
from cpufree.simulate.ways import WAYS, Triggered, way_of

PAPER = load_cluster("gpu-tn-2017")
WIRE_SECONDS = 0.3e-6 + 64 / 12.5e9


def arrival(way: str) -> float:
    one = one_message(PAPER, way)
    times = run(one.program.graph, record=True).finish
    assert times is not None
    return float(times[one.arrival[0]]) * 1e-12


@pytest.mark.parametrize(
    ("way", "before"),
    [
        ("hdn", ("gpu.launch", "gpu.least", "gpu.teardown", "cpu.notice", "cpu.send")),
        ("gds", ("gpu.launch", "gpu.least", "gpu.teardown", "gpu.doorbell")),
        ("tn", ("gpu.launch", "gpu.least", "gpu.fence", "gpu.store", "nic.match")),
        ("proxy", ("gpu.launch", "gpu.least", "gpu.fence", "gpu.queue", "cpu.proxy")),
        ("native", ("gpu.launch", "gpu.least", "gpu.fence", "gpu.build")),
        ("cpu", ("cpu.least", "cpu.send")),
    ],
)
def test_a_message_takes_the_sum_of_its_steps(way: str, before: tuple[str, ...]) -> None:
    steps = sum(PAPER[field] for field in (*before, "nic.send", "nic.recv"))
    assert arrival(way) == pytest.approx(steps + WIRE_SECONDS, abs=1e-12)


def test_a_late_post_delays_a_triggered_message_by_no_more_than_it_is_late() -> None:
    early = arrival("tn")
    late = one_message(PAPER.with_values(cpu__post=10e-6), "tn")
    times = run(late.program.graph, record=True).finish
    assert times is not None
    seconds = times[late.arrival[0]] * 1e-12
    assert seconds == pytest.approx(
        10e-6 + PAPER["nic.send"] + PAPER["nic.recv"] + WIRE_SECONDS, abs=1e-12
    )
    assert seconds > early


@pytest.mark.parametrize("pes", [2, 3, 8, 13])
@pytest.mark.parametrize("way", WAYS)
def test_all_programs_end_in_all_ways(way: str, pes: int) -> None:
    shares = coarse_shares(1e5, 7e5, 2, pes)
    for graph in (
        jacobi(PAPER, way, pes, 64, rounds=3).graph,
        vector_all_reduce(PAPER, way, pes, 1e5).graph,
        *(krylov(PAPER, way, shares, method, 3).graph for method in ("cg", "prcg", "pipecg")),
    ):
        found = run(graph)
        assert found.operations == graph.size * graph.rounds and found.seconds > 0


@pytest.mark.parametrize("way", ["cpu", "hdn", "tn"])
@pytest.mark.parametrize("pes", [2, 3, 5, 8, 11])
def test_after_an_all_reduce_every_pe_has_heard_of_every_other(way: str, pes: int) -> None:
    b = Builder(PAPER, pes)
    flow = begin(b)
    all_reduce(b, way_of(way, b), flow)
    graph = b.graph()
    # Who can have influenced whom: sets of PEs, along all edges, in the order of the operations'
    # times.
    times = run(graph, record=True).finish
    assert times is not None
    heard: list[set[int]] = [{int(pe)} for pe in graph.pe]
    edges = sorted(
        zip(graph.from_.tolist(), graph.to.tolist(), strict=True), key=lambda e: times[e[1]]
    )
    triggers = np.flatnonzero(graph.role == TRIGGER)
    edges += zip(triggers.tolist(), graph.operand[triggers].tolist(), strict=True)
    for _ in range(graph.size):
        before = sum(map(len, heard))
        for first, second in edges:
            heard[second] |= heard[first]
        if sum(map(len, heard)) == before:
            break
    last = flow.cpu if way in ("cpu", "hdn") else flow.gpu
    assert all(heard[i] == set(range(pes)) for i in last)


def test_a_ring_moves_each_byte_2_p_minus_2_times() -> None:
    b = Builder(PAPER, 4)
    flow = begin(b)
    ring(b, way_of("gds", b), flow, 8e6)
    assert b.graph().bytes.sum() == 4 * 2 * 3 * 2_000_000


def test_a_persistent_kernel_overlaps_the_ring_s_additions_with_its_messages() -> None:
    pieces = run(vector_all_reduce(PAPER, "tn", 4, 8e6).graph).seconds
    whole = run(vector_all_reduce(PAPER, "tn", 4, 8e6, pieces=1).graph).seconds
    wire = 6 * 2e6 / PAPER["network.bandwidth"]
    assert wire < pieces < whole
    additions = 3 * 3 * 2e6 / PAPER["gpu.bandwidth"]
    assert whole - pieces > 0.6 * additions


@pytest.mark.parametrize("pes", [2, 8])
def test_a_library_goes_around_the_ring_in_one_kernel(pes: int) -> None:
    ways = ("nccl", "proxy")
    library, own = (run(vector_all_reduce(PAPER, w, pes, 8e6).graph).seconds for w in ways)
    # The helper thread passes the messages of both on.
    assert library - own == pytest.approx(PAPER["cpu.issue"] + PAPER["gpu.library"], abs=1e-9)


def test_the_halo_of_a_partition_is_counted_value_by_value() -> None:
    A = as_csr(generate("poisson2d", nx=6, ny=4))
    part = np.repeat([0, 1, 2], 8).astype(np.int32)
    found = shares_of_parts(A, part, 3)
    pairs: dict[tuple[int, int], set[int]] = {}
    for row in range(24):
        for k in range(A.indptr[row], A.indptr[row + 1]):
            column = int(A.indices[k])
            if part[row] != part[column]:
                pairs.setdefault((int(part[column]), int(part[row])), set()).add(column)
    sent = {
        (int(s), int(d)): int(n)
        for s, d, n in zip(found.halo.src, found.halo.dst, found.halo.bytes, strict=True)
    }
    assert sent == {pair: 8 * len(columns) for pair, columns in pairs.items()}
    assert found.entries.sum() == len(A.indices) and found.rows.tolist() == [8, 8, 8]


@pytest.mark.parametrize(
    ("pes", "dimensions", "box"),
    [(8, 3, (2, 2, 2)), (12, 3, (3, 2, 2)), (7, 2, (7, 1)), (64, 1, (64,)), (1, 3, (1, 1, 1))],
)
def test_boxes_of_coarse_models_are_near_to_cubes(
    pes: int, dimensions: int, box: tuple[int, ...]
) -> None:
    assert box_of(pes, dimensions) == box


def test_a_coarse_model_sends_a_layer_to_each_neighbour() -> None:
    found = coarse_shares(64_000, 448_000, 3, 64)
    assert found.halo.count == 6 * 64
    assert found.halo.bytes == pytest.approx(8 * 100.0)


def test_posts_are_throttled_to_the_entries_of_the_card() -> None:
    shares = coarse_shares(1e6, 7e6, 3, 64)
    graph = krylov(PAPER, "tn", shares, "cg", 4).graph
    found = run(graph)
    assert found.spilled == 0 and found.most_entries <= 16


def test_a_put_that_nobody_posts_is_reported_by_name() -> None:
    b = Builder(PAPER, 2)
    begin(b)
    put, _ = b.message(np.array([0]), np.array([1]), np.array([64]), None)
    b.add("match", np.array([0]), 1e-6, triggers=(TRIGGER, put, 0))
    with pytest.raises(DeadlockError, match="triggered 1 times, but not posted") as caught:
        run(b.graph())
    assert any("message" in wait and "PE 0" in wait for wait in caught.value.waits)


def test_a_circle_is_reported_as_who_waits_for_whom() -> None:
    b = Builder(PAPER, 2)
    first = b.add("compute", b.all, 1e-6)
    second = b.add("poll", b.all, 1e-6, after=(first,))
    b.after(second[::-1], first)
    with pytest.raises(DeadlockError, match=r"compute 0 of PE 0 waits for poll 3 of PE 1"):
        run(b.graph())


@pytest.mark.parametrize("seconds", [-1e-9, float("nan")])
def test_a_time_that_is_none_is_refused_with_the_operation(seconds: float) -> None:
    b = Builder(PAPER, 1)
    with pytest.raises(InvalidInputError, match="'compute'"):
        b.add("compute", b.all, seconds)


@pytest.mark.parametrize("call", [
    lambda: Builder(PAPER, 0),
    lambda: jacobi(PAPER, "tn", 4, 0),
    lambda: vector_all_reduce(PAPER, "tn", 4, 0),
    lambda: way_of("tm", Builder(PAPER, 1)),
    lambda: coarse_shares(10, 30, 4, 2),
    lambda: coarse_shares(10, 30, 1, 11),
    lambda: Problem("cg").shares(2),
    lambda: pes_of("2-99999"),
    lambda: pes_of("8-2"),
    lambda: pes_of("two"),
])  # fmt: skip
def test_what_cannot_be_simulated_is_refused(call: Any) -> None:
    with pytest.raises(InvalidInputError):
        call()


def test_numbers_of_pes_double_up_to_the_last() -> None:
    assert pes_of("2-16,24") == [2, 4, 8, 16, 24]
    assert pes_of("3-10") == [3, 6, 10]


def test_a_full_fifo_holds_up_the_stores() -> None:
    b = Builder(PAPER.with_values(nic__fifo=2, nic__match=1e-6), 2)
    flow = begin(b)
    way = Triggered(b, throttled=False)
    count = 5
    way.send(flow, Messages(np.zeros(count, int), np.ones(count, int), np.full(count, 8)))
    graph = b.graph()
    start = run(graph, record=True).start
    assert start is not None
    stores = start[graph.kind == KINDS.index("store")]
    # The first two go through at once; then a store waits until a match of 1 us has ended.
    assert stores[1] - stores[0] < 0.5e6 < np.min(np.diff(stores)[2:])


def test_a_sweep_names_the_fastest() -> None:
    problem = Problem("cg", coarse=Coarse(1e6, 7e6, 3), rounds=4)
    points = sweep(problem, PAPER, ("hdn", "tn"), (4, 8))
    best = min(points, key=lambda point: point.seconds)
    assert answer(points)[0].startswith(f"fastest: {best.way} on {best.pes} PEs")
    assert points[0].efficiency == 1.0 and "coarse" in points[0].halo


def test_a_timeline_has_an_arrow_for_each_message() -> None:
    graph = jacobi(PAPER, "tn", 4, 64, rounds=2).graph
    events = perfetto(graph, run(graph, record=True))["traceEvents"]
    starts = {event["id"] for event in events if event["ph"] == "s"}
    ends = {event["id"] for event in events if event["ph"] == "f"}
    assert starts == ends and len(starts) == 2 * np.count_nonzero(graph.bytes)
    assert all(event["dur"] > 0 for event in events if event["ph"] == "X")


def test_goal_has_a_receive_for_each_send_and_no_edge_between_ranks() -> None:
    graph = jacobi(PAPER, "hdn", 4, 64, rounds=2).graph
    lines = list(goal_lines(graph))
    assert lines[0] == "num_ranks 4" and lines[-1] == "}"
    sends = [line.split(" tag ")[1].split()[0] for line in lines if ": send " in line]
    receives = [line.split(" tag ")[1].split()[0] for line in lines if ": recv " in line]
    assert len(sends) == 2 * np.count_nonzero(graph.bytes) and sorted(sends) == sorted(receives)
    rank, labels = "", {}
    for line in lines[1:]:
        if line.startswith("rank"):
            rank = line
        elif ": " in line:
            labels[line.split(":")[0]] = rank
        elif "requires" in line:
            first, _, second = line.split()
            assert labels[first] == labels[second] == rank


def test_training_is_bounded_by_amdahl() -> None:
    workload = Workload("some", "speech", 0.5, 1)
    assert workload.bound() == 2.0
    assert workload.speedup(0.0, 1.0, 1.0) == pytest.approx(2.0)
    assert workload.speedup(2 / 3, 1.0, 1.0) == pytest.approx(1.2)


def test_rounds_are_linked() -> None:
    graph = jacobi(PAPER, "tn", 4, 64, rounds=2).graph
    assert np.any(graph.edge & NEXT_ROUND)
    more = dataclasses.replace(graph, rounds=4)
    assert run(more).seconds > 1.8 * run(graph).seconds
