"""The launcher for one machine: starts a program as several ranks, which end together."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from cpufree.distributed.ends import spell, write
from cpufree.env import for_rank
from cpufree.errors import EngineError

# Seconds for the others to end by themselves once one has failed: they know why, and say so.
GRACE = 8.0
# Seconds that some ranks may be stopped (SIGSTOP) while others are not, which wait for them.
STOPPED_LIMIT = 60.0
_KILL_SECONDS = 2.0  # between asking and forcing
_LAST_SECONDS = 10.0  # from forcing to the end: a driver may take its time, or for ever
_NAP = 0.02
_LONGEST_NAP = 1.0  # that counts: the launcher itself may be stopped with its ranks
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def launch(command: Sequence[str], ranks: int) -> int:
    """Run the command as so many ranks; return the exit code for all.

    That is the code of the lowest rank that has failed by itself, else 128 and the signal that has
    ended one, else 0. Ctrl-C is left to the ranks, which get it as well; a second one ends them.

    Raises:
        EngineError: a rank cannot be started, or was stopped for too long.
    """
    with tempfile.TemporaryDirectory(prefix="cpufree-run-") as folder, _signals() as asked_to_end:
        processes: list[subprocess.Popen[bytes]] = []
        try:
            job, secret = secrets.token_hex(16), secrets.token_hex(32)
            meeting = Path(folder) / "rank0"
            for rank in range(ranks):
                environment = for_rank(rank, ranks, f"local:{meeting}", job, secret)
                processes.append(_start(command, rank, environment))
            _watch(processes, asked_to_end, meeting)
        finally:
            _end(processes)
    return _exit_code([_code(process) for process in processes])


def _start(
    command: Sequence[str], rank: int, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=None if rank == 0 else subprocess.DEVNULL,
            preexec_fn=functools.partial(end_with, os.getpid(), signal.SIGTERM),
        )
    except OSError as error:
        raise EngineError(f"rank {rank} cannot be started: {error}") from error


def end_with(parent: int, number: signal.Signals) -> None:
    """Have Linux send this process a signal when `parent` ends, however that ends.

    Where it has ended already, this process does, too: at once, for it has just begun.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and requests to end, instead of ending."""
    got: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        got.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(
    processes: Sequence[subprocess.Popen[bytes]], asked_to_end: list[int], meeting: Path
) -> None:
    """Return once all have ended, or it is time to end those that have not."""
    ends: dict[int, str] = {}
    end = float("inf")
    looked, paused = time.monotonic(), 0.0
    while True:
        codes = [process.poll() for process in processes]
        running = [rank for rank, code in enumerate(codes) if code is None]
        if not running:
            return
        if len(ends) < len(codes) - len(running):
            new = {rank: spell(code) for rank, code in enumerate(codes) if code is not None}
            ends = {**ends, **new}  # who has ended first comes first
            write(meeting, ends)
        now = time.monotonic()
        stopped = [rank for rank in running if _is_stopped(processes[rank])]
        if any(codes):  # who is stopped ends in no time, however long that is
            end = min(end, now + GRACE) if len(stopped) < len(running) else now
        ended = signal.SIGTERM in asked_to_end or asked_to_end.count(signal.SIGINT) > 1
        if ended or now >= end:
            if len(stopped) < len(running) and not ended:
                _tell_end(codes)
            return
        some = 0 < len(stopped) < len(codes)
        paused = paused + min(now - looked, _LONGEST_NAP) if some else 0.0
        looked = now
        if paused > STOPPED_LIMIT:
            raise EngineError(
                f"rank {stopped[0]} (process {processes[stopped[0]].pid}) has been stopped for "
                f"{STOPPED_LIMIT:g} s, by SIGSTOP or the like, while others wait for it: all are "
                "ended"
            )
        time.sleep(_NAP)


def _tell_end(codes: Sequence[int | None]) -> None:
    """Say which rank has failed: those that may know why are to be ended."""
    rank, code = next((rank, code) for rank, code in enumerate(codes) if code)
    print(
        f"cpufree: rank {rank} has ended {spell(code)}; those that still ran {GRACE:g} s later "
        "are ended",
        file=sys.stderr,
    )


def _is_stopped(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process that we have started is stopped, until SIGCONT."""
    try:
        how = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, how) is not None
    except OSError:
        return False


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End those that still run."""
    for process in processes:
        if process.poll() is None:
            (process.kill if _is_stopped(process) else process.terminate)()
    _wait(processes, _KILL_SECONDS)
    for process in processes:
        if process.poll() is None:
            process.kill()
    _wait(processes, _LAST_SECONDS)
    for rank, process in enumerate(processes):
        if process.returncode is None:
            print(
                f"cpufree: error: rank {rank} (process {process.pid}) was killed, but does not "
                "end: it is stuck in the driver or the file system",
                file=sys.stderr,
            )


def _wait(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """Wait for all to end, so long at most."""
    limit = time.monotonic() + seconds
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, limit - time.monotonic()))


def _code(process: subprocess.Popen[bytes]) -> int:
    """Return how a process has ended, as subprocess says it, also where it is about to."""
    return -signal.SIGKILL if process.returncode is None else process.returncode


def _exit_code(codes: Sequence[int]) -> int:
    by_itself = [code for code in codes if code > 0]
    if by_itself:
        return by_itself[0]
    for rank, code in enumerate(codes):
        if code < 0:
            name = signal.Signals(-code).name
            print(f"cpufree: error: rank {rank} was ended by {name}", file=sys.stderr)
            return 128 - code
    return 0


# `python -m cpufree`, but for the folder in which it is called: a user's csv.py there is not to be
# taken for Python's.
_COMMAND = (
    "import sys; sys.path[:] = filter(None, sys.path); from cpufree.__main__ import main; main()"
)


def program(words: Sequence[str], own_commands: Sequence[str]) -> list[str]:
    """Return the command line for what follows `cpufree run -n N`: our command, or a program."""
    if words[0] in own_commands:
        return [sys.executable, "-c", _COMMAND, *words]
    if words[0].endswith(".py") and not os.access(words[0], os.X_OK):
        return [sys.executable, *words]
    return list(words)
