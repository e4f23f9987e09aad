"""Signals to the launcher, and to single ranks: the whole job ends, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from ranks_here import LIMIT, PATIENCE, children, clean, cli, wait_until, wait_until_at_work

LONG = ["solve", "gen:poisson1d?n=400000", "--rtol", "1e-10", "--pc", "none"]


@pytest.fixture(autouse=True)
def no_job_is_left() -> Iterator[None]:
    """Kill what a test that fails has left: its ranks would take the cores of all tests behind."""
    Job.begun.clear()
    yield
    for job in Job.begun:
        for pid in members_of(job.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        job.process.wait()


class Job:
    """A launcher in a session of its own, with a folder for all temporary files."""

    begun: ClassVar[list[Job]] = []

    def __init__(self, folder: Path, words: list[str], **how: object) -> None:
        self.folder = folder
        self.begun.append(self)
        self.process = subprocess.Popen(
            [sys.executable, *cli(["run", "-n", "2", *words])],
            env=clean() | {"CPUFREE_JOIN_LIMIT": LIMIT, "TMPDIR": str(folder), "NO_COLOR": "1"},
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,  # type: ignore[call-overload]
        )

    def ranks(self) -> list[int]:
        """Return the processes of the ranks, once there are two."""
        wait_until(lambda: len(children(self.process.pid)) == 2)
        return children(self.process.pid)

    def ends_with(self, code: int) -> str:
        """Check how the launcher ends, and that nothing is left; return what was said."""
        left = members_of(self.process.pid)
        _, said = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == code, said
        wait_until(lambda: not any(is_alive(pid) for pid in left))
        wait_until(lambda: not any(self.folder.iterdir()))
        return said


def members_of(session: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            found.append(int(folder.name))
    return found


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that waits for its parent to look does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def at_work(folder: Path) -> Job:
    """Return a job whose ranks compute."""
    job = Job(folder, LONG)
    wait_until_at_work(lambda: children(job.process.pid), 2)
    return job


def test_ctrl_c_of_the_launcher_alone_ends_the_solve(tmp_path: Path) -> None:
    job = at_work(tmp_path)
    os.kill(job.process.pid, signal.SIGINT)
    job.ends_with(130)


def test_ctrl_c_of_a_terminal_while_ranks_start_ends_all_without_a_traceback(
    tmp_path: Path,
) -> None:
    job = Job(tmp_path, LONG)
    job.ranks()
    os.killpg(job.process.pid, signal.SIGINT)
    assert "Traceback" not in job.ends_with(130)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.few(1)
def test_ctrl_c_of_one_rank_ends_the_solve_of_all(tmp_path: Path, rank: int) -> None:
    job = at_work(tmp_path)
    os.kill(job.ranks()[rank], signal.SIGINT)
    job.ends_with(130)


def test_ctrl_c_of_one_rank_ends_others_that_wait_for_it(tmp_path: Path) -> None:
    program = (
        "import time; from cpufree import distributed; team = distributed.join()\n"
        "with team.working():\n"
        f"    open({str(tmp_path)!r} + f'/{{team.rank}}', 'w').close()\n"
        "    time.sleep(600) if team.rank == 1 else team.barrier('the end')"
    )
    job = Job(tmp_path, [sys.executable, "-c", program])
    wait_until(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists())
    for rank in range(2):
        (tmp_path / str(rank)).unlink()
    os.kill(job.ranks()[1], signal.SIGINT)
    assert "RankFailedError: rank 1: interrupted" in job.ends_with(130)


def test_ctrl_c_of_the_launcher_alone_is_passed_on_once(tmp_path: Path) -> None:
    program = (
        "import signal, time; got = []\n"
        "signal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
        "print('ready', flush=True)\n"
        "while not got: time.sleep(0.02)\n"
        "time.sleep(0.5); raise SystemExit(10 + len(got))"
    )
    job = Job(tmp_path, [sys.executable, "-c", program])
    assert job.process.stdout is not None
    assert [job.process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    os.kill(job.process.pid, signal.SIGINT)
    job.ends_with(11)


def test_ctrl_c_of_a_terminal_reaches_each_rank_once(tmp_path: Path) -> None:
    program = (
        "import signal, time; got = []\n"
        "signal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
        "print('ready', flush=True)\n"
        "while not got: time.sleep(0.02)\n"
        "time.sleep(0.5); raise SystemExit(10 + len(got))"
    )
    job = Job(tmp_path, [sys.executable, "-c", program])
    assert job.process.stdout is not None
    assert [job.process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    os.killpg(job.process.pid, signal.SIGINT)
    job.ends_with(11)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.few(1)
def test_an_end_asked_of_the_launcher_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    job = at_work(tmp_path)
    os.kill(job.process.pid, number)
    assert job.ends_with(128 + number) == ""


def test_a_terminal_that_hangs_up_leaves_nothing_behind(tmp_path: Path) -> None:
    job = at_work(tmp_path)
    os.killpg(job.process.pid, signal.SIGHUP)
    job.ends_with(128 + signal.SIGHUP)


def test_nohup_keeps_the_job(tmp_path: Path) -> None:
    folder, file = tmp_path / "folder", tmp_path / "may end"
    folder.mkdir()
    program = f"import os, time\nwhile not os.path.exists({str(file)!r}): time.sleep(0.02)"
    job = Job(
        folder,
        [sys.executable, "-c", program],
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    job.ranks()
    os.killpg(job.process.pid, signal.SIGHUP)
    file.touch()
    job.ends_with(0)


def test_ranks_that_shells_have_started_end_with_them(tmp_path: Path) -> None:
    job = Job(tmp_path, ["sh", "-c", "sleep 600; true"])
    wait_until(lambda: len(members_of(job.process.pid)) == 6)  # launcher, guard, ranks, sleeps
    os.kill(job.process.pid, signal.SIGTERM)
    job.ends_with(143)


def test_a_killed_launcher_leaves_no_rank_and_no_file_behind(tmp_path: Path) -> None:
    job = at_work(tmp_path)
    os.kill(job.ranks()[1], signal.SIGSTOP)
    job.process.kill()
    job.ends_with(-signal.SIGKILL)


def test_ranks_that_ignore_requests_to_end_do_not_outlive_a_killed_launcher(
    tmp_path: Path,
) -> None:
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    job = Job(tmp_path, [sys.executable, "-c", program])
    assert job.process.stdout is not None
    assert [job.process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    job.process.kill()
    job.ends_with(-signal.SIGKILL)
