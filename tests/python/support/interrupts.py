"""Ctrl-C, so to speak, in the middle of what a test does."""

from __future__ import annotations

import os
import signal
import threading
import time


def interrupt_after(seconds: float, guarded: bool = True) -> threading.Timer:
    """Press Ctrl-C after some seconds.

    `guarded`: so long after a run has taken it over, as it does to keep what it has found, and not
    at all where none does. Nobody else would catch it: it would end all tests.
    """
    before = signal.getsignal(signal.SIGINT)

    def press() -> None:
        end = time.monotonic() + 60
        while guarded and signal.getsignal(signal.SIGINT) is before:
            if time.monotonic() > end:
                return
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.0, press)
    timer.start()
    return timer
