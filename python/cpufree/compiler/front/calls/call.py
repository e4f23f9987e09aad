"""A call in a program: its function and arguments, and what calls have in common."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front.calls.advice import instead_of
from cpufree.compiler.front.numbers.large import too_large
from cpufree.compiler.front.protocols import Evaluates
from cpufree.compiler.front.rows import known
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    ScalarValue,
    Scope,
    TupleValue,
    Value,
    unpacked,
)
from cpufree.compiler.operations import PURE, Kind, stored
from cpufree.text import counted

_GO_THROUGH: tuple[Any, ...] = (sum, any, all, min, max, tuple, list, enumerate, zip)
"""Functions of Python that go through what they are given, once."""


def _as_list(node: ast.expr) -> ast.expr:
    if not isinstance(node, ast.GeneratorExp):
        return node
    return ast.copy_location(ast.ListComp(node.elt, node.generators), node)


@dataclass
class Call:
    """A call whose function and arguments have been evaluated."""

    e: Evaluates
    node: ast.AST
    scope: Scope
    function: Any
    args: list[Value]
    keywords: dict[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, e: Evaluates, node: ast.Call, scope: Scope, function: Any) -> Call:
        """Return a call of the text with its arguments evaluated."""
        if any(k.arg is None for k in node.keywords):
            e.builder.fail(node, "** arguments are not taken", "write them out")
        b, through = e.builder, any(function is f for f in _GO_THROUGH)
        # A generator is gone through once, as the list would be.
        args = [_as_list(a) if through else a for a in node.args]
        before, start = set(b.fields), len(b.out)
        given = e.in_order([*args, *(k.value for k in node.keywords)], scope)
        if args != node.args and ir.touched_fields(tuple(b.out[start:])) & before:
            b.fail(
                node,
                "what a generator evaluates writes into an array",
                "write a loop: Python goes on with a generator only when the next item is needed",
            )
        names = [str(k.arg) for k in node.keywords]
        count = len(given) - len(names)
        keywords = dict(zip(names, given[count:], strict=True))
        return cls(e, node, scope, function, given[:count], keywords)

    def fail(self, problem: str, advice: str) -> Any:
        """Raise ProgramError at the call."""
        self.e.builder.fail(self.node, problem, advice)

    def take(self, name: str, position: int, otherwise: Any = None) -> Any:
        """Return an argument by position or name, Host values as their objects."""
        value: Any = self.keywords.pop(name, None)
        if value is None and len(self.args) > position:
            value = self.args[position]
        if value is None:
            return otherwise
        return value.value if isinstance(value, Host) else value

    def done(self, most: int) -> None:
        """Refuse what has not been taken, and more than N arguments by position."""
        if len(self.args) > most:
            self.fail(f"this function takes {counted(most, 'argument')} here", "give no more")
        for name in self.keywords:
            self.fail(f"the argument {name} of this function is not taken", f"leave {name} out")

    def operand(self, k: int = 0) -> ScalarValue | ArrayValue:
        """Return argument k as an operand."""
        if k >= len(self.args):
            self.fail("an argument is missing", "give all arguments by position")
        return self.e.builder.operand(self.node, self.args[k])

    def array(self, k: int = 0) -> ArrayValue:
        """Return argument k as an array."""
        operand = self.operand(k)
        if not isinstance(operand, ArrayValue):
            self.fail("this function takes an array here", "pass an array")
        assert isinstance(operand, ArrayValue)
        return operand


def on_host(c: Call) -> bool:
    """Return whether all arguments are known beforehand."""
    return all(
        isinstance(a, Host) and not (isinstance(a.value, np.ndarray) and a.value.ndim)
        for a in (*c.args, *c.keywords.values())
    )


def beforehand(c: Call) -> Value:
    """Call a function of the host now, where that is the same as calling it in the run."""
    f = c.function
    name = getattr(f, "__name__", repr(f))
    module = (getattr(f, "__module__", "") or "").split(".")[0]
    is_pure = f in _GO_THROUGH or f in (len, range, int, float, bool, abs, round, slice)
    is_pure = is_pure or (isinstance(f, type) and issubclass(f, np.generic))
    if not (is_pure or (name in PURE and module in ("numpy", "math")) or isinstance(f, np.ufunc)):
        is_known = module in ("numpy", "builtins")
        advice = instead_of(name) if is_known else "put @cpufree.program above its def"
        if isinstance(f, type) and not is_known:
            advice = "make objects outside the program; inside, use tuples, lists and names"
        c.fail(f"{name} is outside the language of programs", advice)
    return called_beforehand(c)


def called_beforehand(c: Call) -> Value:
    """Call a function of the host, which must have no effects, with what is known now."""
    f = c.function
    name = getattr(f, "__name__", repr(f))
    given: dict[int, Any] = {}
    plain = [_plain(c, value, name, given) for value in (*c.args, *c.keywords.values())]
    if large := too_large(f, plain):
        c.fail(f"{large} is not computed", "write a smaller one")
    try:
        result = f(
            *plain[: len(c.args)], **dict(zip(c.keywords, plain[len(c.args) :], strict=True))
        )
    except Exception as error:
        c.fail(f"{type(error).__name__}: {error}", "that is what Python says of this call")
    if isinstance(result, tuple | list) and any(isinstance(r, np.ndarray) for r in result):
        return TupleValue(tuple(_result(r, given) for r in result))
    literal = all(isinstance(a, Host) and a.literal for a in c.args)
    return _result(result, given, literal)


def _result(result: Any, given: dict[int, Any], literal: bool = False) -> Host:
    """Return what a function of the host gives: new arrays and lists are the program's own."""
    result = given.get(id(result), result)
    own = isinstance(result, list)
    if isinstance(result, np.ndarray):
        own = not any(np.may_share_memory(result, a) for a in given.values())
    return Host(result, literal=literal, is_own=own)


def _plain(c: Call, value: Value, name: str, given: dict[int, Any]) -> Any:
    """Return an argument for the host; arrays so that they cannot be written (`given`: by id)."""
    if isinstance(value, Host) and isinstance(value.value, np.ndarray):
        array = value.value.view()
        array.flags.writeable = False
        given[id(array)] = value.value
        return array
    if isinstance(value, Host):
        return value.value
    if isinstance(value, TupleValue):
        return tuple(_plain(c, item, name, given) for item in value.items)
    return c.fail(
        f"{name} cannot be used on run-time values",
        f"{instead_of(name)}; or compute it before the call",
    )


def stored_type(value: ScalarValue | ArrayValue) -> str:
    """Return the type of a value."""
    return value.type if isinstance(value, ArrayValue) else stored(value.kind)


def same_kind(e: Evaluates, node: ast.AST, given: str, target: str) -> None:
    """Refuse what NumPy does not write in place: floats into whole numbers."""
    if not np.can_cast(given, target, "same_kind"):
        e.builder.fail(
            node,
            f"NumPy does not write {given} in place into {target}",
            "assign with a[...] = b, which converts",
        )


def written_to(c: Call, out: Any, result: ScalarValue | ArrayValue) -> ScalarValue | ArrayValue:
    """Return a result that is written into `out`, as NumPy does, where that is not None."""
    if out is None:
        return result
    if isinstance(out, TupleValue) and len(out.items) == 1:
        out = out.items[0]
    if not (isinstance(out, ArrayValue) and out.is_view):
        c.fail("out is no array", "pass an array or a slice of one")
    assert isinstance(out, ArrayValue)
    same_kind(c.e, c.node, stored_type(result), out.type)
    c.e.builder.assign(c.node, out, result, checks=False)
    return out


def dtype_of(c: Call, dtype: Any) -> str:
    """Return the name of a type that programs have."""
    try:
        kind: str = np.dtype(dtype).name
    except TypeError as error:
        c.fail(str(error), "write np.float64, np.float32, np.int64, np.int32 or np.bool_")
    c.e.builder.require_type(c.node, kind)
    return kind


def dummy(kind: str, is_array: bool) -> Any:
    """Return a number or array of a kind, to ask NumPy for types."""
    weak: dict[str, Any] = {"int": 1, "float": 1.0, "truth": True}
    if not is_array and kind in weak:
        return weak[kind]
    number = np.dtype(stored(kind)).type(1)
    return np.full(1, number) if is_array else number


def type_by_numpy(
    c: Call, operands: Sequence[ScalarValue | ArrayValue], f: Callable[..., Any]
) -> str:
    """Return the type of what NumPy's function gives for operands of these kinds."""

    def of(*kinds: Kind) -> str:
        pairs = zip(kinds, operands, strict=True)
        return str(f(*(dummy(k, isinstance(o, ArrayValue)) for k, o in pairs)).dtype.name)

    given = [o.type if isinstance(o, ArrayValue) else o.kind for o in operands]
    found: str = c.e.builder.one_for_all(c.node, f"np.{c.function.__name__}", given, of)
    c.e.builder.require_type(c.node, found)
    return found


def numbers(c: Call, value: Any) -> list[int]:
    """Return one or several whole numbers that are known beforehand."""
    if not isinstance(value, Host | ScalarValue | ArrayValue | TupleValue):
        value = Host(value)
    if isinstance(value, ArrayValue) and (there := known(c.e.builder, value)) is not None:
        value = Host(there.tolist())
    value = unpacked(value)
    items = value.items if isinstance(value, TupleValue) else [value]
    plain = [v.value if isinstance(v, Host) else v for v in items]
    if not all(isinstance(v, int | np.integer) for v in plain):
        c.fail(
            "shifts and axes must be known beforehand",
            "give whole numbers, or items of a tuple or array outside the program",
        )
    return [int(v) for v in plain if isinstance(v, int | np.integer)]
