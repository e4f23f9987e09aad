"""From a schedule tree to programs of the compiler: of all PEs together, or of ranks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front.distribution import far_rows
from cpufree.compiler.front.lowered import Lowered
from cpufree.compiler.front.values import ArrayValue, ScalarValue, TupleValue, Value
from cpufree.compiler.passes.accesses import element_fields
from cpufree.compiler.ranks.prune import pruned
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.compiler.ranks.rows import by_rows, far_reads, works_of
from cpufree.dace import affine
from cpufree.dace.exchanges import Exchanges
from cpufree.dace.forward import forwarded
from cpufree.dace.matching import routes
from cpufree.dace.refusal import Place, shown
from cpufree.dace.signals import OneSidedEvent
from cpufree.dace.walk import Walk
from cpufree.text import counted


class LoweredGraph(Lowered):
    """A graph for given arguments, with the values that it takes."""

    def __init__(self, program: ir.Program, data: Any, scalars: Any, result: Any) -> None:
        self.program, self.data, self.scalars, self.result = program, data, scalars, result
        self.reasons: tuple[str, ...] = ()
        """Why it is not divided among PEs; empty where it is."""


def walked(
    tree: Any,
    symbols: Mapping[str, Any],
    numbers: Mapping[str, tuple[str, Any]],
    place: Place,
    rank: int = 0,
    ranks: int = 0,
) -> Walk:
    """Return the statements of a tree for given arguments.

    Raises
    ------
    ProgramError
        Something has no counterpart in the representation; with the line and the node.
    """
    walk = Walk(tree, symbols, numbers, place, rank, ranks)
    try:
        walk.block(tree.children)
    except affine.Moving as moving:
        walk.place.fail(
            f"an index or a size goes by {shown(moving.name)}, which is known only in the run",
            "index by parameters of maps, variables of loops, and numbers that are arguments",
        )
    except affine.NotAffine:
        walk.place.fail("an index is no sum of sizes", "index by sums of sizes and parameters")
    return walk


def program_of(
    walk: Walk, name: str, body: list[ir.Statement], there: Collection[str] = ()
) -> ir.Program:
    """Return the program of statements; `there` are arrays that other ranks use."""
    returned = [n for n in sorted({**walk.containers.fields, **walk.variables})
                if n.startswith("__return")]  # fmt: skip
    program = ir.Program(
        name,
        tuple(walk.containers.fields.values()),
        tuple((n, kind) for n, (kind, _) in walk.arguments.items()),
        tuple({**walk.variables, **walk.stages.variables}.items()),
        tuple(body),
        tuple(n for n in returned if n in walk.variables),
    )
    kept = {*returned, *there}
    return pruned(forwarded(program, kept), kept)


def data_of(walk: Walk) -> dict[str, Any]:
    """Return the arrays of a program's constants."""
    return {name: np.arange(n) for name, n in walk.stages.constants.items()}


def lowered_graph(walk: Walk, name: str) -> LoweredGraph:
    """Return a program for all PEs together, or for one where its rows cannot be divided."""
    divided, reasons = _divided(program_of(walk, name, walk.out))
    scalars = {n: walk.arguments[n][1] for n, _ in divided.scalars}
    found = LoweredGraph(divided, data_of(walk), scalars, _result(divided))
    found.reasons = reasons
    return found


def _divided(program: ir.Program) -> tuple[ir.Program, tuple[str, ...]]:
    """Return a program whose rows are divided among PEs; or for one PE, and why."""
    most = max((len(f.shape) for f in program.fields), default=1)
    whole = element_fields(program)
    large = [f for f in program.fields if len(f.shape) == most]
    divided = _with_rows(program, {f.name for f in large} - whole)
    reasons = tuple(dict.fromkeys(r for w in works_of(divided) for r in far_reads(divided, w)))
    if not reasons:
        return divided, ()
    # Arrays of fewer dimensions may go by rows, too, and others be whole on each PE.
    rows = max(Counter(f.shape[0] for f in large).items(), key=lambda x: (x[1], x[0]))[0]
    names = {f.name for f in program.fields if f.shape[0] == rows} | {f.name for f in large}
    names -= whole
    while far := {name for w in works_of(program) for name in _far(program, names, w)}:
        names -= far
    written = [program.field(w.field) for w in works_of(program) if isinstance(w, ir.Assign)]
    largest = max(written, key=lambda f: math.prod(f.shape)).name if written else ""
    if largest in names:
        return _with_rows(program, names), ()
    if largest in whole:
        return _with_rows(program, ()), ()  # each PE has all, and computes all
    (alone,) = by_rows([program])
    return alone, reasons


def _with_rows(program: ir.Program, names: Collection[str]) -> ir.Program:
    """Return a program in which some fields are divided, and each PE has the others as a whole."""
    fields = tuple(replace(f, distributed=f.name in names) for f in program.fields)
    return replace(program, fields=fields)


def _far(program: ir.Program, names: Collection[str], work: ir.Assign | ir.Reduce) -> set[str]:
    """Return the divided fields that a stage does not read row by row."""
    name = work.field if isinstance(work, ir.Assign) else work.over
    return {
        r.field
        for r in ir.reads(work.value)
        if r.field in names
        and (name not in names or far_rows(r.axes[0], work.box[0], program.field(r.field).shape[0]))
    }


def _result(program: ir.Program) -> Value | None:
    names = [n for n in (*(f.name for f in program.fields), *program.results)]
    returned = sorted((n for n in names if n.startswith("__return")), key=_order)
    variables = dict(program.variables)
    found: list[Value] = []
    for n in returned:
        if n in variables:
            found.append(ScalarValue(ir.Scalar(n, variables[n]), variables[n]))
            continue
        f = program.field(n)
        axes = tuple(ir.Axis(k) for k in range(len(f.shape)))
        found.append(ArrayValue(ir.Read(n, axes, f.type), f.shape, f.type))
    if not found:
        return None
    return found[0] if len(found) == 1 else TupleValue(tuple(found))


def _order(name: str) -> int:
    digits = name.removeprefix("__return").lstrip("_")
    return int(digits) if digits else 0


# --- ranks ---


@dataclass(frozen=True)
class LoweredRanks:
    """Programs of ranks, with the values that they take."""

    ranks: Ranks
    data: dict[str, Any]
    scalars: dict[str, Any]
    result: LoweredGraph
    """What each rank returns."""


def lowered_ranks(walks: list[Walk], name: str, shared: Mapping[str, Any]) -> LoweredRanks:
    """Return the programs of ranks whose statements have been read.

    `shared` are the numbers that have the same value on all ranks.

    Raises
    ------
    ProgramError
        Messages do not fit together.
    """
    bodies, ends = [], []
    for walk in walks:
        exchanges = Exchanges()
        bodies.append(exchanges.block(walk.out))
        ends.append(exchanges.ends)
    there = {
        e.event.there.field
        for e in (e for of_rank in ends for e in of_rank.sends)
        if isinstance(e.event, OneSidedEvent) and e.event.there is not None
    }
    programs = [
        program_of(walk, name, body, there) for walk, body in zip(walks, bodies, strict=True)
    ]
    types = {f.name: f.type for walk in walks for f in walk.containers.fields.values()}
    sends, receives = routes(ends, types)
    try:
        programs = by_rows(with_same_fields(programs))
    except ValueError as error:
        shapes = sorted({w.containers.fields[str(error)].shape for w in walks
                         if str(error) in w.containers.fields})  # fmt: skip
        walks[0].place.fail(
            f"{error} has {counted(len(shapes), 'shape')} on the ranks: "
            f"{', '.join(map(str, shapes))}",
            "give all ranks arrays of the same shapes: their memory is laid out alike",
        )
    variants = tuple(dict.fromkeys(programs))
    ranks = Ranks(
        name,
        variants,
        tuple(variants.index(p) for p in programs),
        tuple(map(tuple, sends)),
        tuple(map(tuple, receives)),
        max((w.signals for w in walks), default=0),
    )
    data = {k: v for walk in walks for k, v in data_of(walk).items()}
    scalars = {n: shared[n] for n, _ in variants[0].scalars}
    result = LoweredGraph(variants[0], {}, {}, _result(variants[0]))
    return LoweredRanks(ranks, data, scalars, result)
