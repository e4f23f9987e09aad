"""Variables of a program: numbers that it sets."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cpufree.compiler import ir
from cpufree.compiler.front.numbers import kinds
from cpufree.compiler.front.values import ScalarValue
from cpufree.compiler.operations import Kind, kinds_of, stored


class Variables:
    """Adds variables, and statements that set them; a part of Builder."""

    variables: dict[str, str]
    tags: dict[str, str]
    out: list[ir.Statement]
    prefix: str
    fresh: Callable[[str], str]
    line: Callable[[ast.AST], int]
    cast: Callable[[ir.Expr, str], ir.Expr]

    def new_variable(self, name: str, kind: Kind) -> str:
        """Add a scalar variable."""
        name = self.fresh(name)
        self.variables[name] = stored(kind)
        return name

    def new_number(self, name: str, kind: Kind) -> str:
        """Add a variable for a number of a kind, or of one of several."""
        variable = self.new_variable(name, kind)
        if len(kinds_of(kind)) > 1:
            self.tags[variable] = self.new_variable(f"{name}_kind", "int64")
        return variable

    def number(self, variable: str, kind: Kind) -> ScalarValue:
        """Return the number that a variable holds."""
        tag = ir.Scalar(self.tags[variable], "int64") if len(kinds_of(kind)) > 1 else None
        return ScalarValue(ir.Scalar(variable, self.variables[variable]), kind, tag)

    def set_number(
        self, node: ast.AST, into: ScalarValue, number: ScalarValue
    ) -> list[ir.Statement]:
        """Return what sets a variable, and its kind, to those of a number."""
        assert isinstance(into.expr, ir.Scalar)
        out: list[ir.Statement] = []
        line, tag = self.line(node), self.tags.get(into.expr.name)
        if number.expr != into.expr:
            out.append(ir.Set(into.expr.name, self.cast(number.expr, into.expr.type), line))
        if tag is not None and number.tag != ir.Scalar(tag, "int64"):
            out.append(ir.Set(tag, kinds.tag_of(number), line))
        return out

    def set_now(self, node: ast.AST, name: str, value: ScalarValue) -> ScalarValue:
        """Return a variable that has a number's value of now."""
        made = self.number(self.new_number(self.prefix + name, value.kind), value.kind)
        self.out += self.set_number(node, made, value)
        return made

    def _index_now(self, node: ast.AST, name: str, index: ir.Expr) -> ir.Expr:
        return self.set_now(node, f"{name}_at", ScalarValue(index, "int64")).expr

    def set_variable(self, node: ast.AST, name: str, expr: ir.Expr) -> ir.Scalar:
        """Set a variable; return it."""
        kind = self.variables[name]
        self.out.append(ir.Set(name, self.cast(expr, kind), self.line(node)))
        return ir.Scalar(name, kind)
