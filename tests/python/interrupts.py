"""Ctrl-C, so to speak, in the middle of what a test does."""

from __future__ import annotations

import os
import signal
import threading
import time


def interrupt_after(seconds: float, guarded: bool = True) -> threading.Timer:
    """Press Ctrl-C after some seconds.

    `guarded`: of those for which it has been somebody else's than now, as it is while a run keeps
    what it has found. Sooner, it would end all tests.
    """
    before = signal.getsignal(signal.SIGINT)

    def press() -> None:
        end = time.monotonic() + 20
        while guarded and signal.getsignal(signal.SIGINT) is before and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.0, press)
    timer.start()
    return timer
