"""Ctrl-C, so to speak, in the middle of what a test does."""

from __future__ import annotations

import os
import signal
import threading
import time

PATIENCE = 120.0  # seconds for a run to begin


def interrupt_after(seconds: float) -> threading.Thread:
    """Press Ctrl-C some seconds after a run has taken it over, as it does to keep its values.

    Not at all where none does: no other code would catch it, and it would end all tests.
    """
    before = signal.getsignal(signal.SIGINT)

    def press() -> None:
        end = time.monotonic() + PATIENCE
        while signal.getsignal(signal.SIGINT) is before:
            if time.monotonic() > end:
                return
            time.sleep(0.001)
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)

    return _started(threading.Thread(target=press))


def interrupt_once(runs: threading.Event) -> threading.Thread:
    """Press Ctrl-C once a run has begun."""

    def press() -> None:
        if runs.wait(PATIENCE):
            os.kill(os.getpid(), signal.SIGINT)

    return _started(threading.Thread(target=press))


def _started(thread: threading.Thread) -> threading.Thread:
    thread.start()
    return thread
