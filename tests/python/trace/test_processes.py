"""Traces of PEs in several processes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ranks_here import PATIENCE, SMALL, clean

import cpufree
from cpufree.trace.timeline import Timeline

RANKS = 2


@pytest.fixture(scope="module", params=["", "1"], ids=["one node", "several nodes"])
def trace(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> cpufree.trace.Trace:
    path = tmp_path_factory.mktemp("trace") / "t.pftrace"
    words = [sys.executable, "-m", "cpufree", "run", "-n", str(RANKS), "solve", SMALL, "--quiet"]
    env = clean() | ({"CPUFREE_NODE_SIZE": request.param} if request.param else {})
    subprocess.run([*words, "--trace", path], env=env, check=True, timeout=3 * PATIENCE)
    return cpufree.trace.load(path)


def test_one_file_has_the_blocks_of_all_processes(trace: cpufree.trace.Trace) -> None:
    assert trace.facts["engine"] == "cpu_processes"
    assert sorted(set(trace.tracks[:, 0].tolist())) == [*range(RANKS)]


def test_messages_between_processes_are_seen_after_they_are_sent(
    trace: cpufree.trace.Trace,
) -> None:
    messages = Timeline(trace).messages
    between = trace.pe[messages.sent] != trace.pe[messages.seen]
    assert between.any()
    assert (trace.time[messages.seen] > trace.time[messages.sent]).all()


def test_payload_of_processes_is_that_of_the_halo(trace: cpufree.trace.Trace) -> None:
    assert np.array_equal(trace.bytes, trace.bytes.T)
    assert trace.bytes[0, 1] % (8 * trace.facts["exchanges"]) == 0
    assert trace.bytes[0, 1] > 0


def test_each_message_between_processes_is_known(trace: cpufree.trace.Trace) -> None:
    waits = Timeline(trace).waits
    assert len(waits.begin) > 0
    assert (waits.sent >= 0).all()


def test_a_program_of_processes_is_traced(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nimport numpy as np\nimport cpufree\n\n\n"
        "@cpufree.program\ndef smooth(u, v, turns):\n    for _ in range(turns):\n"
        "        v[1:-1] = 0.5 * (u[:-2] + u[2:])\n        u[1:-1] = 0.5 * (v[:-2] + v[2:])\n\n\n"
        "u = np.arange(4000.0).reshape(100, 40)\n"
        "smooth.run((u, u.copy(), 10), engine='cpu_processes', trace=sys.argv[1])\n"
    )
    path = tmp_path / "t.pftrace"
    words = [sys.executable, "-m", "cpufree", "run", "-n", str(RANKS), str(script), str(path)]
    subprocess.run(words, env=clean(), check=True, timeout=3 * PATIENCE)
    trace = cpufree.trace.load(path)
    assert trace.facts["engine"] == "cpu_processes"
    assert trace.bytes.tolist() == [[0, 10 * 40 * 8 * 2], [10 * 40 * 8 * 2, 0]]
    assert (Timeline(trace).waits.sent >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize(
    ("fault", "named"),
    [("SIGKILL", "was killed, or has crashed"), ("SIGSTOP", "has been stopped for")],
)
def test_a_process_that_is_lost_while_others_wait_is_named(
    tmp_path: Path, fault: str, named: str, rank: int
) -> None:
    script = tmp_path / "lost.py"
    script.write_text(
        "import os, signal, sys\nimport numpy as np\nimport cpufree\n\n\n"
        "def progress(iteration, residual):\n"
        f"    if os.environ['CPUFREE_RANK'] == '{rank}':\n"
        f"        os.kill(os.getpid(), signal.{fault})\n\n\n"
        "A = cpufree.generate.poisson1d(400_000)\n"
        "cpufree.solve(A, np.ones(400_000), engine='cpu_processes', pc='none', rtol=1e-12,\n"
        "              progress=progress, wait_limit=2.0, trace=cpufree.trace.Recording(\n"
        "                  on_wait=lambda found: print(found.text, flush=True), after=0.6))\n"
    )
    words = [sys.executable, "-m", "cpufree", "run", "-n", "3", str(script)]
    ended = subprocess.run(
        words, env=clean(), timeout=3 * PATIENCE, text=True, capture_output=True, check=False
    )
    assert ended.returncode != 0
    assert re.search(rf"rank {rank} \([^)]*\) .*{named}", ended.stdout + ended.stderr)
    if fault == "SIGSTOP":  # running kernels of the others show it before the waits are given up
        assert f"the process of PE {rank} has given no sign of life for" in ended.stdout
