"""Says what takes long, to whoever waits for it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cpufree.log import logger

SECONDS = 2.0
"""That nobody needs to be told of."""


@contextmanager
def says(what: str, seconds: float = SECONDS) -> Iterator[None]:
    """Say what is done, once it has taken so many seconds: in a terminal or notebook, or the log.

    Examples
    --------
    >>> with says("compiling a kernel"):
    ...     pass
    """
    timer = threading.Timer(seconds, _say, [what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(what: str) -> None:
    if "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty()):
        print(f"cpufree: {what}", file=sys.stderr, flush=True)
    else:
        logger.info("%s", what)
