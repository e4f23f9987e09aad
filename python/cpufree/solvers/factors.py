"""Preconditioners that are set up along with the matrix: they have factors, or a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cpufree import options as schema
from cpufree.engines import choices
from cpufree.errors import InvalidInputError, OutOfMemoryError
from cpufree.host import memory_limits, read_text
from cpufree.matrix.problem import CsrMatrix
from cpufree.solvers.amg_gain import Trial, gain_of_amg
from cpufree.solvers.forecast import Workload
from cpufree.solvers.given_levels import Levels
from cpufree.solvers.near_nullspace import Modes, ModesGiven
from cpufree.text import counted, number

ON_HOST = ("block_jacobi", "fsai")
"""Set up by the host alone."""
SET_UP = (*ON_HOST, "amg")
"""Preconditioners that are set up along with the matrix."""


@dataclass(frozen=True)
class PreconditionerChoice:
    """The preconditioner of a Solver.

    Raises:
        InvalidInputError: a name that is not known, or a number out of range.
    """

    pc: str | Levels = "jacobi"
    level: int = 1
    block: int | str = "auto"
    modes: ModesGiven = field(default_factory=ModesGiven)
    workload: Workload = field(default_factory=Workload)

    def __post_init__(self) -> None:
        if isinstance(self.pc, Levels):
            if not self.modes.nothing:
                raise InvalidInputError(
                    "near_nullspace, coordinates and unknowns are for levels that are to be made, "
                    "and pc gives levels: leave them out"
                )
            object.__setattr__(self, "modes", ModesGiven(levels=self.pc))
        if self.name not in ("amg", "auto") and not self.modes.nothing:
            raise InvalidInputError(
                "near_nullspace, coordinates and unknowns are for pc='amg': leave them out, or "
                "name it"
            )
        choices.valid(schema.PC, self.name)
        choices.valid(schema.PC_LEVEL, self.level)
        choices.valid(schema.PC_BLOCK, self.block)

    @property
    def name(self) -> str:
        """What it is called."""
        return "amg" if isinstance(self.pc, Levels) else self.pc

    @property
    def tuning(self) -> dict[str, Any]:
        """What the core is to set up; nothing for preconditioners that need none."""
        if self.name == "auto":
            return {"pc": "auto", "modes": self.modes, "workload": self.workload}
        if self.name not in SET_UP:
            return {}
        block = 0 if self.block == "auto" else int(self.block)
        tuning = {"pc": self.name, "pc_level": int(self.level), "pc_block": block}
        return {**tuning, "modes": self.modes} if self.name == "amg" else tuning

    def left_open(self, pc: str | Levels | None) -> bool:
        """Return whether that of a solve is one that the project is to choose."""
        return self.name == "auto" and (pc is None or pc == "auto")

    def of_solve(self, pc: str | Levels | None, plan: Mapping[str, Any]) -> str:
        """Return the preconditioner of a solve, which may be another one that needs no set-up.

        `plan`: of the layout, which tells what auto has been.
        """
        if pc is None or pc is self.pc:
            pc = self.name
        if isinstance(pc, Levels):
            raise InvalidInputError(
                "levels of multigrid are set up along with the matrix: give them there, as in "
                "Solver(A, pc=levels)"
            )
        pc = str(choices.valid(schema.PC, pc))
        if pc == "auto":
            return "amg" if plan.get("levels") else "jacobi"
        if pc == self.name:
            return pc
        if pc in SET_UP and not (self.name == "auto" and pc == "amg" and plan.get("levels")):
            raise InvalidInputError(
                f"the preconditioner {pc} is set up along with the matrix: name it there, as in "
                f"Solver(A, pc={pc!r})"
            )
        return pc


def comparable(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is to be set up in a form that processes can compare."""
    told = {k: v.digest() if isinstance(v, ModesGiven) else v for k, v in tuning.items()}
    return {k: repr(v) if isinstance(v, Workload) else v for k, v in told.items()}


def without_multigrid(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the core is to set up where auto is no multigrid."""
    made = {k: v for k, v in tuning.items() if k not in ("modes", "workload")}
    if made.get("pc") == "auto":
        del made["pc"]
    return made


@dataclass
class SetUp:
    """What the core is to set up, what levels of multigrid represent, and why."""

    tuning: dict[str, Any]
    modes: Modes | None = None
    why: list[str] = field(default_factory=list)
    trial: Trial | None = None
    """After which it is decided whether there are to be levels."""


def set_up_of(
    tuning: Mapping[str, Any], A: CsrMatrix, engine: str, gpu: str = "", tries: bool = True
) -> SetUp:
    """Return what is to be set up of A on an engine, on GPUs of this name.

    `tries`: a first solve may tell which preconditioner is sooner.
    """
    found = SetUp(without_multigrid(tuning))
    made, why = found.tuning, found.why
    if "modes" in tuning and (levels := tuning["modes"].levels) is not None:
        made["prolongators"] = levels.for_core(A.shape[0])
        why.append("amg has the prolongators that are given")
        return found
    modes = tuning["modes"].of(A) if "modes" in tuning else None
    if tuning.get("pc") == "auto":
        count = 1 if modes is None else modes.vectors.shape[1]
        gain = gain_of_amg(A, tuning["workload"], engine, count, gpu, tries)
        why.append(gain.why)
        found.trial = gain.trial
        if gain.multigrid:
            made["pc"] = "amg"
    if made.get("pc") != "amg":
        return found
    found.modes = modes
    if modes is not None:
        why.append(f"amg represents {modes.why}")
        made["near_nullspace"] = modes.vectors
        if modes.node is not None:
            made["node"] = modes.node
    return found


def with_multigrid(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the core is to set up where auto turns out to be multigrid."""
    return {**{k: v for k, v in tuning.items() if k != "workload"}, "pc": "amg"}


HIERARCHY_BYTES = 120.0
"""Memory that multigrid takes at its peak for each nonzero of A; systems with 7 nonzeros a row and
up to 4 PEs took 85 to 121."""


def require_room(tuning: Mapping[str, Any], nonzeros: int) -> None:
    """Raise OutOfMemoryError where what is to be set up with the matrix has no room on the host."""
    if tuning.get("pc") != "amg":
        return
    total, free = memory_limits(read_text("/proc/meminfo"), read_text("/sys/fs/cgroup/memory.max"))
    need = HIERARCHY_BYTES * nonzeros
    if total and need > free:
        raise OutOfMemoryError(
            f"the levels of multigrid take some {need / 1e9:.3g} GB while they are set up, and "
            f"{free / 1e9:.3g} GB are free: use another preconditioner, such as pc='jacobi'"
        )


def factor_facts(plan: Mapping[str, Any]) -> list[str]:
    """Return what there is to say of the factors of a layout, in sentences."""
    if levels := plan.get("levels"):
        rows = ", ".join(number(level["rows"]) for level in levels)
        size = f"{complexity(levels):.2f} times the nonzeros of A"
        memory = f"{sum(level['bytes'] for level in levels) / 1e6:.3g} MB"
        return [f"amg: {counted(len(levels), 'level')} of {rows} rows, {size}, {memory}"]
    if plan.get("factors", "none") == "none":
        return []
    ratio = plan["factor_entries"] / max(1, sum(plan["nnz"]))
    size = f"{counted(plan['factor_entries'], 'nonzero')} ({ratio:.2f} of those of A)"
    return [f"{plan['factors']}: factors have {size}, {plan['factor_bytes'] / 1e6:.3g} MB"]


def complexity(levels: Sequence[Mapping[str, Any]]) -> float:
    """Return the operator complexity: nonzeros of all levels of multigrid over those of A."""
    return float(sum(level["nnz"] for level in levels) / max(1, levels[0]["nnz"]))


def factor_warnings(plan: Mapping[str, Any]) -> list[str]:
    """Return a warning where a preconditioner is less than it should be."""
    if why := plan.get("coarsest_why"):
        last = counted(plan["levels"][-1]["rows"], "row")
        return [
            f"amg: the last level, of {last}, is smoothed and not solved, for {why}; "
            "another preconditioner may be faster"
        ]
    count = plan.get("factors_replaced", 0)
    if not count:
        return []
    what = "block" if plan["factors"] == "block_jacobi" else "row"
    return [
        f"A is not positive definite, or nearly so: {counted(count, what)} of the preconditioner "
        f"{plan['factors']} could not be computed; Jacobi is used for them"
    ]
