"""Processes that the launcher has started: how they are, and their end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

Process = subprocess.Popen[bytes]

_KILL_SECONDS = 2.0  # between asking and forcing
_LAST_SECONDS = 10.0  # from forcing to the end: a driver may take long, or not return


def say(line: str) -> None:
    """Print on stderr, which may be a terminal that is gone."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def end(processes: Sequence[Process]) -> None:
    """End those that still run, and what those have started."""
    running = [process for process in processes if process.poll() is None]
    with _handles([pid for process in running for pid in descendants(process.pid)]) as others:
        _end_all(processes, others)
    for rank, process in enumerate(processes):
        if process.returncode is None:
            say(
                f"cpufree: error: rank {rank} (process {process.pid}) was killed, but does not "
                "end: it is stuck in the driver or the file system"
            )


def _end_all(processes: Sequence[Process], others: Sequence[int]) -> None:
    """Ask them to end, and force those that have not; `others` by their handles."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.send_signal(signal.SIGCONT)  # one that is stopped hears it, too
    _signal(others, signal.SIGTERM)
    _wait(processes, _KILL_SECONDS)
    for process in processes:
        if process.poll() is None:
            process.kill()
    _signal(others, signal.SIGKILL)
    _wait(processes, _LAST_SECONDS)


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found + [deeper for child in found for deeper in descendants(child)]


@contextlib.contextmanager
def _handles(pids: Sequence[int]) -> Iterator[list[int]]:
    """Give handles of processes, which mean no others once these have ended."""
    with contextlib.ExitStack() as stack:
        found = []
        for pid in pids:
            with contextlib.suppress(OSError):
                found.append(os.pidfd_open(pid))
                stack.callback(os.close, found[-1])
        yield found


def _signal(handles: Sequence[int], number: signal.Signals) -> None:
    for handle in handles:
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(handle, number)


def _wait(processes: Sequence[Process], seconds: float) -> None:
    """Wait for all to end, so long at most."""
    limit = time.monotonic() + seconds
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, limit - time.monotonic()))
