"""From a schedule tree to statements of the representation, for given values of its symbols."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dace.sdfg.analysis.schedule_tree import treenodes as tn

from cpufree.compiler import ir
from cpufree.dace import calls, loops, operators
from cpufree.dace.affine import Affine, Moving, NotAffine, affine
from cpufree.dace.bodies import Body, copied, ranges_of
from cpufree.dace.containers import Containers, Split, split_ranges
from cpufree.dace.lines import line_of
from cpufree.dace.points import Output, Range
from cpufree.dace.refusal import Place
from cpufree.dace.stages import Stages

MOST_TURNS = 64
"""Of a loop that is written out, because indices go by its variable."""


class Walk:
    """Statements of one tree; with communication, of one rank."""

    def __init__(
        self, tree: Any, symbols: Mapping[str, Any], scalars: Mapping[str, tuple[str, Any]],
        place: Place, rank: int = 0, ranks: int = 0,
    ) -> None:  # fmt: skip
        """`scalars`: arguments that are numbers of the run, type and value; `ranks` 0: none."""
        self.names: dict[str, Any] = dict(symbols)
        self.containers = Containers(tree.containers, self.names)
        self.types = {str(k): v for k, v in tree.symbols.items()}
        self.arguments = dict(scalars)
        self.rank, self.ranks = rank, ranks
        self.place = place
        self.known: dict[str, Any] = {}
        """Scalars whose value follows from arguments and variables of loops."""
        self.loops: dict[str, ir.Scalar] = {}
        self.variables: dict[str, str] = {}
        self.written = assigned(tree.children)
        self.out: list[Any] = []
        self.signals = 0
        """Signals of the program's own."""
        self.bases: dict[str, int] = {}
        self.stages = Stages(self.containers, lambda s: self.out.append(s), self._set, self._old)

    # --- names ---

    def scalar(self, name: str) -> ir.Expr | None:
        """Return the value of a scalar outside of maps."""
        if name in self.known:
            found: ir.Expr = self.known[name]
            return found
        if name in self.loops:
            return self.loops[name]
        if name in self.arguments:
            return ir.Scalar(name, self.arguments[name][0])
        if name in self.variables:
            return ir.Scalar(name, self.variables[name])
        return None

    def signal_base(self, name: str) -> int:
        """Return the number of the first signal of an array."""
        if name not in self.bases:
            self.bases[name] = self.signals
            self.signals += math.prod(self.containers.shape(name))
        return self.bases[name]

    def _old(self, name: str) -> Any:
        return self.names[name] if name in self.names else self.scalar(name)

    def _set(self, name: str, value: Any, output: Output) -> None:
        self.set_scalar(name, value, output.place)

    def set_scalar(self, name: str, value: Any, place: Place) -> None:
        """Set a scalar."""
        value = self.stages.fetch(value, Output(name, (), value, place))
        if name in self.arguments and name not in self.variables:
            place.fail(f"{name} is an argument, and is set", "use a name of your own")
        kind = self.variables.get(name) or self.containers.kind(name) if self._has(name) else ""
        kind = kind or value.type
        value = operators.cast(value, kind)
        self.variables[name] = kind
        self.names.pop(name, None)
        self.known.pop(name, None)
        self.out.append(ir.Set(name, value, place.line))
        if self._is_fixed(value):
            self.known[name] = value

    def _has(self, name: str) -> bool:
        return name in self.variables or name in self.containers.descriptors

    def _is_fixed(self, value: Any) -> bool:
        if isinstance(value, ir.Scalar):
            return value.name in self.loops or value.name in self.arguments
        return isinstance(value, ir.Literal) or (
            isinstance(value, ir.Op) and all(self._is_fixed(a) for a in value.args)
        )

    # --- statements ---

    def block(self, children: list[Any]) -> None:
        """Read statements."""
        k = 0
        while k < len(children):
            child = children[k]
            self.place = self.place.at(getattr(child, "node", None), line_of(children[k:]))
            if isinstance(child, tn.IfScope):
                ways = [child]
                while k + 1 < len(children) and isinstance(
                    children[k + 1], tn.ElifScope | tn.ElseScope
                ):
                    k += 1
                    ways.append(children[k])
                self.branches(ways)
            else:
                self.statement(child)
            k += 1

    def statement(self, child: Any) -> None:
        """Read one statement."""
        if isinstance(child, tn.MapScope):
            self.map(child)
        elif isinstance(child, tn.TaskletNode | tn.AssignNode):
            self.single(child)
        elif isinstance(child, tn.CopyNode):
            self.copy(child)
        elif isinstance(child, tn.ViewNode):
            self.containers.add_view(child.target, child.source, child.memlet.subset, self.place)
        elif isinstance(child, tn.LibraryCall):
            calls.call(self, child)
        elif isinstance(child, tn.ForScope):
            self.for_loop(child)
        elif isinstance(child, tn.WhileScope):
            self.while_loop(child)
        elif isinstance(child, tn.BreakNode):
            self.out.append(ir.Break())
        elif isinstance(child, tn.ContinueNode):
            self.out.append(ir.Continue())
        elif isinstance(child, tn.NamedRegionScope):
            self.block(child.children)
        elif not isinstance(child, tn.StateBoundaryNode | tn.StateLabel):
            self.place.fail(
                f"a {type(child).__name__} is not taken", "write it with for, while, if and maps"
            )

    def map(self, child: Any) -> None:
        """Read a map."""
        self.over(ranges_of(child, self.names, self.place), lambda body: body.run(child.children))

    def over(self, ranges: dict[str, Range], run: Any) -> None:
        """Add the stages of a body over ranges; `run(body)` reads it."""
        params: dict[str, Any] = {p: Affine(0, ((p, 1),)) for p in ranges}
        while True:
            body = Body(self, dict(ranges), {**self.names, **params}, self.place)
            try:
                run(body)
            except Moving:
                self.place = body.place
                raise
            except Split as split:
                ranges, params = split_ranges(ranges, params, split)
                params.update({p: Affine(0, ((p, 1),)) for p in ranges})
                continue
            break
        self.stages.add(list(body.outputs.values()), body.ranges)

    def single(self, child: Any) -> None:
        """Read a tasklet or an assignment outside of maps."""
        body = Body(self, {}, dict(self.names), self.place)
        try:
            body.run([child])
        finally:
            self.place = body.place
        for name, value in body.scalars.items():
            self.set_scalar(name, value, self.place)
        self.stages.add(list(body.outputs.values()), {})

    def copy(self, child: Any) -> None:
        """Read a copy: of regions with the same points in the same order."""
        source, target = copied(child)
        name = child.memlet.data
        if self.containers.is_scalar(child.target) or self.containers.is_scalar(name):
            self.single(child)
            return
        of, to = self.box(name, source), self.box(child.target, target)
        ranges, index_of, index_to = self._paired(of, to, f"{child.target} and {name}")

        def run(body: Body) -> None:
            c, names = self.containers, body.names
            value = c.point(name, _indices(of, index_of, names), body.ranges, self.place)
            at = c.point(child.target, _indices(to, index_to, names), body.ranges, self.place)
            made = operators.cast(value, at.type)  # type: ignore[arg-type]
            body.outputs[(at.field, at.index, "")] = Output(at.field, at.index, made, self.place)

        self.over(ranges, run)

    def box(self, name: str, subset: Any) -> list[tuple[int, int, int]]:
        """Return begin, step and count along each axis."""
        if subset is None:
            shape = self.containers.views[name].shape if name in self.containers.views else None
            return [(0, 1, n) for n in shape or self.containers.shape(name)]
        found = []
        for r in subset:
            try:
                begin, end, step = (int(affine(x, self.names).constant) for x in r)
            except NotAffine:
                self.place.fail(f"the bounds {r} are not to be had", "use sums of sizes")
            found.append((begin, step, max(0, (end - begin + step) // step)))
        return found

    def _paired(self, of: Any, to: Any, what: str) -> Any:
        """Return parameters for the points of two regions, and which each axis has."""
        one = [k for k, (_, _, n) in enumerate(of) if n != 1]
        other = [k for k, (_, _, n) in enumerate(to) if n != 1]
        if [of[k][2] for k in one] != [to[k][2] for k in other]:
            self.place.fail(f"{what} have different shapes", "copy regions of the same shape")
        ranges = {f"c{k}": Range(0, 1, of[a][2]) for k, a in enumerate(one)}
        return (
            ranges,
            {a: f"c{k}" for k, a in enumerate(one)},
            {a: f"c{k}" for k, a in enumerate(other)},
        )

    # --- control flow ---

    def branches(self, ways: list[Any]) -> None:
        """Read if, elif, else: the way that is taken, where that is known."""
        child, *rest = ways
        if isinstance(child, tn.ElseScope):
            self.block(child.children)
            return
        test = self.truth(child.condition)
        if isinstance(test, ir.Literal):
            if test.value:
                self.block(child.children)
            elif rest:
                self.branches(rest)
            return
        line = self.place.line
        touched = assigned(child.children) | {n for w in rest for n in assigned(w.children)}
        self.forget(touched)
        then = self.inner(child.children, touched)
        outer, self.out = self.out, []
        if rest:
            self.branches(rest)
        otherwise, self.out = self.out, outer
        self.forget(touched)
        self.out.append(ir.If(test, tuple(then), tuple(otherwise), line))

    def truth(self, code: Any) -> ir.Expr:
        """Return a condition."""
        body = Body(self, {}, dict(self.names), self.place)
        value = body.expression(code)
        return operators.cast(self.stages.fetch(value, Output("", (), value, self.place)), "bool")

    def inner(self, children: list[Any], touched: set[str]) -> list[Any]:
        """Return the statements of a block that may be left out, or be done several times."""
        outer, self.out = self.out, []
        self.block(children)
        made, self.out = self.out, outer
        self.forget(touched)
        return made

    def forget(self, touched: set[str]) -> None:
        """What is set on some way only is known in the run only."""
        for name in touched:
            self.known.pop(name, None)
            if name in self.names and name in self.variables:
                self.names.pop(name)

    def for_loop(self, child: Any) -> None:
        """Read a loop; write it out where indices go by its variable."""
        loop = child.loop
        var = str(loop.loop_variable)
        start, stop, step = loops.bounds(self, loop, var)
        touched = assigned(child.children)
        self.forget(touched)
        saved = (dict(self.known), dict(self.names), dict(self.variables), list(self.out))
        place = self.place
        self.loops[var] = ir.Scalar(var, "int64")
        self.names.pop(var, None)
        self.known.pop(var, None)
        try:
            body = self.inner(child.children, touched)
        except Moving as moving:
            if moving.name != var:
                raise
            self.known, names, self.variables, self.out = saved
            self.names.clear()
            self.names.update(names)
            self.loops.pop(var)
            self.written_out(child, var, (start, stop, step))
            return
        self.loops.pop(var)
        self.variables[var] = "int64"
        self.out.append(ir.For(var, start, stop, step, tuple(body), place.line))

    def written_out(self, child: Any, var: str, bounds: tuple[ir.Expr, ir.Expr, int]) -> None:
        """Read a loop turn by turn."""
        start, stop = (loops.value_of(self, e) for e in bounds[:2])
        if start is None or stop is None:
            self.place.fail(
                f"indices go by {var}, and how often the loop turns is known only in the run",
                "use maps, or loops over numbers that are arguments",
            )
        turns = range(start, stop, bounds[2])
        if len(turns) > MOST_TURNS:
            self.place.fail(
                f"indices go by {var}, which has {len(turns)} values: each turn would be written "
                f"out, and {MOST_TURNS} is the most",
                "use a map where turns do not depend on one another",
            )
        outer, self.out = self.out, []
        self.known.pop(var, None)
        for turn in turns:
            self.names[var] = turn
            self.block(child.children)
        self.names.pop(var, None)
        made, self.out = self.out, outer
        self._add_turns(made, assigned(child.children))

    def _add_turns(self, made: list[Any], touched: set[str]) -> None:
        """Add the turns of a loop that is written out, which a break of the run may leave."""
        leaves = list(_leaves(made))
        if not leaves:
            self.out += made
            return
        if any(isinstance(x, ir.Continue) for x in leaves):
            self.place.fail(
                "a continue that the run decides, in a turn that is written out",
                "put what follows into the other branch of the if",
            )
        self.out.append(ir.Loop((*made, ir.Break()), self.place.line))
        self.forget(touched)

    def whole(self, node: ast.expr) -> ir.Expr:
        """Return a whole number outside of maps."""
        body = Body(self, {}, dict(self.names), self.place)
        value = body.evaluated(node, {})
        return operators.cast(self.stages.fetch(value, Output("", (), value, self.place)), "int64")

    def while_loop(self, child: Any) -> None:
        """Read a loop that a condition ends."""
        place, touched = self.place, assigned(child.children)
        self.forget(touched)
        outer, self.out = self.out, []
        test = operators.apply("logical_not", [self.truth(child.loop.loop_condition)])
        leave = ir.If(test, (ir.Break(),), (), place.line)
        head, self.out = self.out, outer
        body = self.inner(child.children, touched)
        self.out.append(ir.Loop((*head, leave, *body), place.line))


def assigned(children: list[Any]) -> set[str]:
    """Return the names that statements may set, containers among them."""
    found: set[str] = set()
    for child in children:
        if isinstance(child, tn.AssignNode):
            found.add(child.name)
        elif isinstance(child, tn.CopyNode):
            found.add(child.target)
        elif isinstance(child, tn.TaskletNode | tn.LibraryCall):
            memlets = child.out_memlets
            every = memlets.values() if isinstance(memlets, dict) else memlets
            found.update(m.data for m in every if m.data is not None)
        found |= assigned(getattr(child, "children", []))
    return found


def _leaves(body: Iterable[Any]) -> Iterator[Any]:
    """Yield each break and continue of the loop whose body this is."""
    for s in body:
        if isinstance(s, ir.Break | ir.Continue):
            yield s
        elif isinstance(s, ir.If):
            yield from _leaves((*s.then, *s.otherwise))


def _indices(box: Any, params: Mapping[int, str], names: Mapping[str, Any]) -> tuple[Affine, ...]:
    return tuple(
        Affine(begin, ((params[k], step),)).with_values(names) if k in params else Affine(begin)
        for k, (begin, step, _) in enumerate(box)
    )
