"""Whether others on this machine are stopped (SIGSTOP) while this member waits for them.

Who is stopped neither answers nor hangs up. Linux tells of any process whether it is stopped, so
that need no answer: a process that is merely busy is never taken for one that is stopped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Seconds that one rank may be stopped while others wait for it.
STOPPED_LIMIT = 15.0
_LATE_LIMIT = 1.0  # once the time limit of a solve has passed
_TICK = 0.5
_LONGEST_TICK = 1.0  # that counts: this process may have been stopped itself


def watched_by(rank: int, members: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Return ranks that this one looks at, and their processes: rank 0, and the next one here.

    So each is looked at, and rank 0 by all, since no other rank can report that it is stopped.
    """
    mine = [members[rank][name] for name in ("machine", "processes")]
    here = [k for k, one in enumerate(members) if [one["machine"], one["processes"]] == mine]
    following = here[(here.index(rank) + 1) % len(here)]
    return {k: members[k]["pid"] for k in here if k in (0, following) and k != rank}


class Pulse:
    """A thread that looks at other processes, while `matters`, and tells which one is stopped."""

    def __init__(
        self,
        processes: Mapping[int, int],
        matters: Callable[[], bool],
        tell: Callable[[int, str], None],
    ) -> None:
        self._processes, self._matters, self._tell = processes, matters, tell
        self._ended = threading.Event()
        self.latest = float("inf")
        """When what the members do together is to have ended."""
        self.patience = float("inf")
        """Seconds after which the members give up a wait for one another."""
        if processes:
            threading.Thread(target=self._look, name="cpufree pulse", daemon=True).start()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _look(self) -> None:
        stopped = dict.fromkeys(self._processes, 0.0)
        looked = time.monotonic()
        while not self._ended.wait(_TICK):
            now = time.monotonic()
            step, looked = min(now - looked, _LONGEST_TICK), now
            late = now > self.latest
            for rank, pid in self._processes.items():
                waits = self._matters() and is_stopped(pid)
                stopped[rank] = stopped[rank] + step if waits else 0.0
                limit = _LATE_LIMIT if late else min(STOPPED_LIMIT, self.patience)
                if stopped[rank] > limit:
                    how = f"has been stopped for {stopped[rank]:.0f} s, by SIGSTOP or the like, "
                    how += "beyond the time limit" if late else "while others wait for it"
                    self._tell(rank, how)
                    return


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped until SIGCONT; not: by a debugger."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] == ["T"]
