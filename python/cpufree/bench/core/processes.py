"""Processes of a session: found, stopped, continued and killed, whatever groups they are in.

A worker is started as the leader of a session of its own. What it starts stays in the session even
in process groups of its own, as the ranks of mpirun have; a child that begins another session is
found as long as its parent lives. Linux has them in /proc; elsewhere only the group is known.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
KILL_SECONDS = 5.0  # for processes to disappear once they have been killed


def processes() -> dict[int, tuple[int, int, str]]:
    """Return parent, session and state of every process, by its id."""
    found = {}
    for entry in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile
            # The name, in brackets, may hold blanks and brackets itself.
            state, parent, _, session = entry.read_text().rpartition(")")[2].split()[:4]
            found[int(entry.parent.name)] = (int(parent), int(session), state)
    return found


def members(leader: int) -> set[int]:
    """Return the processes of the session of `leader`, and their children elsewhere."""
    there = processes()
    inside = {pid for pid, (_, session, _) in there.items() if session == leader}
    while True:
        more = {pid for pid, (parent, _, _) in there.items() if parent in inside} - inside
        if not more:
            return {pid for pid in inside if there[pid][2] != "Z"}
        inside |= more


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes; those that have ended are passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_session(leader: int) -> None:
    """Kill all processes of a session; stopped first, they cannot start others meanwhile."""
    if not PROC.is_dir():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        return
    seen = members(leader)
    send(seen, signal.SIGSTOP)
    end = time.monotonic() + KILL_SECONDS
    while (left := _running(seen)) and time.monotonic() < end:
        send(left, signal.SIGKILL)
        time.sleep(0.005)
        seen |= members(leader)


def _running(pids: set[int]) -> set[int]:
    """Return those that have not ended: a child elsewhere is no member once its parent has."""
    there = processes()
    return {pid for pid in pids if pid in there and there[pid][2] != "Z"}
