"""A lock for objects that one thread uses at a time."""

from __future__ import annotations

import os
import threading
import weakref

from cpufree.errors import InvalidInputError


class ExclusiveLock:
    """A lock that raises an error in threads that would wait forever.

    They are its holder, which would wait for itself, and a process that was forked while another
    thread had the lock: the child has the lock as it was, but not the thread that would give it
    back.
    """

    def __init__(self, what: str) -> None:
        """`what` begins the message."""
        self._what = what
        self._lock = threading.Lock()
        self._holder: int | None = None
        self._left_by_fork = False
        _ALL.add(self)

    def __enter__(self) -> None:
        me = threading.get_ident()
        if self._left_by_fork:
            raise InvalidInputError(
                f"{self._what} was at work in another thread when this process was forked, and "
                "cannot be used here: make a new one, or start processes by 'spawn'"
            )
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

    def forked(self) -> None:
        """Note, in the child of a fork, whether the lock will never be given back."""
        here = self._holder == threading.get_ident()  # by the thread that has forked
        self._left_by_fork |= self._lock.locked() and not here


_ALL: weakref.WeakSet[ExclusiveLock] = weakref.WeakSet()


def _after_fork() -> None:
    for turns in list(_ALL):
        turns.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
