"""Bodies of maps, and tasklets outside of maps: what they write, as outputs at points.

Values are expressions of what arrays held before the body ran: what a body reads after it has
written it itself is put in at once.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from dace.sdfg.analysis.schedule_tree import treenodes as tn

from cpufree.compiler import ir
from cpufree.compiler.passes.rows import scalars_read
from cpufree.dace.graph.lines import line_of
from cpufree.dace.lowering import inner, sums, tasklets
from cpufree.dace.lowering.aliases import value_at
from cpufree.dace.lowering.containers import Containers
from cpufree.dace.values import operators, wcr
from cpufree.dace.values.affine import Affine, Moving, Names, NotAffine, affine
from cpufree.dace.values.points import Index, Output, Point, Range, join, neutral, points
from cpufree.dace.values.refusal import Place, shown
from cpufree.dace.values.space import Space, known_facts, sum_of


class Scope(Protocol):
    """What a body asks of what is around it."""

    containers: Containers
    names: dict[str, Any]
    space: Space
    written: set[str]
    """Arrays that the program writes."""

    def scalar(self, name: str) -> ir.Expr | None:
        """Return the value of a scalar outside the body."""
        ...

    def missing(self, name: str) -> Any:
        """Return what a name in an index stands for that is no symbol."""
        ...

    def sum_of_run(self, e: Any) -> Affine | None:
        """Return the sum of scalars of the run that an expression is."""
        ...

    def is_pythons(self, e: Any) -> bool:
        """Return whether a value is a number of Python's."""
        ...


@dataclass
class Body:
    """What one body writes."""

    scope: Scope
    ranges: dict[str, Range]
    names: dict[str, Any]
    """What symbols stand for, the parameters among them."""
    place: Place
    locals: dict[str, Any] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    scalars: dict[str, Any] = field(default_factory=dict)
    """Scalars that are written outside of maps."""
    condition: Any = None
    space: Space = field(init=False)
    levels: list[inner.Level] = field(default_factory=list)
    """The maps and loops inside the map that the body is in."""
    outside: set[str] = field(default_factory=set)
    """Scalars whose values are those from outside the map."""
    private: set[str] = field(default_factory=set)
    """Arrays of which each point of the map has one for itself."""
    made: int = 0
    """Maps and loops inside that have been begun."""

    def __post_init__(self) -> None:
        self.space = self.scope.space.over(self.ranges)
        self.names = Names(self.names, self._missing)

    def run(self, children: list[Any]) -> None:
        """Read the statements of the body."""
        test: Any = None
        for k, child in enumerate(children):
            self.place = self.place.at(getattr(child, "node", None), line_of(children[k:]))
            if isinstance(child, tn.TaskletNode):
                self.tasklet(child)
            elif isinstance(child, tn.CopyNode):
                self.copy(child)
            elif isinstance(child, tn.AssignNode):
                self.keep(child.name, self.expression(child.value))
            elif isinstance(child, tn.ViewNode):
                self.scope.containers.later.append(child)
                self.scope.containers.add_views(self.names, self.space, self.place)
            elif isinstance(child, tn.IfScope | tn.ElifScope | tn.ElseScope):
                test = self.branch(child, test)
            elif isinstance(child, tn.MapScope):
                inner.nested(self, child)
            elif isinstance(child, tn.ForScope):
                inner.loop(self, child)
            elif isinstance(child, tn.LibraryCall):
                sums.library_call(self, child)
            elif not isinstance(child, tn.StateBoundaryNode | tn.StateLabel):
                self.refuse(child)

    def refuse(self, child: Any) -> None:
        """Refuse a node in a map."""
        name = {
            "WhileScope": "a while loop",
            "BreakNode": "a break",
            "GotoNode": "a return",
            "DynScopeCopyNode": "a map whose range goes by a number of the run (use range())",
        }
        self.place.fail(
            f"{name.get(type(child).__name__, type(child).__name__)} inside a map is not taken",
            "let maps hold assignments, branches, loops over range() and sums; put what else there "
            "is outside of them",
        )

    # --- statements ---

    def branch(self, child: Any, earlier: Any) -> Any:
        """Read one way of a branch; return the condition that none so far was taken."""
        test: Any = ir.Literal(True, "bool")
        if not isinstance(child, tn.ElseScope):
            test = operators.cast(self.expression(child.condition), "bool")
        taken = test if earlier is None or isinstance(child, tn.IfScope) else _both(earlier, test)
        self.under(taken, lambda: self.run(child.children))
        failed = operators.apply("logical_not", [test])
        before = None if isinstance(child, tn.IfScope) else earlier
        return failed if before is None else _both(before, failed)

    def under(self, condition: Any, run: Any) -> None:
        """Read what is done under a condition."""
        outer, space = self.condition, self.space
        if condition is not None:
            self.condition = condition if outer is None else _both(outer, condition)
            self.space = space.given(known_facts(condition, True))
        run()
        self.condition, self.space = outer, space

    def tasklet(self, child: Any) -> None:
        """Read a tasklet: assignments of expressions to its connectors."""
        node = child.node
        if str(node.language).rpartition(".")[2] != "Python":
            self.place.fail("the tasklet is C++", "write it in Python")
        values = {n: self.read(m) for n, m in child.in_memlets.items() if m.data is not None}
        set_if: dict[str, Any] = {}
        tasklets.run(self, ast.parse(node.code.as_string).body, values, set_if, None)
        for name, memlet in child.out_memlets.items():
            if name in values and memlet.data is not None:
                self.under(set_if.get(name), partial(self._put_out, memlet, values[name]))

    def _put_out(self, memlet: Any, value: Any) -> None:
        value, reduction = wcr.joined(memlet, value, self.place)
        self.write(memlet.data, memlet.subset, value, reduction)

    def copy(self, child: Any) -> None:
        """Read a copy of a single value."""
        source, target = wcr.copied(child)
        value, reduction = wcr.joined(
            child.memlet, self.element(child.memlet.data, source), self.place
        )
        self.write(child.target, target, value, reduction)

    # --- values ---

    def expression(self, code: Any) -> Any:
        """Return what a code block is that holds one expression."""
        tree = code.code[0] if isinstance(code.code, list) else ast.parse(str(code.code)).body[0]
        tree = tree.value if isinstance(tree, ast.Expr) else tree
        return self.evaluated(tree, {})

    def evaluated(self, node: ast.AST, values: dict[str, Any]) -> Any:
        """Return an expression of Python's syntax."""

        def leaf(part: ast.AST) -> Any:
            if isinstance(part, ast.Name):
                found = values[part.id] if part.id in values else self.value(part.id)
                if isinstance(found, wcr.Part):
                    self.place.fail(
                        f"{found.name}[{found.subset}] goes into a tasklet as a whole",
                        "let each tasklet read single elements",
                    )
                return found
            return self.subscript(part, values) if isinstance(part, ast.Subscript) else None

        try:
            return operators.evaluate(node, leaf, self.scope.is_pythons)
        except operators.Unreadable as error:
            self.place.fail(error.what, error.advice)

    def subscript(self, part: ast.Subscript, values: dict[str, Any]) -> Any:
        """Return an element of an array by its index; of a connector with one value this."""
        name = ast.unparse(part.value)
        items = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        if name in values and not isinstance(values[name], wcr.Part):
            return values[name]
        if name not in values and self.scope.containers.is_scalar(name):
            return self.value(name)
        found = tuple(self.evaluated(i, values) for i in items)
        index = tuple(self.sum(v) for v in found)
        if name in values:
            name, index = values[name].at(index, self)
        elif len(found) == 1 and self._is_by_the_run(name, found[0]):
            return self._element(name, found[0])
        return self.known(self.scope.containers.point(name, index, self.space.ranges, self.place))

    def sum(self, value: Any) -> Affine:
        """Return the sum of multiples of parameters that an index is."""
        found = sum_of(value)
        if found is None and not any(True for _ in points(value)):
            found = self.scope.sum_of_run(value)
            if found is None and scalars_read(value):
                raise Moving(min(scalars_read(value)))
        if found is None:
            self.place.fail(
                "an index is a value of an array, or no sum of multiples of parameters",
                "index by sums of parameters of maps, variables of loops, and sizes",
            )
        return found

    def value(self, name: str) -> Any:
        """Return what a name stands for."""
        if name in self.locals:
            return self.locals[name]
        if name in self.names:
            found = self.names[name]
            if isinstance(found, Affine):
                return Index(found) if found.factors else operators.literal(found.constant)
            return operators.literal(found)
        if name in self.scalars:
            return self.scalars[name]
        known = self.scope.scalar(name)
        if known is None:
            self.place.fail(f"{name} has no value here", "set it before")
        if self.ranges:
            self.outside.add(name)
        return known

    def _missing(self, name: str) -> Any:
        """Return what a name in an index stands for that is no symbol or parameter."""
        known = {**self.scalars, **self.locals}
        if name not in known:
            return self.scope.missing(name)
        found = sum_of(known[name])
        if found is None and any(isinstance(p, Point) for p in points(known[name])):
            self.place.fail(
                f"the index {shown(name)} is a value of an array, or follows from one",
                "index by parameters of maps, variables of loops, and numbers that are arguments",
            )
        return found if found is not None else self.scope.sum_of_run(known[name])

    def read(self, memlet: Any) -> Any:
        """Return the value that a memlet brings; where it brings several, all of them."""
        one = memlet.data in self.locals or self.scope.containers.is_scalar(memlet.data)
        if not one and any(begin != end for begin, end, _ in memlet.subset):
            return wcr.Part(memlet.data, memlet.subset)
        return self.element(memlet.data, memlet.subset)

    def element(self, name: str, subset: Any) -> Any:
        """Return an element of a container."""
        if name in self.locals or self.scope.containers.is_scalar(name):
            return self.value(name)
        if subset is None:  # all of it: it has one point
            subset = [(0, 0, 1)] * len(self.scope.containers.shape(name))
        if len(subset) == 1:
            begin, end, _ = next(iter(subset))
            try:
                affine(begin, self.names)
            except Moving:
                index = self.evaluated(ast.parse(str(begin), mode="eval").body, {})
                if begin == end and self._is_by_the_run(name, index):
                    return self._element(name, index)
                raise
            except NotAffine:
                pass
        index = self.index(name, subset)
        return self.known(self.scope.containers.point(name, index, self.space.ranges, self.place))

    def _is_by_the_run(self, name: str, index: Any) -> bool:
        """Return whether an element of an array that is only read lies at an index of the run."""
        c = self.scope.containers
        return (
            name not in c.views
            and name not in self.scope.written
            and len(c.shape(name)) == 1
            and not any(True for _ in points(index))
            and sum_of(index) is None
        )

    def _element(self, name: str, index: Any) -> ir.Element:
        f = self.scope.containers.field(name, self.place)
        return ir.Element(f.name, operators.cast(index, "int64"), f.type)

    def known(self, point: Point) -> Any:
        """Return the value at a point: what the body has written there, or what was there."""
        return value_at(point, self.outputs, self.space, self.place)

    def index(self, name: str, subset: Any) -> tuple[Affine, ...]:
        """Return the index of a subset of one point."""
        found = []
        for begin, end, _ in subset:
            if begin != end:
                self.place.fail(
                    f"{name}[{subset}] is written as a whole", "let each tasklet write elements"
                )
            try:
                found.append(affine(begin, self.names))
            except NotAffine:
                self.place.fail(
                    f"the index {begin} of {name} is no sum of multiples of parameters",
                    "index by sums of parameters and sizes",
                )
        return tuple(found)

    # --- what is written ---

    def write(self, name: str, subset: Any, value: Any, reduction: str) -> None:
        """Note what is written."""
        c = self.scope.containers
        if c.is_scalar(name):
            value = self.of_kind(name, value)
            if reduction:
                self._join_scalar(name, value, reduction)
            else:
                self.keep(name, value)
            return
        if subset is None:
            subset = [(0, 0, 1)] * len(c.shape(name))
        point = c.point(name, self.index(name, subset), self.space.ranges, self.place)
        value = operators.cast(value, point.type)
        if reduction and set(self.ranges) <= {p for a in point.index for p in a.params}:
            value, reduction = join(reduction, self.known(point), value), ""
        if self.condition is not None:
            other = neutral(reduction, point.type) if reduction else self.known(point)
            value = operators.where(self.condition, value, other)
        self.put(point, operators.cast(value, point.type), reduction)

    def of_kind(self, name: str, value: Any) -> Any:
        """Return a value as one of the type that DaCe gives a scalar."""
        kind = self.scope.containers.kind(name)
        is_number = type(self.scope.containers.descriptors[name]).__name__ == "Scalar"
        if is_number and kind.startswith("int") and value.type.startswith("float"):
            self.place.fail(
                f"{shown(name)} is a whole number first, and then a float, which DaCe would cut",
                "begin with a float, such as 0.0, or convert with dace.int64(...)",
            )
        return operators.cast(value, kind) if kind else value

    def put(self, point: Point, value: Any, reduction: str = "") -> None:
        """Add an output at a point."""
        made = Output(
            point.field, point.index, value, self.place, reduction, ranges=dict(self.ranges),
            facts=self.facts,
        )  # fmt: skip
        if not reduction:
            self.outputs = [
                o
                for o in self.outputs
                if (o.field, o.index, o.reduction) != (made.field, made.index, "")
            ]
        self.outputs.append(made)

    @property
    def facts(self) -> tuple[Affine, ...]:
        """Sums of the map's parameters that are 0 or more where it is read now."""
        return self.space.facts[len(self.scope.space.facts) :]

    def _join_scalar(self, name: str, value: Any, reduction: str) -> None:
        if self.condition is not None:
            value = operators.where(self.condition, value, neutral(reduction, value.type))
        if name in self.locals or not self.ranges:
            inner.joined(self, name, reduction, value)
            return
        self.outputs.append(
            Output(name, (), value, self.place, reduction, ranges=dict(self.ranges))
        )

    def keep(self, name: str, value: Any) -> None:
        """Give a name a value: inside the map, or outside where there is none."""
        values = self.locals if self.ranges else self.scalars
        if self.condition is not None:
            old = values.get(name)
            if old is None and self.scope.scalar(name) is not None:
                old = self.value(name)
            value = value if old is None else operators.where(self.condition, value, old)
        values[name] = value
        inner.was_set(self, name)


def _both(a: Any, b: Any) -> Any:
    return operators.apply("logical_and", [a, b])
