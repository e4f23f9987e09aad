"""Preconditioners that are set up along with the matrix: they have factors, or a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cpufree import options as schema
from cpufree.engines import choices
from cpufree.engines.expected import Workload
from cpufree.engines.placement import Placement
from cpufree.errors import InvalidInputError, OutOfMemoryError
from cpufree.host import memory_limits, read_text
from cpufree.matrix.given_factor import Factor
from cpufree.matrix.problem import CsrMatrix
from cpufree.multigrid.gain import MultigridGain
from cpufree.multigrid.given_levels import Levels
from cpufree.multigrid.near_nullspace import Modes, ModesGiven
from cpufree.text import counted, number

SET_UP = ("fsai", "amg")
"""Preconditioners that are set up along with the matrix."""


def made_by_host(tuning: Mapping[str, Any]) -> bool:
    """Return whether the host alone makes factors: of the pattern of A squared, or given ones."""
    return tuning.get("pc") == "fsai" and (tuning.get("pc_level", 1) > 1 or "factor" in tuning)


@dataclass(frozen=True)
class PreconditionerChoice:
    """The preconditioner of a Solver.

    Raises:
        InvalidInputError: a name that is not known, or a number out of range.
    """

    pc: str | Levels | Factor = "auto"
    level: int = 1
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
        if isinstance(self.pc, Factor) and self.level != 1:
            raise InvalidInputError("pc_level is for a factor that is to be made, and pc gives one")
        if self.name not in ("amg", "auto") and not self.modes.nothing:
            raise InvalidInputError(
                "near_nullspace, coordinates and unknowns are for pc='amg': leave them out, or "
                "name it"
            )
        choices.valid(schema.PC, self.name)
        choices.valid(schema.PC_LEVEL, self.level)

    @property
    def name(self) -> str:
        """What it is called."""
        if isinstance(self.pc, Factor):
            return "fsai"
        return "amg" if isinstance(self.pc, Levels) else self.pc

    @property
    def tuning(self) -> dict[str, Any]:
        """What the core is to set up; nothing for preconditioners that need none."""
        if self.name == "auto":
            return {"pc": "auto", "modes": self.modes, "workload": self.workload}
        if self.name not in SET_UP:
            return {}
        tuning: dict[str, Any] = {"pc": self.name, "pc_level": int(self.level)}
        if isinstance(self.pc, Factor):
            tuning["factor"] = self.pc
        return {**tuning, "modes": self.modes} if self.name == "amg" else tuning

    def of_solve(
        self, pc: str | Levels | Factor | None, plan: Mapping[str, Any], method: str, columns: str
    ) -> str:
        """Return the preconditioner of a solve, which may be another one that needs no set-up.

        `plan`: of the layout, which tells what auto has been. `method` and `columns`: of the call.
        """
        if pc is None or pc is self.pc:
            pc = self.name
        pc = within_call(pc, method, columns)
        if isinstance(pc, (Levels, Factor)):
            raise InvalidInputError(
                "levels of multigrid, and factors, are set up along with the matrix: give them "
                "there, as in Solver(A, pc=levels)"
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


def within_call(pc: str | Levels | Factor, method: str, columns: str) -> str | Levels | Factor:
    """Return jacobi for auto where a call asks for what amg is not for, else what is given."""
    possible = method in ("auto", "cg") and columns not in ("together", "block")
    return pc if possible or pc != "auto" else "jacobi"


def comparable(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is to be set up in a form that processes can compare, by the names of options."""
    objects = (ModesGiven, Factor)
    told = {k: v.digest() if isinstance(v, objects) else v for k, v in tuning.items()}
    workload: Any = told.pop("workload", None)
    options = {} if workload is None else asdict(workload)
    return {"preconditioner": told, **{f"option {name}": v for name, v in options.items()}}


def without_multigrid(tuning: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the core is to set up where auto is no multigrid."""
    made = {k: v for k, v in tuning.items() if k not in ("modes", "workload")}
    if made.get("pc") == "auto":
        del made["pc"]
    return made


def gain_of(
    tuning: Mapping[str, Any], A: CsrMatrix, where: Placement
) -> tuple[MultigridGain, Modes | None]:
    """Return what multigrid would gain where auto is asked for, and what its levels represent.

    Raises:
        VectorError: modes that are given cannot be used, though they may not be needed.
    """
    workload = tuning["workload"]
    if A.of_complex:
        return MultigridGain(why="what multigrid gains is not known of complex systems"), None
    modes = None if tuning["modes"].nothing else tuning["modes"].of(A)
    gain = MultigridGain.of(A, workload, where, _unknowns(modes))
    if modes is None and gain.worth_looking_for_nodes:
        modes = tuning["modes"].of(A)
        gain = MultigridGain.of(A, workload, where, _unknowns(modes), gain.by)
    by_host = where.engine != "cuda_p2p" or modes is not None
    if gain.possible and by_host and (lacking := lacking_room(A.nnz)):
        gain = MultigridGain(why=lacking)
    return gain, modes


def _unknowns(modes: Modes | None) -> int:
    return 1 if modes is None else modes.vectors.shape[1]


def set_up_of(
    tuning: Mapping[str, Any], A: CsrMatrix, modes: Modes | None = None
) -> tuple[dict[str, Any], Modes | None, list[str]]:
    """Return what the core is to set up of A, what its levels represent, and why.

    `modes`: where they are known.
    """
    made = without_multigrid(tuning)
    if made.get("pc") != "amg":
        if "factor" not in made:
            return made, None, []
        made["factor"] = made["factor"].for_core(A)
        return made, None, ["fsai is the factor that is given"]
    if (levels := tuning["modes"].levels) is not None:
        made["prolongators"] = levels.for_core(A)
        return made, None, ["amg has the prolongators that are given"]
    modes = modes or tuning["modes"].of(A)
    if modes is None:
        return made, None, []
    made["near_nullspace"] = modes.vectors
    if modes.node is not None:
        made["node"] = modes.node
    return made, modes, [f"amg represents {modes.why}"]


HIERARCHY_BYTES = 120.0
"""Memory that multigrid takes at its peak for each nonzero of A; systems with 7 nonzeros a row and
up to 4 PEs took 85 to 121."""


def levels_by_host(tuning: Mapping[str, Any], engine: str) -> bool:
    """Return whether the host makes levels of multigrid that are to be set up.

    GPUs of one process make those of one unknown a node. Small ones the host makes, and has room.
    """
    given = "near_nullspace" in tuning or "prolongators" in tuning
    return tuning.get("pc") == "amg" and (engine != "cuda_p2p" or given)


def require_room(nonzeros: int) -> None:
    """Raise OutOfMemoryError where levels that the host is to make have no room there."""
    if lacking := lacking_room(nonzeros):
        raise OutOfMemoryError(f"{lacking}: use another preconditioner, such as pc='jacobi'")


def lacking_room(nonzeros: int) -> str:
    """Return what is said where levels of a matrix have no room on the host, else nothing."""
    total, free = memory_limits(read_text("/proc/meminfo"), read_text("/sys/fs/cgroup/memory.max"))
    need = HIERARCHY_BYTES * nonzeros
    if total and need > free:
        return (
            f"the levels of multigrid take some {need / 1e9:.3g} GB while they are set up, and "
            f"{free / 1e9:.3g} GB are free"
        )
    return ""


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
    if left_out := plan.get("factors_left_out", 0):
        share = left_out / max(1, left_out + plan["factor_entries"] / 2)
        return [
            f"{share:.0%} of the factor's entries couple rows of different PEs and are left out: "
            "iterations may be more than on one PE"
        ]
    count = plan.get("factors_replaced", 0)
    if not count:
        return []
    return [
        f"A is not positive definite, or nearly so: {counted(count, 'row')} of the preconditioner "
        f"{plan['factors']} could not be computed; Jacobi is used for them"
    ]
