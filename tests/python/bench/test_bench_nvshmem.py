"""bench/nvshmem.py: who is measured, and what a worker tells."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType

import pytest
from bench_script import BENCH, load


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """Return the script as a module."""
    return load("nvshmem")


def test_nodes_are_of_half_the_processes(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def answer(words: list[str], timeout: float, **environment: str) -> dict[str, float]:
        asked.append((words[: words.index(sys.executable, 1)], environment))
        return {"seconds": 1.0}

    monkeypatch.setattr("cpufree.bench.declared.process.ask", answer)
    chosen = bench.BENCH.chosen({"pes": ["5"]}, on_gpus=True, quick=False)
    calls = next(bench.set_up(bench.BENCH.cases(chosen)[0]))
    assert list(calls) == ["processes", "one process", "nodes"]
    calls["nodes"]()
    assert asked == [
        ([sys.executable, "-m", "cpufree", "run", "-n", "5"], {"CPUFREE_NODE_SIZE": "3"})
    ]


def test_a_worker_tells_what_it_finds() -> None:
    asked = {"engine": "cpu_threads", "pes": 2, "matrix": "gen:poisson2d?nx=9,ny=9"}
    asked |= {"iterations": 5, "solves": 2, "launched": 0.0}
    command = [sys.executable, str(BENCH / "nvshmem.py"), "--worker", json.dumps(asked)]
    done = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    assert answer["seconds"] == pytest.approx(1e-6 * answer["prcg, µs"])
    assert answer["imports, s"] < answer["set-up, s"] < answer["first iteration, s"]
