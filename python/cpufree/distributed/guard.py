"""A process beside the ranks of `cpufree run`: it tells who a Ctrl-C was for, and tidies up.

It belongs to the launcher's process group, and holds back the signals that it gets. A signal that
waits there was sent to the whole group, as a terminal does: the ranks have got it, too. Once the
launcher has ended, however that was, it removes the launcher's folder.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PROGRAM = 'read _; rm -rf "$0"'  # reads until the launcher's end of the pipe closes
# Seconds from a signal to one member of a group to that to the last one.
_SPREAD = 0.05


@contextlib.contextmanager
def guarding(folder: str) -> Iterator[Guard]:
    """Have a folder removed when this process ends; give what knows of signals to the group."""
    guard = Guard(folder)
    try:
        yield guard
    finally:
        guard.close()


class Guard:
    """The process; where it cannot be started, signals count as sent to all."""

    def __init__(self, folder: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _PROGRAM, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=_hold_back,
            )

    @property
    def pid(self) -> int | None:
        """The number of the process."""
        return None if self._process is None else self._process.pid

    def saw(self, number: signal.Signals) -> bool:
        """Return whether a signal that this process has just got was sent to its whole group."""
        if self._process is None:
            return True
        time.sleep(_SPREAD)
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
            held = int(status.partition("ShdPnd:")[2].split()[0], 16)
        except (OSError, ValueError, IndexError):
            return True
        return bool(held >> (number - 1) & 1)

    def close(self) -> None:
        """End the process, once it has tidied up."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)


def _hold_back() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    os.umask(0o077)
