"""Ranks that do the same on request of rank 0, and sleep in between."""

from __future__ import annotations

import sys
import time
from typing import Any

from cpufree.errors import CpufreeError, InvalidInputError, UnsupportedError

# Seconds between two looks of a rank that waits for a request. MPI's own waits would spin and take
# a core from the contender that is measured meanwhile.
NAP = 0.005
# Seconds that a rank with an error waits for the others, which may never come.
PATIENCE = 30.0


class Ranks:
    """Calls methods of `worker` on all ranks at once; each rank has a worker of its own."""

    def __init__(self, comm: Any, worker: Any) -> None:
        self._comm, self._worker = comm, worker

    def call(self, name: str, *arguments: Any) -> Any:
        """On rank 0: call worker.name(*arguments) everywhere; return rank 0's result.

        Raises:
            CpufreeError: of the lowest rank that had an error.
        """
        self._meet(None)
        self._comm.bcast((name, arguments), root=0)
        return self._perform(name, arguments)

    def follow(self) -> None:
        """On the other ranks: do what rank 0 calls, until it dismisses them."""
        while True:
            self._meet(None)
            name, arguments = self._comm.bcast(None, root=0)
            if not name:
                return
            try:
                self._perform(name, arguments)
            except CpufreeError:
                continue  # rank 0 tells

    def dismiss(self) -> None:
        """On rank 0: let the others end."""
        self._meet(None)
        self._comm.bcast(("", ()), root=0)

    def _perform(self, name: str, arguments: Any) -> Any:
        result, error = None, None
        try:
            result = getattr(self._worker, name)(*arguments)
        except Exception as caught:  # whatever it is, the other ranks are to know
            error = _portable(caught, self._comm.rank)
        self._meet(PATIENCE if error else None, error)
        for told in self._comm.allgather(error):
            if told is not None:
                raise told
        return result

    def _meet(self, patience: float | None, error: Exception | None = None) -> None:
        """Wait asleep until all ranks are here; past the patience, end them all."""
        arrived, deadline = self._comm.Ibarrier(), time.monotonic() + (patience or 0)
        while not arrived.Test():
            if patience is not None and time.monotonic() > deadline:
                print(f"the other ranks hang on an error of this one: {error}", file=sys.stderr)
                self._comm.Abort(1)
            time.sleep(NAP)


def _portable(error: Exception, rank: int) -> CpufreeError:
    """Return an error that travels between ranks: of one of three kinds, with nothing but text."""
    if isinstance(error, UnsupportedError):
        return UnsupportedError(str(error))
    if isinstance(error, InvalidInputError):
        return InvalidInputError(str(error))
    return CpufreeError(f"rank {rank}: {type(error).__name__}: {error}")
