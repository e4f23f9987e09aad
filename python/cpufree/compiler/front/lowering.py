"""From a function's tree to the intermediate representation, for arguments of given types."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import lists, masks, values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.calls import call, products
from cpufree.compiler.front.expressions import Expressions
from cpufree.compiler.front.flow import loops, regions
from cpufree.compiler.front.flow.branches import Flow, branches
from cpufree.compiler.front.flow.meeting import without_joins
from cpufree.compiler.front.lowered import Lowered
from cpufree.compiler.front.operands import fail_as_array, has_in_place
from cpufree.compiler.front.protocols import Returned
from cpufree.compiler.front.text.elses import without_else
from cpufree.compiler.front.text.helpers import local_function
from cpufree.compiler.front.text.returns import with_one_return
from cpufree.compiler.front.text.source import Source
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    Listed,
    Masked,
    Scope,
    TupleValue,
    Value,
)

_MOST_CALLS = 16  # programs inside one another


def is_array(value: Any) -> bool:
    """Return whether an argument is an array."""
    return isinstance(value, np.ndarray) and value.ndim > 0


class Lowering:
    """Lowers a function for arrays that are divided as its builder says."""

    def __init__(self, builder: Builder, at_end: bool) -> None:
        """`at_end`: functions are changed to ones that return at their end."""
        self.builder, self.at_end = builder, at_end
        self.expressions = Expressions(self.builder, self.call_program)
        self.scopes: list[Scope] = []
        self.loops: list[regions.Frame] = []
        self.depth = 0
        self.loops.append(regions.Frame(self))
        """Of loops and branches whose course is known only in the run."""

    def run(self, arguments: Mapping[str, Any]) -> Lowered:
        source, b = self.builder.source, self.builder
        body = self._body(source)
        scope = Scope(frozenset(regions.assigned(body, and_grown=False)))
        for name, value in arguments.items():
            if isinstance(value, Listed):
                items = tuple(map(scope.names.pop, value.names))
                scope.names[name] = TupleValue(items, value.is_list, made=name)
            elif is_array(value):
                kind = value.dtype.name
                scope.names[name] = b.new_field(source.tree, name, value.shape, kind, "argument")
            else:
                scope.names[name] = Host(value, text=name)
        self.scopes.append(scope)
        flow = self.block(body)
        result = flow.value if isinstance(flow, Returned) else None
        self._check_storage()
        b.grids.check(b.fields)
        results = tuple(values.variables_of(result))
        program = ir.Program(
            source.name,
            tuple(b.fields.values()),
            tuple((name, kind) for name, (kind, _) in b.scalars.items()),
            tuple(b.variables.items()),
            without_joins(tuple(b.out)),
            results,
            b.lines,
        )
        return Lowered(program, b, result)

    def _body(self, source: Source) -> list[ast.stmt]:
        body = without_else(source.tree.body)
        return with_one_return(body) if self.at_end else body

    # --- statements ---

    def block(self, body: list[ast.stmt]) -> Flow:
        """Lower statements, up to one that leaves them."""
        for statement in body:
            method = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if method is None:
                self.builder.fail(
                    statement,
                    f"the statement {type(statement).__name__.lower()} is outside the language "
                    "of programs",
                    "programs have assignments, for, while, if, break, continue, return and calls",
                )
            flow: Flow = method(statement)
            if flow is not None:
                return flow
        return None

    @property
    def scope(self) -> Scope:
        """The names of the function that is being lowered."""
        return self.scopes[-1]

    def eval(self, node: ast.expr) -> Value:
        """Return what an expression stands for."""
        return self.expressions.eval(node, self.scope)

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _functiondef(self, node: ast.FunctionDef) -> None:
        self.bind(node, node.name, Host(local_function(self.expressions, node, self.scope)))

    def _expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if not isinstance(node.value, ast.Call):
            self.builder.fail(node, "this statement has no effect", "assign its value, or leave it")
        if not lists.grown(self, node.value):
            self.eval(node.value)

    def _assert(self, node: ast.Assert) -> None:
        if not self.expressions.host(node.test, self.scope, "this assertion"):
            self.builder.fail(node, "the assertion fails", "call the program with other arguments")

    def _return(self, node: ast.Return) -> Returned:
        if self.depth:
            self.builder.fail(
                node,
                "a return inside a loop or a branch that is decided in the run",
                "leave the loop with break, and return at the end",
                by_return=True,
            )
        value = Host(None) if node.value is None else self.eval(node.value)
        for leaf in values.leaves(value):
            if isinstance(leaf, ArrayValue) and leaf.is_view and values.moves(leaf):
                self.builder.fail(
                    node,
                    "what is returned shows an array at an index of the run",
                    "return the whole array, or a copy (.copy())",
                )
        return Returned(self.kept(node, value, "result"))

    def kept(self, node: ast.AST, value: Value, name: str) -> Value:
        """Return a value that stays what it is now, whatever is written later; views are views."""
        return self.builder.kept(node, value, name)

    def _assign(self, node: ast.Assign) -> None:
        value = self.eval(node.value)
        if len(node.targets) > 1:  # computed once
            value = self.kept(node, value, "value")
        for target in node.targets:
            self.assign(target, value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.eval(node.value))

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a name, or write into a part of an array."""
        if isinstance(target, ast.Name):
            self.bind(target, target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value)
        elif isinstance(target, ast.Subscript):
            if lists.set_item(self, target, value):
                return
            if len(each := lists.each_of(target)) > 1 and values.is_number(value):
                value = self.kept(target, value, "value")
                for one in each:
                    self.assign(one, value)
                return
            start = len(self.builder.out)
            view = self._view(target)
            ((_, value),) = self.expressions.settled(target, [(start, value)])
            if isinstance(view, Masked):
                masks.assign(self.builder, target, view, value)
                return
            self.builder.assign(target, view, self.builder.operand(target, value))
        else:
            self.builder.fail(target, "this target is not taken", "assign to a name or a slice")

    def _unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        pairs = lists.unpacked_for(self.builder, target, value)
        # All values are there before the first name is bound.
        items = [self.kept(target, item, "item") for _, item in pairs]
        for (name, _), item in zip(pairs, items, strict=True):
            self.assign(name, item)

    def _view(self, target: ast.Subscript) -> ArrayValue | Masked:
        base = self.readable(target, self.eval(target.value))
        if isinstance(base, Host):
            fail_as_array(self.builder, target, base)
        if not isinstance(base, ArrayValue) or not base.is_view:
            self.builder.fail(
                target, "this is no array that can be written", "write into an array or a slice"
            )
        view = self.expressions.part(target, base, self.scope, to_write=True)
        if not isinstance(view, ArrayValue | Masked):
            self.builder.fail(
                target, "this index moves with a value of the run", "write all rows at once"
            )
        return view

    def bind(self, node: ast.AST, name: str, value: Value) -> None:
        """Bind a name."""
        self.scope.unbound.pop(name, None)
        self.scope.names[name] = self.kept(node, self.readable(node, value), name)

    def readable(self, node: ast.AST, value: Value) -> Value:
        """Return a value for a name: an array from outside as one that may not be written."""
        if isinstance(value, Host) and is_array(value.value) and not value.is_own:
            return self.builder.constant(node, value)
        return value

    def _augassign(self, node: ast.AugAssign) -> None:
        target: Value
        of_list = isinstance(node.target, ast.Subscript) and isinstance(
            self.eval(node.target.value), TupleValue
        )
        if isinstance(node.target, ast.Subscript) and not of_list:
            target = self._view(node.target)
        else:
            target = self.eval(node.target)
        start = len(self.builder.out)
        value = self.eval(node.value)
        if isinstance(node.op, ast.MatMult):
            products.check_in_place(self.builder, node, value)
        if isinstance(target, Host) and has_in_place(target.value, node.op):
            name, kind = ast.unparse(node.target), type(target.value).__name__
            self.builder.fail(
                node,
                f"{name} is a {kind} that comes from outside, and Python would change it in place",
                f"pass it as an array of its own, np.array({name}), or write {name} = {name} + ...",
            )
        if isinstance(target, ArrayValue) and not target.shape:
            # One point: NumPy computes with its number, and writes that.
            old: Value = replace(values.sliced(target, [None]), is_view=False)
            ((_, old),) = self.expressions.settled(node, [(start, old)])
            result = self.expressions.binary(node, type(node.op), old, value)
            operand = self.builder.operand(node, result)
            if isinstance(operand, ArrayValue):
                operand = values.sliced(operand, [0] * len(operand.shape))
            self.builder.assign(node, target, operand)
            return
        if isinstance(target, Masked):
            ((_, target),) = self.expressions.settled(node, [(start, target)])
        if isinstance(target, TupleValue) and target.is_list and isinstance(node.op, ast.Add):
            assert isinstance(node.target, ast.Name)
            more = lists.items_of(self.builder, node, value)
            lists.grow(self, node, node.target.id, target, more)
            return
        result = self.expressions.binary(node, type(node.op), target, value)
        if isinstance(target, Masked) and isinstance(result, Masked):
            call.same_kind(self.expressions, node, result.array.type, target.array.type)
            masks.assign(self.builder, node, target, result)
            return
        if not isinstance(target, ArrayValue):
            self.assign(node.target, result)
            return
        operand = self.builder.operand(node, result)
        call.same_kind(self.expressions, node, call.stored_type(operand), target.type)
        self.builder.assign(node, target, operand)

    # --- control flow ---

    def _with(self, node: ast.With) -> Flow:
        """Lower what is inside np.errstate: programs have no warnings."""
        for item in node.items:
            call = item.context_expr
            f = self.eval(call.func) if isinstance(call, ast.Call) else None
            given = call.keywords if isinstance(call, ast.Call) else []
            silent = all(
                isinstance(k.value, ast.Constant) and k.value.value in ("ignore", "warn")
                for k in given
            )
            if not (isinstance(f, Host) and f.value is np.errstate and silent):
                self.builder.fail(
                    node,
                    "with is taken of np.errstate alone, of its ignore and warn",
                    "write it around the call of the program",
                )
        return self.block(node.body)

    def _if(self, node: ast.If) -> Flow:
        condition = self.expressions.test(node.test, self.scope)
        known = self.expressions.known_truth(condition)
        if known is not None:
            return self.block(node.body if known else node.orelse)
        return branches(self, node, self.expressions.truth(node.test, condition))

    def _for(self, node: ast.For) -> Flow:
        return loops.for_loop(self, node)

    def _while(self, node: ast.While) -> Flow:
        return loops.while_loop(self, node)

    def _break(self, node: ast.Break) -> Flow:
        return loops.leave(self, node)

    def _continue(self, node: ast.Continue) -> Flow:
        return loops.leave(self, node)

    # --- programs in programs ---

    def call_program(
        self,
        node: ast.Call,
        program: Any,
        args: list[Value],
        keywords: dict[str, Value],
        scope: Scope,
    ) -> Value:
        """Return what another program returns, written out in place of the call."""
        if isinstance(program, MethodType):  # Python's own of a class method
            program = program.__func__.__get__(program.__self__)
        if len(self.scopes) > _MOST_CALLS:
            self.builder.fail(
                node, f"programs call one another {_MOST_CALLS} deep", "recursion is not taken"
            )
        try:
            receiver = map(Host, program.receiver)
            bound = program.signature.bind(*receiver, *args, **keywords)
        except TypeError as error:
            self.builder.fail(node, str(error), f"the program is {program.name}{program.signature}")
        body = self._body(program.source)
        around: Scope | None = getattr(program, "scope", None)
        if around is not None and all(around.function is not s for s in self.scopes):
            self.builder.fail(
                node,
                f"{program.name} is called after the function that defines it has ended",
                "define it in the function that calls it",
            )
        own = {*regions.assigned(body, and_grown=False), *program.signature.parameters}
        inner = Scope(frozenset(own), outer=around)
        for name, parameter in program.signature.parameters.items():
            default = parameter.default
            if around is None:
                default = Host(default, literal=True, text=name)
            value = bound.arguments.get(name, default)
            if parameter.kind is parameter.VAR_POSITIONAL:
                value = TupleValue(tuple(bound.arguments.get(name, ())))
            elif parameter.kind is parameter.VAR_KEYWORD:
                if name in bound.arguments:
                    self.builder.fail(node, "** of a program takes no values", "name the arguments")
                value = Host({}, literal=True)
            inner.names[name] = self.kept(node, self.readable(node, value), name)
        outer, depth = self.builder.source, self.depth
        self.scopes.append(inner)
        prefix = self.builder.prefix
        self.builder.source, self.depth = program.source, 0
        self.builder.prefix = f"{program.name}_"
        self.loops.insert(0, regions.Frame(self))
        try:
            flow = self.block(body)
        finally:
            self.builder.source, self.depth = outer, depth
            self.builder.prefix = prefix
            self.scopes.pop()
            self.loops.pop(0)
        return flow.value if isinstance(flow, Returned) else Host(None, literal=True)

    def _check_storage(self) -> None:
        """Refuse to give storage of the caller's arrays, which may have moved, to new arrays."""
        b = self.builder
        callers = {name for name, f in b.fields.items() if f.role == "argument"}
        for _ in b.permutes:
            for _, fields, _ in b.permutes:
                callers |= fields if fields & callers else set()
        for node, _, given_up in b.permutes:
            if given_up & callers:
                b.fail(
                    node,
                    "names change places with an argument, and then stand for new arrays",
                    "begin with a copy of the argument: .copy()",
                )
