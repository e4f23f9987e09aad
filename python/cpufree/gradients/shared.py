"""A Solver that forward and backward solves share: the values that it has, and how it is asked.

The gradient of x = A⁻¹ b is one more solve with the same Solver. Where several calls share a Solver
its values may be others by then: they are put back.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from cpufree.arguments import Count, Engine, Gpus, Method, Preconditioner
from cpufree.engines.expected import Workload
from cpufree.errors import InvalidInputError, NotConvergedError, VectorError
from cpufree.solvers.factors import within_call
from cpufree.solvers.forecast import ExpectedCall
from cpufree.solvers.solver import Solver


class Values(Protocol):
    """A matrix with its values, of one of these libraries."""

    def matrix(self) -> Any:
        """Return it as Solver takes it."""

    def same_as(self, other: Any) -> bool:
        """Return whether another one, of any library, has the same pattern and values."""

    def kept(self) -> Values:
        """Return what is to be compared with later."""


@dataclass(frozen=True)
class Asked:
    """What a call asks for, besides A and b."""

    rtol: float
    maxiter: int | None
    method: Method
    pc: Preconditioner | None
    engine: Engine
    pes: Count
    gpus: Gpus
    check: bool
    time_limit: float | None
    wait_limit: float | None

    def of_set_up(self) -> dict[str, Any]:
        """Return what is asked of the set-up."""
        where = {"engine": self.engine, "pes": self.pes, "gpus": self.gpus}
        return {**where, "check": self.check}

    def require_fits(self, solver: Solver | None, kind: str) -> None:
        """Refuse a Solver of another type, options of the set-up beside one, and bicgstab."""
        if self.method == "bicgstab" or (solver and solver.method == "bicgstab"):
            raise InvalidInputError(
                "gradients take solves with the transpose of A, which is A for symmetric matrices "
                "alone: method 'bicgstab' has none. Give method='minres' for a symmetric one"
            )
        if solver is None:
            return
        default = {"engine": "auto", "pes": "auto", "gpus": "auto", "check": True}
        given = [name for name, v in self.of_set_up().items() if str(v) != str(default[name])]
        if given:
            raise InvalidInputError(
                f"{given[0]} and solver: give {given[0]} where the Solver is made, as in "
                f"cpufree.Solver(A, {given[0]}=...)"
            )
        if solver.dtype.name != kind:
            raise InvalidInputError(
                f"the Solver solves in {solver.dtype}, but A is {kind}: make it with "
                f"cpufree.Solver(A, dtype={kind!r})"
            )

    def new_solver(self, values: Values, b: Any, solves: int) -> Solver:
        """Return a Solver for a number of solves, with right-hand sides like b."""
        pc = within_call("auto" if self.pc is None else self.pc, self.method, "auto")
        call = ExpectedCall(Workload(solves, self.rtol, self.maxiter), b, self.method)
        solver = Solver(values.matrix(), pc=pc, **self.of_set_up(), _call=call)
        _link(solver).take(solver, values)
        return solver


class _Link:
    """What a Solver's values are, as far as calls of this module have given them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._values: Values | None = None
        self._number = -1

    def has(self, solver: Solver, values: Values) -> bool:
        """Return whether the Solver has these values, and no update since."""
        known = self._values
        return known is not None and self._number == solver.updates and known.same_as(values)

    def take(self, solver: Solver, values: Values) -> None:
        """Note which values the Solver has now."""
        self._values, self._number = values.kept(), solver.updates


_LINKS: WeakKeyDictionary[Solver, _Link] = WeakKeyDictionary()
_LINKS_LOCK = threading.Lock()


def _link(solver: Solver) -> _Link:
    with _LINKS_LOCK:
        return _LINKS.setdefault(solver, _Link())


def solve_with(
    solver: Solver, values: Values, b: Any, asked: Asked, what: str, x0: Any = None
) -> Any:
    """Return x of A x = b, where b lies, with a Solver that may have other values of A.

    Args:
        what: is solved, for messages.

    Raises:
        NotConvergedError: the tolerance was not met.
        VectorError: b cannot be solved for.
        MatrixError: the Solver's pattern is another one, or values cannot be used.
    """
    link = _link(solver)
    with link.lock:
        if not link.has(solver, values):
            solver.update(values.matrix())
            link.take(solver, values)
        try:
            result = solver.solve(
                b,
                x0,
                rtol=asked.rtol,
                maxiter=asked.maxiter,
                method=asked.method,
                pc=asked.pc,
                time_limit=asked.time_limit,
                wait_limit=asked.wait_limit,
            )
        except VectorError as error:
            error.args = (f"{what}: {error}", *error.args[1:])
            raise
    if not result.converged:
        raise NotConvergedError(
            f"{what}: {result.message}; the residual is {result.relative_residual:.2g} of the "
            f"right-hand side, and rtol={asked.rtol:g}. The report is in `result` of this error",
            result,
        )
    return result.x


def require_type(values: str, other: str, name: str) -> None:
    """Refuse values and right-hand sides of different types, or of types that are not solved."""
    if values != other:
        raise VectorError(
            f"{name} is {other}, but the values of A are {values}: convert one of them, in your "
            "program, where the conversion is differentiated"
        )
    if values not in ("float64", "float32"):
        raise VectorError(
            f"A and {name} are {values}: solves are differentiated in float64 and float32"
        )


def require_shape(n: int, shape: tuple[int, ...], name: str) -> None:
    """Refuse right-hand sides of another shape than (n,) or (n, k)."""
    if len(shape) not in (1, 2) or shape[0] != n or 0 in shape:
        raise VectorError(
            f"{name} has shape {shape}, but the matrix has {n} rows: {name} must have shape "
            f"({n},), or ({n}, k) with a column for each right-hand side"
        )
