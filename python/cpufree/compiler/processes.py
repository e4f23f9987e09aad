"""Programs in several processes: a PE in each, heaps in memory that all of them see.

Every process calls the program with the same arguments, as scripts of `cpufree run` do, and has
the results when the call returns.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.launch import Kernel, Threads, kernel_of
from cpufree.compiler.layout import Layout, choose_pes
from cpufree.compiler.runner import Outcome, Words
from cpufree.distributed import Team
from cpufree.engines.digests import digest
from cpufree.engines.in_processes import require_one_machine
from cpufree.engines.watch import Watch
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core


class Processes(Threads):
    """A process for each PE, all of which call the same; heaps that all of them see."""

    name = "cpu_processes"

    def __init__(self, layout: Layout, kernel: Kernel, team: Team) -> None:
        super().__init__(layout, kernel.built.address, kernel.numbers(layout))
        self.team: Team = team
        self._shared: Any = None

    def launch(self, scalars: Words, results: int, wait_limit: float, watch: Watch) -> Outcome:
        self.team.barrier("arrays are there")  # a kernel that runs waits for the others
        self.team.asked_to_stop = False
        ended = super().launch(scalars, results, wait_limit, watch)
        said = self.team.tell_all(
            "the end of a program",
            {
                "stopped": ended.stopped,
                "results": ended.results.tolist(),
                "faults": ended.faults.tolist(),
            },
        )
        all_faults = np.array([one["faults"] for one in said], np.int64).sum(axis=0)
        # PE 0 tells for all: they have the same.
        first = np.array(said[0]["results"], np.int64)
        stopped = any(one["stopped"] for one in said)
        return Outcome(ended.seconds, stopped, first, all_faults, ended.trace)

    def free(self) -> None:
        super().free()
        self._shared = None  # which unmaps them

    def _here(self) -> range:
        return range(self.team.rank, self.team.rank + 1)

    def _take_heaps(self) -> list[npt.NDArray[np.uint8]]:
        size = self.layout.size
        self._shared = load_core().ProgramHeaps(self.team, size)
        kind = ctypes.c_uint8 * size
        return [np.ctypeslib.as_array(kind.from_address(base)) for base in self._shared.bases]


def kernel_in_processes(
    team: Team,
    program: ir.Program,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, Any],
    constants: Mapping[str, Any],
    traced: bool = False,
) -> Kernel:
    """Return the kernel of a program that all processes have been given; rank 0 compiles.

    Raises
    ------
    RankFailedError
        A process has been given something else, or has failed.
    InvalidInputError
        There are more processes than PEs that the arrays can be divided among.
    UnsupportedError
        They are on several machines.
    """
    require_one_machine(team)
    facts: dict[str, Any] = {f"array {name}": str(digest(a)) for name, a in arrays.items()}
    facts |= {f"{name} of the program": str(digest(a)) for name, a in constants.items()}
    facts |= {f"number {name}": repr(value) for name, value in scalars.items()}
    facts["text of the program"] = hashlib.sha256(repr(program).encode()).hexdigest()
    facts["trace of the program"] = str(traced)
    team.agree("program", facts)
    kernel = kernel_of(program, traced) if team.rank == 0 else None
    team.barrier("the kernel is compiled")
    kernel = kernel or kernel_of(program, traced)
    most = choose_pes(kernel.program, team.size, None)
    if most < team.size:
        raise InvalidInputError(
            f"the arrays have too few rows for {team.size} processes: start {most} of them"
        )
    return kernel
