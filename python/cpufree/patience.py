"""Says what takes long, to the user who waits for it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cpufree.log import logger

SECONDS = 1.0
"""What takes less is not said."""
_AGAIN = 1.0  # seconds after which it is asked again what is done


@contextmanager
def says(what: str | Callable[[], str], seconds: float = SECONDS) -> Iterator[None]:
    """Say once what is done, when it has taken `seconds`: in a terminal or notebook, or the log.

    `what` may be a function: it is called then, and every second until it returns words, by another
    thread.

    Examples
    --------
    >>> with says("compiling a kernel"):
    ...     pass
    """
    done = threading.Event()

    def wait() -> None:
        left = seconds
        while not done.wait(left):
            if words := what if isinstance(what, str) else what():
                return say(words)
            left = _AGAIN

    threading.Thread(target=wait, name="cpufree-patience", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def say(what: str, level: int = logging.INFO) -> None:
    """Say something now: in a terminal or notebook, or the log, at this level."""
    if "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty()):
        print(f"cpufree: {what}", file=sys.stderr, flush=True)
    else:
        logger.log(level, "%s", what)
