"""From a schedule tree to programs of the compiler: of all PEs together, or of ranks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front.lowering import Lowered
from cpufree.compiler.front.values import ArrayValue, ScalarValue, TupleValue, Value
from cpufree.compiler.passes.accesses import element_fields
from cpufree.compiler.ranks.prune import pruned
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.compiler.ranks.rows import by_rows, far_reads, works_of
from cpufree.dace import affine
from cpufree.dace.exchanges import Exchanges
from cpufree.dace.forward import forwarded
from cpufree.dace.matching import routes
from cpufree.dace.refusal import Place
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
            f"an index goes by {moving.name}, which is known only in the run",
            "index by parameters of maps, and by numbers that are arguments",
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
    program = program_of(walk, name, walk.out)
    most = max((len(f.shape) for f in program.fields), default=1)
    at_turns = element_fields(program)
    fields = tuple(
        replace(f, distributed=len(f.shape) == most and f.name not in at_turns)
        for f in program.fields
    )
    divided = replace(program, fields=fields)
    reasons = tuple(dict.fromkeys(r for w in works_of(divided) for r in far_reads(divided, w)))
    if reasons:
        (divided,) = by_rows([program])
    scalars = {n: walk.arguments[n][1] for n, _ in divided.scalars}
    found = LoweredGraph(divided, data_of(walk), scalars, _result(divided))
    found.reasons = reasons
    return found


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
