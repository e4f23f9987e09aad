"""Kills the sessions of a benchmark that has ended without doing so itself.

    python -m cpufree.bench.core.keeper

A harness that is killed cannot end its workers, and workers that are stopped do not notice its end.
The keeper notices: the pipe to its stdin breaks. A line is a session that begins, +LEADER, or that
has ended, -LEADER: the number may then be given to another process group.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys

from cpufree.bench.core.processes import kill_session


class Keeper:
    """The process that outlives this one, and ends what it would leave behind."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is not for it
        )

    def keep(self, leader: int) -> None:
        """Have the session of `leader` ended with this process."""
        self._tell(f"+{leader}\n")

    def forget(self, leader: int) -> None:
        """The session has ended."""
        self._tell(f"-{leader}\n")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """Read the leaders of sessions until the harness has ended; kill what is left of them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    kept = set[int]()
    for line in sys.stdin:
        change = kept.add if line.startswith("+") else kept.discard
        change(int(line[1:]))
    for leader in kept:
        kill_session(leader)


if __name__ == "__main__":
    main()
