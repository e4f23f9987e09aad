"""Reports on benchmarks: what follows from a small file of made-up times, and how it is shown.

bench_synthetic.jsonl was made by a formula, for 1 and 4 PEs and two matrices: an iteration takes
bytes / rate + latency, with 1.2 % of noise.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_cases import FILE, FOUR, Lines, cells, median_of

from cpufree.bench.cg import tables
from cpufree.bench.cg.results import Results, host_driven


def test_times_are_medians_of_the_lines(lines: Lines) -> None:
    row = cells(tables.detail(Results([FILE]), FOUR), "nccl", "cg")
    expected = median_of(lines, "small", 4, "nccl", "cg") * 1e6
    assert row["µs per iteration"].startswith(f"{expected:.1f} (")


def test_rates_follow_from_the_counting(lines: Lines) -> None:
    row = cells(tables.detail(Results([FILE]), FOUR), "nccl", "cg")
    seconds = 200 * median_of(lines, "small", 4, "nccl", "cg")
    rows, nnz, k = 10_000, 50_000, 200
    flops = 2 * nnz * (k + 1) + 2 * rows * (k + k + 1 + 3 * k)
    moved = 20 * (nnz + rows) * (k + 1) + rows * (16 * k + 8 * (k + 1) + 72 * k)
    assert float(row["GFLOP/s"]) == pytest.approx(flops / seconds / 1e9, rel=1e-3)
    assert float(row["TB/s"]) == pytest.approx(moved / seconds / 1e12, rel=1e-2)


def test_speedup_names_its_baseline_and_is_the_ratio_of_medians(lines: Lines) -> None:
    results = Results([FILE])
    assert results.reference() == "single_gpu"
    row = cells(tables.detail(results, FOUR), "cpufree", "prcg")
    one = median_of(lines, "small", 1, "single_gpu", "cg")
    ours = median_of(lines, "small", 4, "cpufree", "prcg")
    assert row["over single_gpu cg, 1 PE"] == f"{one / ours:.2f}×"


def test_best_host_driven_leaves_out_loops_on_the_device(lines: Lines) -> None:
    results = Results([FILE])
    verdict = results.against(FOUR, host_driven)
    assert verdict is not None
    assert verdict.theirs.name == "nccl prcg"  # graph_while is faster
    expected = median_of(lines, "small", 4, "nccl", "prcg")
    expected /= median_of(lines, "small", 4, "cpufree", "prcg")
    assert verdict.speedup == pytest.approx(expected)
    assert verdict.word == "faster"


def test_winner_must_beat_loops_on_the_device_too() -> None:
    won = Results([FILE]).winner(FOUR)
    assert won is not None
    assert (won[0].name, won[1]) == ("cpufree prcg", "wins")


def test_geometric_means_are_over_the_fastest_of_each_denominator(lines: Lines) -> None:
    table = tables.summary(Results([FILE]))
    row = cells(table, "4 PEs, double precision, no preconditioner", "cg")

    def mean(others: tuple[str, ...]) -> float:
        logs = []
        for case in ("small", "large"):
            theirs = min(median_of(lines, case, 4, name, "cg") for name in others)
            logs.append(math.log(theirs / median_of(lines, case, 4, "cpufree", "cg")))
        return math.exp(sum(logs) / 2)

    assert row["over peer_copy, nccl, mpi"].startswith(f"{mean(('nccl',)):.2f}× (2 matrices")
    assert row["over all baselines"].startswith(f"{mean(('nccl', 'graph_while')):.2f}×")
    assert row["over peers"].startswith(f"{mean(('petsc',)):.2f}×")


def test_equal_times_are_within_noise_in_every_table(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> None:
    def equal(line: dict[str, Any]) -> None:
        if line["kind"] == "measurement":
            line["seconds"] = 1.0 + 0.001 * line["round"]

    results = changed(equal)
    table = tables.overview(results, ("double", "none", 4))
    assert {row[-1] for row in table.rows} == {"within noise"}
    assert all("1.00× within noise" in row for row in table.rows)


def test_who_computes_something_else_does_not_count(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> None:
    def spoil(line: dict[str, Any]) -> None:
        if line["kind"] == "check" and line["contender"] == "cpufree":
            line["true_residual"] = 0.5

    results = changed(spoil)
    won = results.winner(FOUR)
    assert won is not None and won[0].task.contender == "graph_while"
    assert results.against(FOUR, host_driven) is None
    row = cells(tables.detail(results, FOUR), "cpufree", "cg")
    assert "does not count: true residual 5.0e-01, where others have 1.1e-06" in row["note"]


def test_of_two_the_one_with_the_far_larger_residual_does_not_count(
    lines: Lines, tmp_path: Path
) -> None:
    two = [x for x in lines if x.get("contender", "nccl") in ("nccl", "petsc")]
    two = [x for x in two if x.get("method", "cg") == "cg"]
    for line in two:
        if line["kind"] == "check" and line["contender"] == "petsc":
            two[two.index(line)] = {**line, "true_residual": 1e-3}
    file = tmp_path / "two.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in two))
    assert [series.task.contender for series in Results([file]).valid(FOUR)] == ["nccl"]


def test_solvers_on_the_cpu_have_no_share_of_a_gpu(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> None:
    def on_cpu(line: dict[str, Any]) -> None:
        if line["kind"] == "load" and line["contender"] == "petsc":
            line["facts"]["device"] = "cpu"

    (series, *_) = (s for s in changed(on_cpu).of(FOUR) if s.task.contender == "petsc")
    assert changed(on_cpu).rate_for(series) is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reason": "DIVERGED_ITS"}, "not converged: DIVERGED_ITS"),
        ({"true_residual": None}, "x is not finite"),
        ({"true_residual": 2.1e-6}, "is above the tolerance"),
    ],
)
def test_solve_to_a_tolerance_that_misses_it_does_not_count(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
    change: dict[str, Any],
    told: str,
) -> None:
    def to_tolerance(line: dict[str, Any]) -> None:
        if line["kind"] == "header":
            line["configuration"]["iterations"] = None
        if line["kind"] in ("check", "measurement"):
            line["reason"] = "CONVERGED_RTOL"
            if line["kind"] == "check":
                line["true_residual"] = 0.9e-6
            if line["contender"] == "nccl":
                line |= {key: value for key, value in change.items() if key in line}

    results = changed(to_tolerance)
    assert "nccl" not in {series.task.contender for series in results.valid(FOUR)}
    assert "cpufree" in {series.task.contender for series in results.valid(FOUR)}
    (nccl, *_) = (s for s in results.of(FOUR) if s.task.contender == "nccl")
    assert told in nccl.problems()[0]


def test_solves_to_a_tolerance_are_compared_by_their_whole_time(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> None:
    def fewer_iterations(line: dict[str, Any]) -> None:
        if line["kind"] == "header":
            line["configuration"]["iterations"] = None
        if line["kind"] in ("check", "measurement"):
            line["reason"] = "CONVERGED_RTOL"
            if line["contender"] == "petsc":
                line["iterations"] = 1000  # the more, the less an iteration takes
        if line["kind"] == "check":
            line["true_residual"] = 0.9e-6

    results = changed(fewer_iterations)
    won = results.winner(FOUR)
    assert won is not None and won[0].task.contender == "cpufree"
    assert "ms to the tolerance" in tables.detail(results, FOUR).heads


def test_share_of_the_memory_rate_is_that_of_all_gpus(lines: Lines) -> None:
    results = Results([FILE])
    (series,) = (s for s in results.of(FOUR) if s.name == "nccl cg")
    least = 12 * 50_000 + 4 * 10_000 + 10 * 8 * 10_000
    seconds = median_of(lines, "small", 4, "nccl", "cg")
    rate = results.rate_for(series)
    assert rate == 4 * 4e12
    assert series.roofline(rate) == pytest.approx(least / (4 * 4e12) / seconds)


def test_split_is_per_iteration_with_the_rest_as_other(lines: Lines) -> None:
    results = Results([FILE])
    (series,) = (s for s in results.of(FOUR) if s.name == "cpufree cg")
    split = series.split
    assert split is not None
    mean = statistics.mean(series.per_iteration)
    assert sum(split.values()) == pytest.approx(mean)
    assert split["spmv"] == pytest.approx(0.5 * mean, rel=1e-4)
    assert split["other"] == pytest.approx(0.05 * mean, rel=1e-4)
    assert next(s for s in results.of(FOUR) if s.name == "nccl cg").split is None
    rows = {row[0]: row for row in tables.splits(results, FOUR).rows}  # type: ignore[union-attr]
    assert rows["cpufree cg"][1] == tables.micro(split["spmv"]) and "nccl cg" not in rows


def test_split_of_a_solve_of_its_own_comes_before_that_of_repeats(
    lines: Lines, tmp_path: Path
) -> None:
    found = next(x for x in lines if x["kind"] == "measurement" and x["contender"] == "nccl")
    split = {"spmv": 2.0, "vector": 1.0, "halo_wait": 0.5, "reduction_wait": 0.25}
    told = {**found, "kind": "split", "seconds": 4.0, "iterations": 2, "split": split}
    file = tmp_path / "told.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, told]))
    key = (found["case"], found["pes"], found["method"])
    (series,) = (
        s
        for s in Results([file]).series.values()
        if (s.group.case, s.group.pes, s.task.method) == key and s.task.contender == "nccl"
    )
    assert series.split == {
        "spmv": 1.0,
        "vector": 0.5,
        "halo_wait": 0.25,
        "reduction_wait": 0.125,
    } | {"other": 0.125}
