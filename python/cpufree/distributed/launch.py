"""The launcher for one machine: starts a program as several ranks, which end together."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from cpufree.distributed import processes as processes_of
from cpufree.distributed.ends import spell, write
from cpufree.distributed.facts import INTERRUPTED
from cpufree.distributed.guard import Guard, guarding
from cpufree.distributed.output import Output, make_room
from cpufree.distributed.processes import Process, say
from cpufree.env import for_rank
from cpufree.errors import EngineError

# Seconds for the others to end by themselves once one has failed: they know why, and say so.
GRACE = 8.0
_NAP = 0.02
_PR_SET_PDEATHSIG = 1  # of Linux's prctl
_REQUESTS_TO_END = (signal.SIGTERM, signal.SIGHUP)


def launch(command: Sequence[str], ranks: int, label: bool = False) -> int:
    """Run the command as `ranks` ranks; return the exit code for all.

    What they print comes in whole lines, with `label` each with the number of its rank.

    That is 128 and the signal where SIGTERM or SIGHUP has ended the launcher; else 130 where Ctrl-C
    has ended a rank, else the code of the lowest rank that has failed by itself, else 128 and the
    signal that has ended one, else 0.
    Ctrl-C is left to the ranks, which get it as well; one that the launcher alone gets is passed
    on to them. A second one ends them. Nothing outlives the launcher, however it ends.

    Raises:
        EngineError: a rank cannot be started.
    """
    with (
        _signals() as got,
        tempfile.TemporaryDirectory(prefix="cpufree-run-") as folder,
        guarding(folder) as guard,
    ):
        processes: list[Process] = []
        output = Output(label)
        limits = make_room(ranks)
        try:
            job, secret = secrets.token_hex(16), secrets.token_hex(32)
            meeting = Path(folder) / "rank0"
            for rank in range(ranks):
                environment = for_rank(rank, ranks, f"local:{meeting}", job, secret)
                with output.of_rank(rank) as writes_to:
                    processes.append(_start(command, rank, environment, writes_to, limits))
            output.start()
            _Watch(processes, got, guard, meeting).until_the_end()
        finally:
            processes_of.end(processes)
            output.finish(lambda: _is_hurried(got))
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    for number in got:
        if number in _REQUESTS_TO_END:
            return 128 + number
    return _exit_code([_code(process) for process in processes])


def _is_hurried(got: Sequence[int]) -> bool:
    """Return whether the launcher is to end at once: a first Ctrl-C is for the ranks."""
    return any(number in got for number in _REQUESTS_TO_END) or got.count(signal.SIGINT) > 1


def _start(
    command: Sequence[str],
    rank: int,
    environment: dict[str, str],
    writes_to: tuple[int, int],
    limits: tuple[int, int],
) -> Process:
    try:
        return Process(
            command,
            env=environment,
            stdin=None if rank == 0 else subprocess.DEVNULL,
            stdout=writes_to[0],
            stderr=writes_to[1],
            preexec_fn=functools.partial(_begin, os.getpid(), limits, _COMMAND in command),
        )
    except OSError as error:
        raise EngineError(f"rank {rank} cannot be started: {error}") from error


def _begin(launcher: int, limits: tuple[int, int], own: bool) -> None:
    """Prepare a rank: it hears Ctrl-C, also where a shell has started the launcher deaf to it.

    Commands of our own hear it once they can say so: while it starts, Python answers with a
    traceback.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if own:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    end_with(launcher, signal.SIGKILL)


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

    before = {}
    for number in (signal.SIGINT, *_REQUESTS_TO_END):
        if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue  # nohup
        before[number] = signal.signal(number, note)
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Watch:
    """Watches ranks until all have ended, or it is time to end those that have not."""

    def __init__(
        self, processes: Sequence[Process], got: Sequence[int], guard: Guard, meeting: Path
    ) -> None:
        self._processes, self._got, self._guard = processes, got, guard
        self._meeting = meeting
        self._ends: dict[int, str] = {}
        self._end = float("inf")  # when those that still run are ended
        self._passed_on = False

    def until_the_end(self) -> None:
        """Return once all have ended, or are to be ended."""
        while True:
            codes = [process.poll() for process in self._processes]
            if None not in codes:
                return
            self._tell_of_ends(codes)
            if self._is_asked_to_end():
                return
            if any(codes):
                self._end = min(self._end, time.monotonic() + GRACE)
            if time.monotonic() >= self._end:
                _tell_end(codes)
                return
            time.sleep(_NAP)

    def _tell_of_ends(self, codes: Sequence[int | None]) -> None:
        """Tell the ranks which of them have ended; who has ended first comes first."""
        new = {rank: spell(code) for rank, code in enumerate(codes) if code is not None}
        if len(self._ends) < len(new):
            self._ends = {**self._ends, **new}
            write(self._meeting, self._ends)

    def _is_asked_to_end(self) -> bool:
        """Return whether the ranks are to be ended now; a first Ctrl-C is passed on to them."""
        if _is_hurried(self._got):
            return True
        if signal.SIGINT in self._got and not self._passed_on:
            self._passed_on = True
            if not self._guard.saw(signal.SIGINT):
                for process in self._processes:
                    process.send_signal(signal.SIGINT)
        return False


def _tell_end(codes: Sequence[int | None]) -> None:
    """Say which rank has failed: those that may know why are to be ended."""
    rank, code = next((rank, code) for rank, code in enumerate(codes) if code)
    say(
        f"cpufree: rank {rank} has ended {spell(code)}; ranks that still ran {GRACE:g} s later "
        "are ended"
    )


def _code(process: Process) -> int:
    """Return how a process has ended, as subprocess says it, also where it is about to."""
    return -signal.SIGKILL if process.returncode is None else process.returncode


def _exit_code(codes: Sequence[int]) -> int:
    if not {INTERRUPTED, -signal.SIGINT}.isdisjoint(codes):
        return INTERRUPTED
    by_itself = [code for code in codes if code > 0]
    if by_itself:
        return by_itself[0]
    for rank, code in enumerate(codes):
        if code < 0:
            say(f"cpufree: error: rank {rank} was ended by {signal.Signals(-code).name}")
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
