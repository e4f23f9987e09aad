"""The logger of the package, "cpufree": silent until a program asks for it.

>>> import logging
>>> logging.basicConfig(level=logging.INFO)

Engine, method and layout with their reasons are logged at INFO, seconds at DEBUG, and what a user
should know at WARNING.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

logger = logging.getLogger("cpufree")
# Without a handler of its own, Python would print warnings of a silent program to stderr.
logger.addHandler(logging.NullHandler())


def log_choices(what: str, reasons: Iterable[str], warnings: Iterable[str]) -> None:
    """Log what has been chosen and why at INFO, and what a user should know at WARNING."""
    logger.info("%s: %s", what, "; ".join(reasons))
    for warning in warnings:
        logger.warning("%s", warning)


def log_times(what: str, timings: dict[str, float]) -> None:
    """Log seconds by name at DEBUG."""
    if logger.isEnabledFor(logging.DEBUG):
        shown = ", ".join(f"{name} {seconds:.3g}" for name, seconds in timings.items())
        logger.debug("%s, seconds: %s", what, shown)
