"""The baseline of MPI: one process for each GPU, all of which make the same calls. Not a public
interface."""

from typing import NoReturn

from cpufree._baselines import Baseline as Baseline  # kind: "mpi" alone

def rank() -> int:
    """Return the number of this process. Starts MPI."""

def size() -> int:
    """Return the number of processes."""

def broadcast(text: str) -> str:
    """Return what rank 0 has given, on all ranks."""

def abort(status: int) -> NoReturn:
    """End all processes."""
