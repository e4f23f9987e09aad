"""The contender `nvshmem_on_stream`: its processes, with a stand-in for the extension."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from paths import SUPPORT

from cpufree.bench.contenders import nvshmem
from cpufree.bench.contenders import registry as contenders
from cpufree.bench.contenders.nvshmem_contender import NvshmemContender
from cpufree.bench.core import rank_processes
from cpufree.bench.core.problem_folder import read_arrays
from cpufree.env import for_nvshmem
from cpufree.errors import EngineError, InvalidInputError, UnsupportedError

FAKE = str(SUPPORT / "ranks/fake_nvshmem_rank.py")
SOLVE = {"do": "solve", "method": "cg", "iterations": 7, "max_iterations": 9, "save": None}


@pytest.fixture
def contender(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the contender with ranks that are stand-ins; end what a test leaves."""
    monkeypatch.setattr(nvshmem, "RANK", (sys.executable, FAKE))
    monkeypatch.setattr(nvshmem, "find", lambda: "/where/it/is.so")
    monkeypatch.setattr(rank_processes, "GRACE_SECONDS", 0.5)
    contender = NvshmemContender()
    yield contender
    contender.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    arrays = {
        "indptr": np.arange(6, dtype=np.int64),
        "indices": np.arange(5, dtype=np.int32),
        "data": np.full(5, 2.0),
        "b": np.ones(5),
        "part": np.array([0, 1, 2, 1, 1], np.int32),
    }
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
    return tmp_path


def options(**tuning: Any) -> dict[str, Any]:
    return {"pes": 3, "gpus": [4, 5, 6, 7], "preconditioner": "none", "tuning": tuning}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children() -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            found.update(map(int, task.read_text().split()))
    return set(filter(is_alive, found))


def test_nvshmem_ranks_get_the_id_of_rank_0(contender: NvshmemContender, folder: Path) -> None:
    facts = contender.load(folder, options(lag=3))
    assert facts["nvshmem_id"] == f"id of {facts['pid']}"
    assert (facts["rank"], facts["gpus"]) == (0, [4, 5, 6])
    assert facts["nvshmem_library"] == "/where/it/is.so"
    assert facts["heap"] == nvshmem.heap_bytes(read_arrays(folder), 3)
    assert facts["environment"]["NVSHMEM_DISABLE_NVLS"] == "1"


def test_nvshmem_ranks_write_the_rows_that_are_theirs(
    contender: NvshmemContender, folder: Path
) -> None:
    contender.load(folder, options())
    save = folder / "x.npy"
    for _ in range(2):
        answer = contender.solve({**SOLVE, "save": str(save)})
        assert np.load(save).tolist() == [1.0, 2.0, 3.0, 2.0, 2.0]
    assert (answer["iterations"], answer["seconds"]) == (7, 0.25)
    assert "ok" not in answer


def test_nvshmem_ranks_end_with_the_problem(contender: NvshmemContender, folder: Path) -> None:
    before = children()
    contender.load(folder, options())
    first = children() - before
    assert len(first) == 3
    contender.load(folder, options())
    assert not any(map(is_alive, first))
    contender.close()
    assert children() == before


@pytest.mark.parametrize("step", ["at_load", "at_solve"])
@pytest.mark.parametrize("how", ["fail", "crash"])
def test_nvshmem_rank_that_fails_ends_all_with_its_message(
    contender: NvshmemContender, folder: Path, step: str, how: str
) -> None:
    before = children()
    reason = {"fail": "PE 1: the GPU is on fire", "crash": "NVSHMEM: aborting"}[how]
    with pytest.raises(EngineError, match=reason):  # though the others wait for it
        contender.load(folder, options(**{step: ["hang", how, "hang"]}))
        contender.solve(SOLVE)
    assert children() == before
    with pytest.raises(InvalidInputError, match="after a failure"):
        contender.solve(SOLVE)


def test_nvshmem_reason_is_told_and_not_that_others_fell_silent(
    contender: NvshmemContender, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_processes, "GRACE_SECONDS", 120.0)
    with pytest.raises(EngineError, match="PE 2: the GPU is on fire"):
        contender.load(folder, options(at_load=["crash", "crash", "fail"]))


def test_nvshmem_ranks_that_refuse_together_live_on(
    contender: NvshmemContender, folder: Path
) -> None:
    contender.load(folder, options())
    with pytest.raises(UnsupportedError, match="only the whole"):
        contender.solve({**SOLVE, "variant": "no-comm"})
    assert contender.solve(SOLVE)["iterations"] == 7


def test_nvshmem_library_that_is_missing_is_named(
    contender: NvshmemContender, folder: Path
) -> None:
    with pytest.raises(UnsupportedError, match="pip install nvidia-nvshmem-cu13"):
        contender.load(folder, options(nvshmem_library="missing"))


def test_nvshmem_needs_a_gpu_for_each_pe(contender: NvshmemContender, folder: Path) -> None:
    with pytest.raises(UnsupportedError, match="3 PEs need 3 GPUs"):
        contender.load(folder, {**options(), "gpus": [0]})
    with pytest.raises(UnsupportedError, match="needs GPUs"):
        contender.load(folder, {**options(), "gpus": None})


def test_nvshmem_ranks_die_with_their_worker(folder: Path) -> None:
    program = (
        "import sys; from cpufree.bench.contenders import nvshmem;"
        f"nvshmem.RANK = (sys.executable, {FAKE!r});"
        "from cpufree.bench.contenders.nvshmem_contender import NvshmemContender;"
        "from cpufree.bench.worker import serve; serve(NvshmemContender())"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdin is not None and worker.stdout is not None
    request = {"do": "load", "folder": str(folder), "options": options(at_solve=["hang"] * 3)}
    worker.stdin.write(json.dumps(request).encode() + b"\n")
    worker.stdin.flush()
    rank = json.loads(worker.stdout.readline())["facts"]["pid"]
    worker.stdin.write(json.dumps(SOLVE).encode() + b"\n")
    worker.stdin.flush()
    assert is_alive(rank)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    end = time.monotonic() + 120.0
    while is_alive(rank) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_alive(rank)


@pytest.mark.parametrize(
    ("library", "why"),
    [
        ("fine", ""),
        ("missing", "pip install nvidia-nvshmem-cu13"),
        ("broken", r"\(status 139\): a constructor crashed"),
        ("slow", "could not be tried"),
    ],
)
def test_nvshmem_is_probed_in_another_process(
    monkeypatch: pytest.MonkeyPatch, library: str, why: str
) -> None:
    monkeypatch.setattr(nvshmem, "RANK", (sys.executable, FAKE))
    monkeypatch.setattr(nvshmem, "find", lambda: library)
    monkeypatch.setattr(nvshmem, "PROBE_SECONDS", 1.0 if library == "slow" else 60.0)
    found = nvshmem.problem()
    assert found == "" if why == "" else re.search(why, found)


@pytest.mark.parametrize(("gpus", "probed"), [(True, "no NVSHMEM"), (False, "there is no GPU")])
def test_nvshmem_is_listed_with_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, gpus: bool, probed: str
) -> None:
    kind = {"name": "nvshmem_on_stream", "methods": ["cg"], "needs": "NVSHMEM"}
    kind |= {"available": gpus, "why_not": "" if gpus else "there is no GPU"}
    module = ModuleType("cpufree._baselines")
    module.kinds = lambda: [kind]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cpufree._baselines", module)
    monkeypatch.setattr(nvshmem, "problem", lambda: "no NVSHMEM")
    assert contenders.find()["nvshmem_on_stream"].why_not == probed


def test_nvshmem_environment_keeps_multicast_off_and_networks_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NVSHMEM_DISABLE_NVLS", "0")
    monkeypatch.setenv("NVSHMEM_DISABLE_NCCL", "0")
    there = for_nvshmem(12345)
    assert there["NVSHMEM_DISABLE_NVLS"] == "1"
    assert there["NVSHMEM_DISABLE_NCCL"] == "0"  # a matter of taste
    assert there["NVSHMEM_REMOTE_TRANSPORT"] == "none"
    assert there["NVSHMEM_SYMMETRIC_SIZE"] == "12345"
    assert there["CUDA_MODULE_LOADING"] == "EAGER"


def test_nvshmem_heap_suffices_for_the_most_uneven_partition(folder: Path) -> None:
    a = read_arrays(folder)
    # The longest vector has all 5 rows; PE 1 sends its 3 rows to both others at most.
    needed = 2 * 5 * 8 + 2 * 3 * 8
    assert nvshmem.heap_bytes(a, 3) == needed + nvshmem.OWN_BYTES
