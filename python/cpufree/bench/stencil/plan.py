"""What is to be measured: grids, precisions, boundaries, numbers of PEs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from cpufree.bench.core.entry import Entry
from cpufree.bench.core.plan import Plan, Task
from cpufree.cli import display
from cpufree.cli.stencil_input import parse_grid
from cpufree.errors import OutOfMemoryError
from cpufree.stencil import count_updates
from cpufree.text import counted

METHOD = "jacobi"
PER_PE = " per PE"


@dataclass(frozen=True)
class Case:
    """A grid, in all or for each PE, and what it is called."""

    name: str
    shape: tuple[int, ...]
    per_pe: bool

    def shape_for(self, pes: int) -> tuple[int, ...]:
        """Return the points along each axis on N PEs.

        A grid for each PE grows along its axes in turn, the first one first, by factors of 2; what
        is left of the number of PEs goes to the first axis.
        """
        if not self.per_pe:
            return self.shape
        shape, axis, left = list(self.shape), 0, pes
        while left % 2 == 0:
            shape[axis] *= 2
            axis, left = (axis + 1) % len(shape), left // 2
        shape[0] *= left
        return tuple(shape)


def shape_text(shape: Sequence[int]) -> str:
    """Return 256x512 for (256, 512)."""
    return "x".join(map(str, shape))


def parse_cases(grids: str, per_pe: str) -> tuple[Case, ...]:
    """Return the cases of lists with commas, such as 8192x8192,512^3."""
    found: list[Case] = []
    for option, texts, each in (("--grid", grids, False), ("--per-gpu", per_pe, True)):
        for text in filter(None, (text.strip() for text in texts.split(","))):
            dims = int(text[-1]) if text[-2:-1] == "^" and text[-1] in "23" else text.count("x") + 1
            if dims not in (2, 3):
                what = f"'{text}': give 2 or 3 dimensions, such as 2048x2048 or 512^3"
                raise typer.BadParameter(what, param_hint=option)
            shape = parse_grid(text, dims, option)
            case = Case(shape_text(shape) + (PER_PE if each else ""), shape, each)
            if case in found:
                raise typer.BadParameter(f"'{text}' is there twice", param_hint=option)
            found.append(case)
    if not found:
        raise typer.BadParameter("give a grid, or one for each PE", param_hint="--grid")
    return tuple(found)


@dataclass(frozen=True)
class Group:
    """What is compared with one another, interleaved: a grid on a number of PEs."""

    case: str
    precision: str
    boundary: str
    pes: int

    def key(self) -> dict[str, Any]:
        """Return the group as part of a line of the file."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, kw_only=True)
class Configuration(Plan):
    """The axes of a run of stencils, and how it measures."""

    cases: tuple[Case, ...]
    boundaries: tuple[str, ...]
    iterations: int

    def case(self, name: str) -> Case:
        """Return the case of this name."""
        return next(case for case in self.cases if case.name == name)

    def groups(self) -> list[Group]:
        """Return the groups, a grid after the other."""
        return [
            Group(case.name, precision, boundary, pes)
            for case in self.cases
            for precision in self.precisions
            for boundary in self.boundaries
            for pes in self.pes
        ]

    def tasks(self, entries: Iterable[Entry]) -> list[Task]:
        """Return what is asked for in each group."""
        return [Task(entry.name, METHOD, variant) for entry in entries for variant in self.variants]


def points(shape: Sequence[int]) -> int:
    """Return the points of a grid."""
    return math.prod(shape)


def check_grids(configuration: Configuration, memory_bytes: int) -> None:
    """Refuse grids that have nothing to compute, or whose values this machine cannot hold.

    `memory_bytes`: of the machine; 0: unknown. Raises typer.BadParameter or OutOfMemoryError.
    """
    for group in configuration.groups():
        case = configuration.case(group.case)
        shape = case.shape_for(group.pes)
        where = f"on {counted(group.pes, 'PE')}"
        if count_updates(shape, [group.boundary == "periodic"] * len(shape)) == 0:
            what = f"'{case.name}' has {shape_text(shape)} points {where}, and none to compute"
            what += " between its first and last ones: give 3 or more along each axis"
            option = "--per-gpu" if case.per_pe else "--grid"
            raise typer.BadParameter(what, param_hint=option)
        size = points(shape) * (8 if group.precision == "double" else 4)
        if 0 < memory_bytes < size:
            raise OutOfMemoryError(
                f"grid '{case.name}' {where} has {display.size(size)} of values, and this machine "
                f"{display.size(memory_bytes)} of memory: measure a smaller one"
            )
