"""Workers of a benchmark: answers, crashes, hangs, nonsense; and that none is left behind."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import SUPPORT

from cpufree.bench.core import processes, worker_process
from cpufree.bench.core.keeper import Keeper
from cpufree.bench.core.protocol import serve
from cpufree.bench.core.worker_process import WorkerFailure, WorkerProcess
from cpufree.errors import UnsupportedError

PATIENCE = 120.0  # seconds until a test takes a process to hang
pytestmark = pytest.mark.skipif(not processes.PROC.is_dir(), reason="needs /proc")
FAKE = SUPPORT / "fake_worker.py"
Start = Callable[..., WorkerProcess]
ECHO = """
import json, sys
for line in sys.stdin:
    what = json.loads(line)["do"]
    {before}
    print(json.dumps({{"ok": True, "do": what}}), flush=True)
    {after}
    if what == "quit":
        break
"""


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a worker: a program of Python, or a command."""
    workers = []
    with Keeper() as keeper:

        def begin(before: str = "pass", after: str = "pass", command: Any = None) -> WorkerProcess:
            code = ECHO.format(before=before, after=after)
            workers.append(WorkerProcess("test", command or [sys.executable, "-c", code], keeper))
            return workers[-1]

        yield begin
        for worker in workers:
            worker.kill()


def alive(pid: int) -> bool:
    """Return whether a process is there, and no zombie."""
    return pid in (found := processes.processes()) and found[pid][2] != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Return whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_worker_answers(start: Start) -> None:
    worker = start()
    assert worker.ask({"do": "one"}, PATIENCE)["do"] == "one"
    assert worker.ask({"do": "two"}, PATIENCE)["do"] == "two"


def test_what_is_no_answer_is_passed_over(start: Start) -> None:
    worker = start(before="print('hello'); print([1]); print('{\"no\": 1}'); print(b'\\xff')")
    assert worker.ask({"do": "one"}, PATIENCE)["do"] == "one"


def test_flood_of_stderr_blocks_nobody(start: Start) -> None:
    worker = start(before="sys.stderr.write('x' * 3_000_000)")
    assert worker.ask({"do": "one"}, PATIENCE)["ok"]


def test_crash_is_told_with_its_signal_and_last_words(start: Start) -> None:
    worker = start(before="print('oh dear', file=sys.stderr); import os; os.abort()")
    with pytest.raises(WorkerFailure, match=r"ended without an answer \(SIGABRT\).*oh dear"):
        worker.ask({"do": "one"}, PATIENCE)
    assert not worker.alive


def test_end_of_the_process_is_told_with_its_status(start: Start) -> None:
    with pytest.raises(WorkerFailure, match=r"\(status 7\), and said nothing"):
        start(before="sys.exit(7)").ask({"do": "one"}, PATIENCE)


def test_hang_ends_at_the_deadline_and_with_the_process(start: Start) -> None:
    worker = start(before="import time; time.sleep(600)")
    with pytest.raises(WorkerFailure, match=r"gave no answer within 0.5 s"):
        worker.ask({"do": "one"}, 0.5)
    assert not processes.members(worker._process.pid)


@pytest.mark.parametrize("line", ["spam", "spam " * 1000])  # short ones come faster than read
def test_nonsense_without_end_is_a_failure(start: Start, line: str) -> None:
    worker = start(before=f"while what == 'two': print({line!r})")
    worker.ask({"do": "one"}, PATIENCE)
    with pytest.raises(WorkerFailure, match=r"no answer within 0.5 s; it said: .*spam"):
        worker.ask({"do": "two"}, 0.5)


def test_command_that_is_not_there_is_a_failure(start: Start) -> None:
    with pytest.raises(WorkerFailure, match="'no-such-program' cannot be started"):
        start(command=["no-such-program"])


def test_worker_is_stopped_between_requests(start: Start) -> None:
    worker = start()
    worker.ask({"do": "one"}, PATIENCE)
    (pid,) = processes.members(worker._process.pid)
    assert wait_until(lambda: processes.processes()[pid][2] == "T")
    assert worker.ask({"do": "two"}, PATIENCE)["ok"]


def test_ranks_that_spin_in_groups_of_their_own_are_stopped_too(start: Start) -> None:
    rank = "import os, subprocess; subprocess.Popen([sys.executable, '-c', 'while True: pass'], "
    worker = start(before=rank + "preexec_fn=os.setpgrp)")
    worker.ask({"do": "load"}, PATIENCE)
    pids = processes.members(worker._process.pid)
    assert len(pids) == 2

    def states() -> set[str]:
        there = processes.processes()
        return {there[pid][2] for pid in pids}

    assert wait_until(lambda: states() == {"T"})


def test_quit_lets_a_worker_end_by_itself(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "QUIT_SECONDS", PATIENCE)
    mark = tmp_path / "ended"
    worker = start(after=f"open({str(mark)!r}, 'w').close() if what == 'quit' else None")
    worker.ask({"do": "one"}, PATIENCE)
    worker.end()
    assert mark.exists()
    assert not alive(worker._process.pid)


def test_children_in_other_groups_and_sessions_are_killed_too(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "KILL_SECONDS", PATIENCE)
    file = tmp_path / "numbers"
    for name, array in {"data": [1.0], "indices": [0], "indptr": [0, 1], "b": [1.0]}.items():
        np.save(tmp_path / f"{name}.npy", array)
    worker = start(command=[sys.executable, str(FAKE), "family", str(file)])
    worker.ask({"do": "load", "folder": str(tmp_path)}, PATIENCE)
    failed: list[WorkerFailure] = []

    def ask() -> None:
        try:
            worker.ask({"do": "solve", "method": "cg"}, PATIENCE)
        except WorkerFailure as failure:
            failed.append(failure)

    asking = threading.Thread(target=ask)
    asking.start()
    assert wait_until(lambda: file.exists() and file.read_text().count(" ") == 2, PATIENCE)
    worker.kill()
    asking.join(PATIENCE)
    assert failed
    assert not any(alive(int(word)) for word in file.read_text().split())


def test_killed_harness_leaves_no_worker_behind(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    harness = (
        "import sys, time\n"
        "from cpufree.bench.core.keeper import Keeper\n"
        "from cpufree.bench.core.worker_process import WorkerProcess\n"
        f"code = {ECHO.format(before='pass', after='pass')!r}\n"
        "worker = WorkerProcess('test', [sys.executable, '-c', code], Keeper())\n"
        "worker.ask({'do': 'one'}, 120)\n"  # from here on it is stopped
        f"open({str(file)!r}, 'w').write(f'{{worker._process.pid}}\\n')\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", harness])
    try:
        assert wait_until(lambda: file.exists() and file.read_text().endswith("\n"), PATIENCE)
        pid = int(file.read_text())
        assert alive(pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert wait_until(lambda: not alive(pid))


class Adder:
    """A contender that adds, and lacks everything else."""

    name = "adder"

    def __init__(self) -> None:
        self.calls: list[str] = []

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Return what was given."""
        self.calls.append("load")
        return {"folder": str(folder), **options}

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Add, or fail."""
        if request["method"] == "lacking":
            raise UnsupportedError("not this one")
        return {"seconds": 1 / request["over"], "split": None, "residual": float("nan")}

    def close(self) -> None:
        """Note the call."""
        self.calls.append("close")


def answers_to(*requests: Any) -> tuple[list[dict[str, Any]], Adder]:
    """Return what `serve` answers, and the contender."""
    out, adder = io.StringIO(), Adder()
    lines = [r if isinstance(r, str) else json.dumps(r) for r in requests]
    serve(adder, io.StringIO("\n".join(lines) + "\n"), out)
    return [json.loads(line) for line in out.getvalue().splitlines()], adder


def test_serve_answers_load_with_facts_and_solve_without_nan() -> None:
    load = {"do": "load", "folder": "/f", "options": {"pes": 2}}
    (facts, solved), _ = answers_to(load, {"do": "solve", "method": "cg", "over": 2})
    assert facts == {"ok": True, "facts": {"folder": "/f", "pes": 2}}
    assert solved == {"ok": True, "seconds": 0.5, "split": None, "residual": None}


def test_serve_tells_what_is_lacking_from_what_is_wrong() -> None:
    (lacking, wrong), _ = answers_to(
        {"do": "solve", "method": "lacking"}, {"do": "solve", "method": "cg", "over": 0}
    )
    assert lacking == {"ok": False, "error": "not this one", "unsupported": True}
    assert wrong["error"].startswith("ZeroDivisionError: ") and not wrong["unsupported"]


def test_serve_lives_on_after_requests_that_are_none() -> None:
    found, _ = answers_to("no json", "[1]", {"do": "dance"}, {"do": "quit"})
    assert [answer["ok"] for answer in found] == [False, False, False, True]
    assert "load, solve and quit are known" in found[2]["error"]


def test_serve_closes_before_another_load_and_at_the_end_of_input() -> None:
    load = {"do": "load", "folder": "/f", "options": {}}
    _, adder = answers_to(load, load)
    assert adder.calls == ["close", "load", "close", "load", "close"]


def test_prints_of_a_contender_go_to_stderr() -> None:
    code = (
        "import os\n"
        "from cpufree.bench.worker import serve\n"
        "class Loud:\n"
        "    def load(self, folder, options):\n"
        "        print('from Python'); os.write(1, b'from C\\n'); return {}\n"
        "    def close(self): pass\n"
        "serve(Loud())\n"
    )
    request = json.dumps({"do": "load", "folder": "/", "options": {}}) + "\n"
    done = subprocess.run(
        [sys.executable, "-c", code], input=request, capture_output=True, text=True, timeout=120
    )
    assert json.loads(done.stdout) == {"ok": True, "facts": {}}
    assert "from Python" in done.stderr and "from C" in done.stderr


def test_unknown_built_in_contender_is_refused_with_the_known_ones() -> None:
    command = [sys.executable, "-m", "cpufree.bench.worker", "nobody"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "'nobody'; there are cpufree, scipy, single_gpu" in done.stderr


def test_processes_tell_parent_and_session() -> None:
    parent, session, state = processes.processes()[os.getpid()]
    assert (parent, session) == (os.getppid(), os.getsid(0))
    assert state in "RS"
