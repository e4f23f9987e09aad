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

from cpufree.compiler import ir
from cpufree.compiler.launch import Array, Kernel, Numbers, Run, kernel_of
from cpufree.compiler.layout import choose_pes
from cpufree.distributed import Team
from cpufree.engines.digests import digest
from cpufree.engines.in_processes import following, require_one_machine
from cpufree.engines.watch import Watch
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core


class ProcessRun(Run):
    """One run of a kernel, whose PEs are in a process each; all call the same."""

    def __init__(self, kernel: Kernel, team: Team) -> None:
        self.team = team
        super().__init__(kernel, team.size)

    @property
    def here(self) -> range:
        """The PEs that this process runs."""
        return range(self.team.rank, self.team.rank + 1)

    def _heaps(self) -> list[Array]:
        size = self.layout.size
        self._shared = load_core().ProgramHeaps(self.team, size)  # unmapped when this is gone
        kind = ctypes.c_uint8 * size
        return [np.ctypeslib.as_array(kind.from_address(base)) for base in self._shared.bases]

    def _launch(self, tables: list[int], wait_limit: float, watch: Watch) -> tuple[float, bool]:
        self.team.barrier("arrays are there")  # a kernel that runs waits for the others
        self.team.asked_to_stop = False
        seconds, stopped = load_core().run_program(
            self.kernel.built.address,
            self._shared.bases,
            tables,
            wait_limit,
            following(self.team, watch),
            team=self.team,
            leave=self.layout.leave,
        )
        return seconds, stopped

    def _ended(
        self, stopped: bool, results: Numbers, faults: Numbers
    ) -> tuple[bool, Numbers, Numbers]:
        said = self.team.tell_all(
            "the end of a program",
            {"stopped": stopped, "results": results.tolist(), "faults": faults.tolist()},
        )
        all_faults = np.array([one["faults"] for one in said], np.int64).sum(axis=0)
        # PE 0 tells for all: they have the same.
        first = np.array(said[0]["results"], np.int64)
        return any(one["stopped"] for one in said), first, all_faults


def kernel_in_processes(
    team: Team,
    program: ir.Program,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Any],
    constants: Mapping[str, Array],
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
    team.agree("program", facts)
    kernel = kernel_of(program) if team.rank == 0 else None
    team.barrier("the kernel is compiled")
    kernel = kernel or kernel_of(program)
    most = choose_pes(kernel.program, team.size, None)
    if most < team.size:
        raise InvalidInputError(
            f"the arrays have too few rows for {team.size} processes: start {most} of them"
        )
    return kernel
