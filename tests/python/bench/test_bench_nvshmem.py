"""bench/nvshmem.py: who is measured, and what follows from what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bench_script import BENCH, load

from cpufree.errors import CpufreeError

FIRST = "gen:poisson2d?nx=512,ny=512"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """Return the script as a module."""
    return load("nvshmem")


def found(name: str, number: int, microseconds: list[float], start: float = 1.0) -> dict[str, Any]:
    """Return what a contender has found in a round."""
    seconds = [one * 1e-6 for one in microseconds]
    solve = {"matrix": FIRST, "method": "cg", "seconds_per_iteration": seconds}
    return {
        "contender": name,
        "round": number,
        "start": {"until python": start, "until imported": 2 * start},
        "solves": [solve],
    }


def record(*rounds: dict[str, Any]) -> dict[str, Any]:
    """Return a record of these rounds."""
    names = ("one process", "processes", "nodes")
    settings = {"matrices": [FIRST]}
    return {"settings": settings, "contenders": dict.fromkeys(names), "rounds": list(rounds)}


def test_times_of_all_rounds_are_taken_together(bench: ModuleType) -> None:
    given = record(found("processes", 0, [8.0, 9.0]), found("processes", 1, [7.0]))
    (row,) = bench.derive(given)["iterations"]
    assert row["contender"] == "processes"
    times = row["seconds_per_iteration"]
    assert [round(1e6 * times[key]) for key in ("min", "median", "max")] == [7, 8, 9]


def test_ratios_are_those_of_the_least_times_of_a_round(bench: ModuleType) -> None:
    given = record(
        found("processes", 0, [8.0, 80.0]),
        found("nodes", 0, [16.0]),
        found("processes", 1, [10.0]),
        found("nodes", 1, [50.0, 30.0]),
        found("nodes", 2, [1.0]),
    )
    (row,) = bench.derive(given)["ratios"]
    assert row["contender"] == "nodes"
    assert row["ratio"]["min"] == pytest.approx(2.0)
    assert row["ratio"]["max"] == pytest.approx(3.0)


def test_the_start_is_derived_part_by_part(bench: ModuleType) -> None:
    given = record(*(found("processes", k, [1.0], start=k + 1.0) for k in range(3)))
    start = bench.derive(given)["start"]["processes"]
    assert list(start) == ["until python", "until imported"]
    assert start["until imported"]["median"] == 4.0


def test_what_fails_is_told_and_left_out(bench: ModuleType) -> None:
    failed = {"contender": "nodes", "round": 0, "error": "exit status 4"}
    derived = bench.derive(record(found("processes", 0, [8.0]), failed))
    assert derived["failed"] == [failed]
    assert derived["ratios"] == []


def test_nodes_are_of_half_the_processes(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.nvshmem, "find_kernels", lambda: "_nvshmem.fatbin")
    assert list(bench.contenders("cpu_processes", 4)) == ["one process", "processes", "nodes"]
    on_gpus = bench.contenders("nvshmem", 5)
    assert list(on_gpus) == ["one process", "processes", "nodes"]
    assert on_gpus["nodes"]["environment"] == {"CPUFREE_NODE_SIZE": "3"}


def test_kernels_that_are_not_built_are_told(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.nvshmem, "find_kernels", lambda: "")
    with pytest.raises(CpufreeError, match=r"_nvshmem\.fatbin"):
        bench.contenders("nvshmem", 8)


def test_a_worker_writes_what_it_finds(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    asked = {
        "engine": "cpu_threads",
        "pes": 2,
        "matrices": ["gen:poisson2d?nx=9,ny=9"],
        "methods": ["cg", "prcg"],
        "iterations": 5,
        "solves": 2,
        "out": str(out),
        "launched": 0.0,
    }
    command = [sys.executable, str(BENCH / "nvshmem_worker.py"), json.dumps(asked)]
    subprocess.run(command, check=True, timeout=120)
    written = json.loads(out.read_text())
    assert [solve["method"] for solve in written["solves"]] == ["cg", "prcg"]
    assert all(len(solve["seconds_per_iteration"]) == 2 for solve in written["solves"])
    assert "setup partition" in written["start"]
