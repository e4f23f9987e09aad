"""Bodies of maps, and tasklets outside of maps: what they write, as outputs at points.

Values are expressions of what arrays held before the body ran: what a body reads after it has
written it itself is put in at once.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Protocol

from dace.sdfg.analysis.schedule_tree import treenodes as tn

from cpufree.compiler import ir
from cpufree.dace import operators
from cpufree.dace.affine import Affine, Moving, NotAffine, affine, plus, times
from cpufree.dace.containers import Containers
from cpufree.dace.lines import line_of
from cpufree.dace.points import Index, Output, Point, Range, points
from cpufree.dace.refusal import Place


class Scope(Protocol):
    """What a body asks of what is around it."""

    containers: Containers
    names: dict[str, Any]
    written: set[str]
    """Arrays that the program writes."""

    def scalar(self, name: str) -> ir.Expr | None:
        """Return the value of a scalar outside the body."""
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
    outputs: dict[tuple[str, tuple[Affine, ...], str], Output] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)
    """Scalars that are written outside of maps."""
    condition: Any = None

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
                self.scope.containers.add_view(
                    child.target, child.source, child.memlet.subset, self.place
                )
            elif isinstance(child, tn.IfScope | tn.ElifScope | tn.ElseScope):
                test = self.branch(child, test)
            elif isinstance(child, tn.MapScope):
                self.nested(child)
            elif not isinstance(child, tn.StateBoundaryNode | tn.StateLabel):
                self.refuse(child)

    def refuse(self, child: Any) -> None:
        """Refuse a node in a map."""
        self.place.fail(
            f"a {type(child).__name__} inside a map is not taken",
            "let maps hold tasklets and branches; put loops and library calls outside of them",
        )

    # --- statements ---

    def branch(self, child: Any, earlier: Any) -> Any:
        """Read one way of a branch; return the condition that none so far was taken."""
        outer = self.condition
        test: Any = ir.Literal(True, "bool")
        if not isinstance(child, tn.ElseScope):
            test = operators.cast(self.expression(child.condition), "bool")
        taken = test if earlier is None or isinstance(child, tn.IfScope) else _both(earlier, test)
        self.condition = taken if outer is None else _both(outer, taken)
        self.run(child.children)
        self.condition = outer
        failed = operators.apply("logical_not", [test])
        before = None if isinstance(child, tn.IfScope) else earlier
        return failed if before is None else _both(before, failed)

    def nested(self, child: Any) -> None:
        """Read a map inside the map as one with more parameters."""
        ranges = ranges_of(child, self.names, self.place)
        if set(ranges) & set(self.ranges):
            self.place.fail("two maps inside one another have the same parameters", "rename them")
        self.ranges.update(ranges)
        self.names.update({p: Affine(0, ((p, 1),)) for p in ranges})
        self.run(child.children)

    def tasklet(self, child: Any) -> None:
        """Read a tasklet: assignments of expressions to its connectors."""
        node = child.node
        if str(node.language).rpartition(".")[2] != "Python":
            self.place.fail("the tasklet is C++", "write it in Python")
        inputs = {name: self.read(m) for name, m in child.in_memlets.items() if m.data is not None}
        values: dict[str, Any] = dict(inputs)
        for statement in ast.parse(node.code.as_string).body:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                self.place.fail(
                    f"the tasklet holds '{ast.unparse(statement)}'",
                    "let tasklets assign expressions to their connectors",
                )
            assert isinstance(statement, ast.Assign)
            target = statement.targets[0]
            if isinstance(target, ast.Subscript):
                target = target.value
            if not isinstance(target, ast.Name):
                self.place.fail("the tasklet assigns to no name", "assign to a connector")
            values[ast.unparse(target)] = self.evaluated(statement.value, values)
        for name, memlet in child.out_memlets.items():
            if name in values and memlet.data is not None:
                self.write(
                    memlet.data, memlet.subset, values[name], reduction_of(memlet, self.place)
                )

    def copy(self, child: Any) -> None:
        """Read a copy of a single value."""
        source, target = copied(child)
        reduction = reduction_of(child.memlet, self.place)
        if (
            child.target.startswith(_FUSED)
            and child.target in self.locals
            and child.memlet.data not in self.locals
        ):
            # Trees name what is inside, whatever the direction of the copy is. A value between
            # fused maps is computed inside, then goes out for those who need it later.
            value = self.locals[child.target]
            self.write(child.memlet.data, child.memlet.subset, value, reduction)
            return
        value = self.element(child.memlet.data, source)
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
                return values[part.id] if part.id in values else self.value(part.id)
            if isinstance(part, ast.Subscript):
                return self.subscript(part, values)
            return None

        try:
            return operators.evaluate(node, leaf)
        except operators.Unreadable as error:
            self.place.fail(error.what, "write it with NumPy's functions of single values")

    def subscript(self, part: ast.Subscript, values: dict[str, Any]) -> Any:
        """Return an element of an array by its index; of a connector with one value this."""
        name = ast.unparse(part.value)
        if name in values:
            return values[name]
        items = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        index = tuple(self._index(self.evaluated(i, values)) for i in items)
        if self.scope.containers.is_scalar(name):
            return self.value(name)
        return self._known(self.scope.containers.point(name, index, self.ranges, self.place))

    def _index(self, value: Any) -> Affine:
        if isinstance(value, Index):
            return value.value
        if isinstance(value, ir.Literal):
            return Affine(int(value.value))
        if isinstance(value, ir.Scalar):
            raise Moving(value.name)
        return self._sum(value)

    def _sum(self, value: Any) -> Affine:
        if isinstance(value, ir.Op) and value.name in ("add", "subtract", "multiply"):
            a, b = (self._index(x) for x in value.args)
            if value.name == "multiply":
                return times(a, b)
            return plus(a, b if value.name == "add" else times(b, Affine(-1)))
        if isinstance(value, ir.Op) and value.name == "cast":
            return self._index(value.args[0])
        self.place.fail("an index is a value of an array", "index by parameters of maps and sizes")

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
        return known

    def read(self, memlet: Any) -> Any:
        """Return the value that a memlet brings."""
        return self.element(memlet.data, memlet.subset)

    def element(self, name: str, subset: Any) -> Any:
        """Return an element of a container."""
        if name in self.locals or self.scope.containers.is_scalar(name):
            return self.value(name)
        at_turn = self._at_turn(name, subset)
        if at_turn is not None:
            return at_turn
        point = self.scope.containers.point(name, self.index(name, subset), self.ranges, self.place)
        return self._known(point)

    def _at_turn(self, name: str, subset: Any) -> Any:
        """Return an element of an array of one axis whose index a loop's variable gives."""
        c = self.scope.containers
        if name in c.views or len(subset) != 1:
            return None
        begin, end, _ = next(iter(subset))
        try:
            affine(begin, self.names)
        except Moving:
            if begin == end and name not in self.scope.written:
                index = self.evaluated(ast.parse(str(begin), mode="eval").body, {})
                if not any(isinstance(p, Point | Index) for p in points(index)):
                    f = c.field(name, self.place)
                    return ir.Element(f.name, operators.cast(index, "int64"), f.type)
            raise
        except NotAffine:
            return None
        return None

    def _known(self, point: Point) -> Any:
        written = self.outputs.get((point.field, point.index, ""))
        return point if written is None else written.value

    def index(self, name: str, subset: Any) -> tuple[Affine, ...]:
        """Return the index of a subset of one point."""
        found = []
        for begin, end, _ in subset:
            if begin != end:
                self.place.fail(
                    f"{name}[{subset}] goes into a tasklet as a whole",
                    "let each tasklet read single elements",
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
        if c.is_scalar(name) and not reduction and (self.ranges or self.condition is None):
            self.keep(name, operators.cast(value, c.kind(name)) if c.kind(name) else value)
            return
        if c.is_scalar(name):
            self._write_scalar(name, value, reduction)
            return
        point = c.point(name, self.index(name, subset), self.ranges, self.place)
        if reduction and set(self.ranges) <= {p for a in point.index for p in a.params}:
            value, reduction = operators.apply(_JOINS[reduction], [self._known(point), value]), ""
        if self.condition is not None:
            value = self._conditional(point, value, reduction)
        value = operators.cast(value, point.type)
        key = (point.field, point.index, reduction)
        self.outputs.pop(key, None)
        self.outputs[key] = Output(point.field, point.index, value, self.place, reduction)

    def _conditional(self, point: Point, value: Any, reduction: str) -> Any:
        otherwise: Any = self._known(point)
        if reduction:
            self.place.fail("a reduction inside a branch", "reduce np.where(condition, value, 0)")
        return operators.where(self.condition, operators.cast(value, point.type), otherwise)

    def _write_scalar(self, name: str, value: Any, reduction: str) -> None:
        kind = self.scope.containers.kind(name)
        if not reduction:
            old = self.value(name)
            value = operators.where(self.condition, operators.cast(value, kind), old)
            self.keep(name, value)
            return
        if self.condition is not None:
            self.place.fail("a reduction inside a branch", "reduce np.where(condition, value, 0)")
        key = (name, (), reduction)
        self.outputs[key] = Output(name, (), operators.cast(value, kind), self.place, reduction)

    def keep(self, name: str, value: Any) -> None:
        """Give a name a value: inside the map, or outside where there is none."""
        if self.ranges:
            self.locals[name] = value
        else:
            self.scalars[name] = value


_FUSED = "__map_fusion_"
"""How the names of values begin that DaCe hands on between maps that it has fused."""
_JOINS = {"sum": "add", "max": "maximum", "min": "minimum"}


def _both(a: Any, b: Any) -> Any:
    return operators.apply("logical_and", [a, b])


def ranges_of(child: Any, names: dict[str, Any], place: Place) -> dict[str, Range]:
    """Return the values of a map's parameters."""
    found = {}
    for name, (begin, end, step) in zip(child.node.map.params, child.node.map.range, strict=True):
        try:
            b, e, s = (affine(x, names) for x in (begin, end, step))
        except NotAffine:
            place.fail(f"the range {begin}:{end}:{step} is not to be had", "use sums of sizes")
        if b.factors or e.factors or s.factors:
            place.fail(
                f"the range of {name} depends on another parameter",
                "use maps over boxes; np.where leaves points out",
            )
        step_of = int(s.constant)
        found[name] = Range(
            int(b.constant),
            step_of,
            max(0, (int(e.constant) - int(b.constant) + step_of) // step_of),
        )
    return found


def copied(child: Any) -> tuple[Any, Any]:
    """Return what a copy reads, and where it writes (None: all of its target)."""
    memlet = child.memlet
    if memlet._is_data_src is False:  # of copies inside one array the first one is the target
        return memlet.other_subset, memlet.subset
    return memlet.subset, memlet.other_subset


def reduction_of(memlet: Any, place: Place) -> str:
    """Return how a memlet joins what is written with what is there; "": it replaces it."""
    return reduction_named(memlet.wcr, place) if memlet.wcr is not None else ""


def reduction_named(wcr: Any, place: Place) -> str:
    """Return the name of a function that joins values."""
    text = str(wcr).replace(" ", "")
    body = text.partition(":")[2].strip("()")
    for name, forms in _FORMS.items():
        if body in forms:
            return name
    place.fail(f"values are joined by {wcr}", "use sum, max or min")


_FORMS = {
    "sum": ("x+y", "a+b", "y+x"),
    "max": ("max(x,y", "max(a,b", "max(x,y)", "max(a,b)"),
    "min": ("min(x,y", "min(a,b", "min(x,y)", "min(a,b)"),
}
