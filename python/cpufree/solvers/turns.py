"""Threads that take turns with an object."""

from __future__ import annotations

import threading

from cpufree.errors import InvalidInputError


class Turns:
    """A lock that tells its holder, who would wait for himself, when he asks for it again."""

    def __init__(self, what: str) -> None:
        """`what` begins the message."""
        self._what = what
        self._lock = threading.Lock()
        self._holder: int | None = None

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._holder == me:
            raise InvalidInputError(
                f"{self._what} is solving, and has called this from its progress function: return "
                "False there to end the solve, and make the call then, or use another one"
            )
        self._lock.acquire()
        self._holder = me

    def __exit__(self, *error: object) -> None:
        self._holder = None
        self._lock.release()
