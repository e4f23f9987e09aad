"""Contender `petsc`: PETSc's conjugate gradients, a rank for each PE.

    mpirun -n PES python bench/peers/petsc_worker.py [--device auto|cpu|cuda] [PETSC OPTIONS]

Rank 0 reads requests and answers. PETSc's options, such as -ksp_norm_type natural, win over those
that the worker sets.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from mpi_ranks import Ranks
from petsc_layout import given_options
from petsc_solver import BUILD, PetscSolver

from cpufree.bench.worker import serve
from cpufree.errors import CpufreeError, UnsupportedError


class Petsc:
    """Rank 0's side: passes requests to all ranks."""

    name = "petsc"

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Distribute the system in folder; return facts."""
        facts: dict[str, Any] = self._ranks.call("load", str(folder), options)
        return facts

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve; return seconds, iterations, reason and residual."""
        answer: dict[str, Any] = self._ranks.call("solve", request)
        return answer

    def close(self) -> None:
        """Free the system."""
        self._ranks.call("close")


class Missing:
    """Says what is missing to the caller."""

    name = "petsc"

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Raise."""
        raise UnsupportedError(self._reason)

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Raise."""
        raise UnsupportedError(self._reason)

    def close(self) -> None:
        """Do nothing."""


def main(arguments: list[str]) -> int:
    """Serve on rank 0, follow on the others; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    given, rest = parser.parse_known_args(arguments)
    try:
        options = given_options(rest)
    except CpufreeError as error:
        print(f"petsc_worker: {error}", file=sys.stderr)
        return 2
    try:
        comm = importlib.import_module("mpi4py.MPI").COMM_WORLD
    except (ImportError, RuntimeError) as error:
        serve(Missing(f"needs MPI and mpi4py: {BUILD} ({error})"))
        return 0
    ranks = Ranks(comm, PetscSolver(comm, given.device, options))
    try:
        if comm.rank:
            ranks.follow()
        else:
            serve(Petsc(ranks))
            ranks.dismiss()
    except BaseException:  # a rank that ends alone would wait for the others in MPI_Finalize
        traceback.print_exc()
        comm.Abort(1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
