"""Where the time of a set-up goes, and what starts beside what."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ranks_here import SMALL

import cpufree
from cpufree.engines import gpus, remote
from cpufree.engines.placement import Placement
from cpufree.errors import EngineError, UnsupportedError
from cpufree.laps import Laps, disjoint


def placement(engine: str) -> Placement:
    """Return a placement of one rank of two."""
    gpu: Any = SimpleNamespace(index=3)
    tuning = {"remote_library": "library.so"}
    return Placement(engine, 2, 0, [], "", [gpu], own_gpu=gpu, tuning=tuning)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list of what the core is asked for."""
    seen: list[Any] = []
    monkeypatch.setattr("cpufree._core.start_remote", lambda *words: seen.append(words))
    monkeypatch.setattr(
        "cpufree._core.await_remote", lambda engine: seen.append(f"awaited {engine}")
    )
    return seen


def test_laps_add_up_to_what_has_passed() -> None:
    laps = Laps()
    laps.lap("one")
    laps.lap("two", {"part": 0.25})
    laps.lap("one")
    assert laps.seconds["one"] + laps.seconds["two"] <= laps.total()
    assert list(laps.named("setup")) == ["setup_one", "setup_two", "setup_two_part"]
    assert laps.named("setup")["setup_two_part"] == 0.25


def test_a_result_has_the_parts_of_the_set_up() -> None:
    A = cpufree.load_matrix(SMALL)
    timings = cpufree.Solver(A, pes=2, engine="cpu_threads").solve([1.0] * A.shape[0]).timings
    parts = {name: seconds for name, seconds in timings.items() if name.startswith("setup_")}
    whole = ("start", "join", "check", "place", "partition", "system")
    of_system = ("plan", "blocks", "layout", "memory")
    named = [f"setup_{name}" for name in whole] + [f"setup_system_{name}" for name in of_system]
    assert list(parts) == named
    wholes = [parts[f"setup_{name}"] for name in whole]
    assert sum(wholes) == pytest.approx(timings["setup"], rel=0.2, abs=0.01)
    assert sum(parts[f"setup_system_{name}"] for name in of_system) <= parts["setup_system"]


def test_a_result_has_the_parts_of_the_solve() -> None:
    A = cpufree.load_matrix(SMALL)
    timings = cpufree.solve(A, [1.0] * A.shape[0], engine="cpu_threads").timings
    parts = {name: seconds for name, seconds in timings.items() if name.startswith("solve_")}
    assert list(parts) == [
        f"solve_{name}" for name in ("memory", "upload", "launch", "kernel", "download")
    ]
    assert parts["solve_kernel"] == timings["kernel"] > 0.0
    assert sum(parts.values()) <= timings["solve"]


def test_phases_of_a_result_add_up_to_set_up_and_solve() -> None:
    A = cpufree.load_matrix(SMALL)
    result = cpufree.solve(A, np.ones((A.shape[0], 2)), engine="cpu_threads")
    whole = result.timings["setup"] + result.timings["solve"]
    assert sum(result.phases.values()) == pytest.approx(whole, rel=1e-9)
    assert {"setup_partition", "setup_system_layout", "solve_kernel"} <= set(result.phases)
    assert {"setup", "setup_system", "solve", "kernel"}.isdisjoint(result.phases)


def test_disjoint_phases_name_what_their_whole_takes_besides() -> None:
    seconds = {"read": 4.0, "setup": 3.0, "setup_a": 1.0, "setup_a_b": 0.25, "setup_c": 1.5}
    assert disjoint(seconds) == {
        "read": 4.0,
        "setup_a_b": 0.25,
        "setup_a_rest": 0.75,
        "setup_c": 1.5,
        "setup_rest": 0.5,
    }


def test_a_process_has_started_before_its_first_line() -> None:
    program = (
        "import time; now = time.perf_counter(); from cpufree.laps import process_start; "
        "print(now - process_start())"
    )
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    age = float(done.stdout)
    assert -0.01 < age < time.perf_counter() - begin + 0.02  # the system tells it to 10 ms
    assert age > 0.0


def test_a_report_names_whole_times_alone() -> None:
    A = cpufree.load_matrix(SMALL)
    result = cpufree.solve(A, [1.0] * A.shape[0], engine="cpu_threads")
    assert "setup " in repr(result)
    assert "setup_" not in repr(result)


@pytest.mark.parametrize("engine", ["nvshmem", "nccl"])
def test_a_library_starts_before_and_is_waited_for_after(calls: list[Any], engine: str) -> None:
    with remote.starting(placement(engine), 1000):
        calls.append("work")
    assert calls == [(None, engine, "library.so", 3, 1000), "work", f"awaited {engine}"]


def test_a_library_is_waited_for_where_the_work_fails(calls: list[Any]) -> None:
    with pytest.raises(UnsupportedError), remote.starting(placement("nvshmem"), 1000):
        raise UnsupportedError("the work")
    assert calls[-1] == "awaited nvshmem"


def test_the_error_of_the_work_is_told_and_not_that_of_the_start(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(engine: str) -> None:
        raise EngineError("the start")

    monkeypatch.setattr("cpufree._core.await_remote", fails)
    with (
        pytest.raises(UnsupportedError, match="the work"),
        remote.starting(placement("nvshmem"), 1),
    ):
        raise UnsupportedError("the work")


def test_other_engines_start_none(calls: list[Any]) -> None:
    with remote.starting(placement("cpu_processes"), 1000):
        pass
    assert calls == []


def test_room_is_for_vectors_of_more_than_the_mean_length() -> None:
    assert remote.room_for(rows=800, value_bytes=8, pes=8) >= 3 * 2 * 100 * 8


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return a list of what was looked for, and by which thread not."""
    seen: list[str] = []

    def look(what: str) -> None:
        assert threading.current_thread() is not threading.main_thread()
        seen.append(what)
        raise UnsupportedError("told to who asks")

    monkeypatch.setattr("cpufree._core.gpus", lambda: look("gpus"))
    monkeypatch.setattr(remote.Library, "version", lambda *_: look("version"))
    yield seen


def ended() -> None:
    """Wait for the threads that look ahead."""
    for thread in remote._looking:
        thread.join(120)


def test_what_a_rank_waits_for_is_looked_for_ahead(looked: list[str]) -> None:
    remote.discover_early(gpus.find, remote.NCCL.version)
    ended()
    assert sorted(looked) == ["gpus", "version"]


def test_the_library_is_not_looked_for_before_it_is_wanted(looked: list[str]) -> None:
    remote.discover_early(gpus.find)
    ended()
    assert looked == ["gpus"]


def test_the_environment_is_changed_when_nobody_looks_ahead_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(remote.Library, "version", lambda *_: "3.4.5")
    monkeypatch.setattr(remote, "preset_remote", lambda *_, **__: done.append("preset"))

    def look() -> None:
        time.sleep(0.2)
        done.append("looked")

    remote.discover_early(look)
    team: Any = SimpleNamespace(size=2, size_here=2, agree=lambda *_: None)
    remote.prepare(team, "nvshmem")
    assert done == ["looked", "preset"]
    assert remote._looking == []


def test_who_asks_while_the_library_is_looked_for_waits_for_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    go = threading.Event()

    def run(*words: Any, **more: Any) -> Any:
        asked.append(words)
        go.wait(120)
        return SimpleNamespace(stdout=b"[3, 4, 5]", stderr=b"", returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(remote.NVSHMEM.version("once.so")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(120)
    assert found == ["3.4.5", "3.4.5"]
    assert len(asked) == 1


@pytest.mark.parametrize("module", ["scipy.sparse.linalg", "scipy.spatial", "scipy.ndimage"])
def test_a_rank_loads_no_more_of_scipy_than_it_needs(module: str) -> None:
    program = (
        "import sys, cpufree.solvers.solver, cpufree; "
        "cpufree.load_matrix('gen:poisson2d?nx=9,ny=9'); "
        f"sys.exit({module!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
