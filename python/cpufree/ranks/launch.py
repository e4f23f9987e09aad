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
from types import FrameType

from ..env import for_rank
from ..errors import EngineError

# Seconds for the others to end by themselves once one has failed: they know why, and say so.
GRACE = 8.0
_KILL_SECONDS = 2.0  # between asking and forcing
_NAP = 0.02
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def launch(command: Sequence[str], ranks: int) -> int:
    """Run the command as so many ranks; return the exit code for all.

    That is the code of the lowest rank that has failed by itself, else 128 and the signal that has
    ended one, else 0. Ctrl-C is left to the ranks, which get it as well; a second one ends them.

    Raises:
        EngineError: a rank cannot be started, or was killed and no other one has told of it.
    """
    with tempfile.TemporaryDirectory(prefix="cpufree-run-") as folder, _signals() as asked_to_end:
        processes: list[subprocess.Popen[bytes]] = []
        try:
            job = secrets.token_hex(16)
            for rank in range(ranks):
                environment = for_rank(rank, ranks, f"local:{folder}/rank0", job)
                processes.append(_start(command, rank, environment))
            _watch(processes, asked_to_end)
        finally:
            _end(processes)
    return _exit_code([process.returncode for process in processes])


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


def _watch(processes: Sequence[subprocess.Popen[bytes]], asked_to_end: list[int]) -> None:
    """Return once all have ended, or it is time to end those that have not."""
    end = float("inf")
    while any(process.poll() is None for process in processes):
        if any(process.returncode for process in processes):
            end = min(end, time.monotonic() + GRACE)
        ended = signal.SIGTERM in asked_to_end or asked_to_end.count(signal.SIGINT) > 1
        if ended or time.monotonic() > end:
            return
        time.sleep(_NAP)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End those that still run."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    limit = time.monotonic() + _KILL_SECONDS
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, limit - time.monotonic()))
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


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
