"""What the parts of lowering ask of the one that walks over a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from cpufree.compiler import ir
from cpufree.dace.lowering.containers import Containers
from cpufree.dace.lowering.stages import Stages
from cpufree.dace.values.affine import Affine
from cpufree.dace.values.points import Range
from cpufree.dace.values.refusal import Place
from cpufree.dace.values.space import Space

Box = list[tuple[int, int, int]]
"""Begin, step and count along each axis."""


class Walks(Protocol):
    """Walks over a tree, and makes the statements of a rank, or of all PEs."""

    containers: Containers
    names: dict[str, Any]
    space: Space
    written: set[str]
    arguments: dict[str, tuple[str, Any]]
    stages: Stages
    place: Place
    rank: int
    ranks: int
    out: list[Any]
    signals: int

    def missing(self, name: str) -> Any:
        """Return what a name in an index stands for that is no symbol."""
        ...

    def sum_of_run(self, e: Any) -> Affine | None:
        """Return the sum of scalars of the run that an expression is."""
        ...

    def is_pythons(self, e: Any) -> bool:
        """Return whether a value is a number of Python's."""
        ...

    def scalar(self, name: str) -> ir.Expr | None:
        """Return the value of a scalar outside of maps."""
        ...

    def set_scalar(self, name: str, value: Any, place: Place) -> None:
        """Set a scalar."""
        ...

    def signal_base(self, name: str) -> int:
        """Return the number of the first signal of an array."""
        ...

    def box(self, name: str, subset: Any) -> Box:
        """Return begin, step and count along each axis of a part of a container."""
        ...

    def along(self, name: str, subset: Any) -> list[tuple[Affine, int, int, Any]]:
        """Return begin, step, count along each axis, and conditions on a parameter named "_"."""
        ...

    def over(
        self,
        ranges: dict[str, Range],
        run: Callable[[Any], None],
        facts: tuple[Affine, ...] = (),
    ) -> None:
        """Add the stages of a body over ranges; `run(body)` reads it."""
        ...

    def whole(self, node: Any) -> ir.Expr:
        """Return a whole number outside of maps."""
        ...
