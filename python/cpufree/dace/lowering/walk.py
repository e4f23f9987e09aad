"""From a schedule tree to statements of the representation, for given values of its symbols."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dace.sdfg.analysis.schedule_tree import treenodes as tn

from cpufree.compiler import ir
from cpufree.dace.graph.lines import line_of
from cpufree.dace.lowering import calls, control
from cpufree.dace.lowering.aliases import check_turns
from cpufree.dace.lowering.bodies import Body
from cpufree.dace.lowering.containers import Split, split_ranges
from cpufree.dace.lowering.names import Scalars
from cpufree.dace.values import operators
from cpufree.dace.values.affine import Affine, Moving, NotAffine, affine, plus
from cpufree.dace.values.points import Output, Point, Range
from cpufree.dace.values.ranges import range_of, ranges_of
from cpufree.dace.values.refusal import Place
from cpufree.dace.values.space import Space, is_true
from cpufree.dace.values.wcr import copied


class Walk(Scalars):
    """Statements of one tree; with communication, of one rank."""

    def __init__(
        self, tree: Any, symbols: Mapping[str, Any], scalars: Mapping[str, tuple[str, Any]],
        place: Place, rank: int = 0, ranks: int = 0,
    ) -> None:  # fmt: skip
        """`scalars`: arguments that are numbers of the run, type and value; `ranks` 0: none."""
        super().__init__(tree, symbols, scalars, place)
        self.rank, self.ranks = rank, ranks
        self.uses = Counter(_names(tree.children))
        self.statements = self.written_out = 0
        """Statements of loops that are written out, and how many of these are around one."""

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
                control.branches(self, ways)
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
            self.containers.later.append(child)
            self.containers.add_views(self.names, self.space, self.place)
        elif isinstance(child, tn.LibraryCall):
            calls.call(self, child)
        elif isinstance(child, tn.ForScope):
            control.for_loop(self, child)
        elif isinstance(child, tn.WhileScope):
            control.while_loop(self, child)
        elif isinstance(child, tn.BreakNode):
            self.out.append(ir.Break())
        elif isinstance(child, tn.ContinueNode):
            self.out.append(ir.Continue())
        elif isinstance(child, tn.NamedRegionScope):
            self.block(child.children)
        elif isinstance(child, tn.GotoNode | tn.GBlock | tn.StateIfScope):
            self.place.fail(
                "a return before the end is not taken", "return once, at the end of the program"
            )
        elif not isinstance(child, tn.StateBoundaryNode | tn.StateLabel):
            self.place.fail(
                f"a {type(child).__name__} is not taken", "write it with for, while, if and maps"
            )

    def map(self, child: Any) -> None:
        """Read a map."""
        ranges, values, facts = ranges_of(child, self.names, self.space, self.place)
        by_user = not all(p.startswith("__") for p in ranges)

        def run(body: Body) -> None:
            body.private = _only_in(child, self.uses, self.containers)
            base = {p: body.names[p] for p in ranges}
            body.names.update({n: v.with_values(base) for n, v in values.items()})
            self.containers.add_views(body.names, body.space, body.place)
            test = is_true(*(f.with_values(base) for f in facts))
            body.under(test, lambda: body.run(child.children))
            if by_user:
                self._require_own_turns(body)

        self.over(ranges, run)

    def _require_own_turns(self, body: Body) -> None:
        """Refuse a map whose points hang on the order in which they are done."""
        shared = [o for o in body.outputs if o.field not in body.private]
        check_turns(shared, body.space, list(body.ranges))
        carried = sorted(set(body.locals) & body.outside)
        if carried:
            body.place.fail(
                f"{carried[0]} goes on from one point of the map to the next one",
                "loop with range() where a point needs what the one before has left",
            )
        for name in body.locals:
            if name in self.variables or name in self.known:
                self.lost[name] = body.place

    def lose(self, children: list[Any]) -> None:
        """Forget scalars that maps in a loop set: in its next turn no point's value is left."""
        for name in _set_in_maps(children):
            if name in self.variables or name in self.known:
                self.lost[name] = self.place

    def over(self, ranges: dict[str, Range], run: Any, facts: tuple[Affine, ...] = ()) -> None:
        """Add the stages of a body over ranges; `run(body)` reads it.

        `facts` are sums of their parameters that are 0 or more where the body is meant.
        """
        params: dict[str, Any] = {p: Affine(0, ((p, 1),)) for p in ranges}
        while True:
            body = Body(self, dict(ranges), {**self.names, **params}, self.place)
            body.space = body.space.given(facts)
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
        outputs = [self._where(o, facts) for o in body.outputs if o.field not in body.private]
        self.stages.add(outputs)

    def _where(self, o: Output, facts: tuple[Affine, ...]) -> Output:
        """Return an output that is meant where sums are 0 or more."""
        if not facts:
            return o
        if o.reduction:
            return replace(o, facts=(*o.facts, *facts))
        own = Point(o.field, o.index, o.value.type)
        return replace(o, value=operators.where(is_true(*facts), o.value, own), facts=facts)  # type: ignore[arg-type]

    def single(self, child: Any) -> None:
        """Read a tasklet or an assignment outside of maps."""
        body = Body(self, {}, dict(self.names), self.place)
        try:
            body.run([child])
        finally:
            self.place = body.place
        for name, value in body.scalars.items():
            self.set_scalar(name, value, self.place)
        self.stages.add(body.outputs)

    def copy(self, child: Any) -> None:
        """Read a copy: of regions with the same points in the same order."""
        source, target = copied(child)
        name = child.memlet.data
        if self.containers.is_scalar(child.target) or self.containers.is_scalar(name):
            self.single(child)
            return
        of, to = self.along(name, source), self.along(child.target, target)
        one = [k for k, (_, _, r, f) in enumerate(of) if r != 1 or f]
        other = [k for k, (_, _, r, f) in enumerate(to) if r != 1 or f]
        if [of[k][2] for k in one] != [to[k][2] for k in other]:
            self.place.fail(
                f"{child.target} and {name} have different shapes", "copy regions of the same shape"
            )
        ranges = {f"c{k}": Range(0, 1, of[a][2]) for k, a in enumerate(one)}
        params = {a: f"c{k}" for k, a in enumerate(one)}
        params_to = {a: f"c{k}" for k, a in enumerate(other)}
        facts = tuple(
            f.with_values({"_": Affine(0, ((params[a], 1),))}) for a in one for f in of[a][3]
        )

        def run(body: Body) -> None:
            c = self.containers
            ways = [
                tuple(_at(begin, step, p.get(k), body) for k, (begin, step, _, _) in enumerate(box))
                for box, p in ((of, params), (to, params_to))
            ]
            value = c.point(name, ways[0], body.space.ranges, self.place)
            at = c.point(child.target, ways[1], body.space.ranges, self.place)
            body.put(at, operators.cast(value, at.type))  # type: ignore[arg-type]

        self.over(ranges, run, facts)

    def box(self, name: str, subset: Any) -> list[tuple[int, int, int]]:
        """Return begin, step and count along each axis, which are known before the run."""
        found = []
        for begin, step, count, facts in self.along(name, subset):
            if begin.factors or facts:
                raise Moving((begin.params or facts[0].params)[0])
            found.append((int(begin.constant), step, count))
        return found

    def along(self, name: str, subset: Any) -> list[tuple[Affine, int, int, Any]]:
        """Return begin, step, count along each axis, and conditions on a parameter named "_".

        The count is the largest one where it goes by variables of loops; the parameter is the
        number of the point, and the conditions, which are sums of 0 or more, leave out what is too
        much.
        """
        if subset is None:
            shape = self.containers.views[name].shape if name in self.containers.views else None
            if shape is None:
                shape = self.containers.descriptors[name].shape
            subset = [(0, n - 1, 1) for n in shape]
        found = []
        for r in subset:
            try:
                first, last, by = (affine(x, self.names) for x in r)
            except NotAffine:
                self.place.fail(f"the bounds {r} cannot be computed", "use sums of sizes")
            turns, _, facts = range_of("_", (first, last, by), self.space, self.place, True)
            found.append((first, int(by.constant), turns.count, facts))
        return found

    # --- values ---

    def truth(self, code: Any) -> ir.Expr:
        """Return a condition."""
        body = Body(self, {}, dict(self.names), self.place)
        value = body.expression(code)
        return operators.cast(self.stages.fetch(value, Output("", (), value, self.place)), "bool")

    def whole(self, node: ast.expr) -> ir.Expr:
        """Return a whole number outside of maps."""
        body = Body(self, {}, dict(self.names), self.place)
        value = body.evaluated(node, {})
        return operators.cast(self.stages.fetch(value, Output("", (), value, self.place)), "int64")

    def with_moving(self, scalar: ir.Scalar, values: Range) -> Space:
        """Return the space with one more scalar of the run."""
        return self._with(scalar, values)


def _at(begin: Affine, step: int, param: str | None, body: Body) -> Affine:
    if param is None:
        return begin
    return plus(begin, Affine(0, ((param, step),)).with_values(body.names))


def _names(children: list[Any]) -> list[str]:
    """Return the names of containers in statements, once for each statement."""
    found: list[str] = []
    for child in children:
        names: set[str] = set()
        for attribute in ("in_memlets", "out_memlets"):
            memlets = getattr(child, attribute, ())
            every = memlets.values() if isinstance(memlets, dict) else memlets
            names |= {str(m.data) for m in every if m.data is not None}
        if isinstance(child, tn.CopyNode | tn.ViewNode):
            names |= {child.target, str(child.memlet.data)}
        for part in ("condition", "value"):
            code = getattr(child, part, None)
            if code is not None and hasattr(code, "as_string"):
                names |= _in_code(code)
        loop = getattr(child, "loop", None)
        for part in ("init_statement", "loop_condition", "update_statement"):
            code = getattr(loop, part, None)
            names |= set() if code is None else _in_code(code)
        found += [*names, *_names(getattr(child, "children", []))]
    return found


def _in_code(code: Any) -> set[str]:
    tree = ast.parse(str(code.as_string).strip())
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def _only_in(child: Any, uses: Counter[str], containers: Any) -> set[str]:
    """Return the arrays of a program's own that a map alone uses: each point has one for itself."""
    inside = Counter(_names(child.children))
    return {
        n
        for n, count in inside.items()
        if n in containers.descriptors
        and containers.descriptors[n].transient
        and not n.startswith("__return")
        and type(containers.descriptors[n]).__name__ == "Array"
        and count == uses[n]
    }


def _set_in_maps(children: list[Any], inside: bool = False) -> set[str]:
    """Return the names that the points of maps set, and do not only add to."""
    found: set[str] = set()
    for child in children:
        here = inside or isinstance(child, tn.MapScope)
        if here and isinstance(child, tn.AssignNode):
            found.add(child.name)
        elif here and isinstance(child, tn.CopyNode) and child.memlet.wcr is None:
            found.add(child.target)
        elif here and isinstance(child, tn.TaskletNode):
            memlets = child.out_memlets
            every = memlets.values() if isinstance(memlets, dict) else memlets
            found.update(m.data for m in every if m.data is not None and m.wcr is None)
        found |= _set_in_maps(getattr(child, "children", []), here)
    return found
