"""Calls in a program: NumPy's functions, methods of arrays, other programs."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cpufree.compiler import ir, values
from cpufree.compiler.operations import PURE, UFUNCS, stored
from cpufree.compiler.protocols import Evaluates
from cpufree.compiler.values import ArrayValue, Host, ScalarValue, Scope, TupleValue, Value

_TYPES: dict[Any, str] = {
    np.float64: "float64", np.float32: "float32", np.int64: "int64", np.int32: "int32",
    np.bool_: "bool",
}  # fmt: skip
_MATH = {
    getattr(math, name): name
    for name in [
        "sqrt",
        "exp",
        "log",
        "sin",
        "cos",
        "tan",
        "fabs",
        "floor",
        "ceil",
        "tanh",
        "sinh",
        "cosh",
    ]
    if name not in ("floor", "ceil")
}
_UFUNC_NAMES = {ufunc: name for name, ufunc in UFUNCS.items()}
_METHODS = ("copy", "astype", "fill", "sum", "max", "min", "mean", "any", "all", "item")


class Call:
    """A call whose function and arguments have been evaluated."""

    def __init__(self, e: Evaluates, node: ast.Call, scope: Scope, function: Any) -> None:
        self.e, self.node, self.scope, self.function = e, node, scope, function
        if any(isinstance(a, ast.Starred) for a in node.args):
            e.builder.fail(node, "starred arguments are not taken", "write them out")
        self.args = [e.eval(a, scope) for a in node.args]
        self.keywords = {k.arg or "**": e.eval(k.value, scope) for k in node.keywords}

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

    def done(self) -> None:
        """Refuse what has not been taken."""
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


def call(e: Evaluates, node: ast.Call, scope: Scope) -> Value:
    """Return what a call stands for."""
    if isinstance(node.func, ast.Attribute):
        owner = e.eval(node.func.value, scope)
        if isinstance(owner, ArrayValue | ScalarValue):
            return _method(e, node, scope, owner)
    function = e.eval(node.func, scope)
    if not isinstance(function, Host):
        e.builder.fail(node, "this is no function", "call a function of NumPy or a program")
    made = Call(e, node, scope, function.value)
    if getattr(function.value, "is_cpufree_program", False):
        return e.call_program(node, function.value, made.args, made.keywords, scope)
    handler = _handler(function.value)
    if handler is not None:
        return handler(made)
    if function.value in _UFUNC_NAMES or function.value in _MATH:
        return _ufunc(made)
    return _beforehand(made)


def _handler(function: Any) -> Callable[[Call], Value] | None:
    try:
        return _FUNCTIONS.get(function)
    except TypeError:  # not hashable: none of ours
        return None


def _on_host(c: Call) -> bool:
    return all(
        isinstance(a, Host) and not (isinstance(a.value, np.ndarray) and a.value.ndim)
        for a in (*c.args, *c.keywords.values())
    )


def _beforehand(c: Call) -> Value:
    """Call a function of the host now, where that is the same as calling it in the run."""
    f = c.function
    name = getattr(f, "__name__", repr(f))
    module = (getattr(f, "__module__", "") or "").split(".")[0]
    known = f in (len, range, int, float, bool, abs, min, max, round, tuple, list, sum)
    if not (known or (name in PURE and module in ("numpy", "math")) or isinstance(f, np.ufunc)):
        advice = (
            "put @cpufree.program above its def"
            if module not in ("numpy", "builtins")
            else ("docs/compiler.md has the list of functions")
        )
        c.fail(f"{name} is outside the language of programs", advice)
    plain: list[Any] = []
    for value in (*c.args, *c.keywords.values()):
        plain.append(_plain(c, value, name))
    try:
        result = f(
            *plain[: len(c.args)], **dict(zip(c.keywords, plain[len(c.args) :], strict=True))
        )
    except Exception as error:
        c.fail(f"{type(error).__name__}: {error}", "that is what Python says of this call")
    if isinstance(result, tuple | list) and any(isinstance(r, np.ndarray) for r in result):
        return TupleValue(tuple(Host(r) for r in result))
    return Host(result, literal=all(isinstance(a, Host) and a.literal for a in c.args))


def _plain(c: Call, value: Value, name: str) -> Any:
    if isinstance(value, Host):
        return value.value
    if isinstance(value, TupleValue):
        return tuple(_plain(c, item, name) for item in value.items)
    return c.fail(
        f"{name} of values of the run is outside the language of programs",
        "docs/compiler.md has the list of functions; compute it before the call",
    )


def _ufunc(c: Call) -> Value:
    f = c.function
    if _on_host(c):
        return _beforehand(c)
    name = _UFUNC_NAMES.get(f) or _MATH[f]
    out = c.keywords.pop("out", None)
    c.done()
    operands = [c.operand(k) for k in range(len(c.args))]
    count = UFUNCS[name].nin
    if len(operands) == count + 1 and out is None:
        out = operands.pop()
    if len(operands) != count:
        c.fail(f"{name} takes {count} arguments", "give as many")
    result = c.e.builder.elementwise(c.node, name, operands)
    if isinstance(result, ScalarValue):
        result = ScalarValue(result.expr, "float" if f in _MATH else result.expr.type)
    if out is None:
        return result
    if isinstance(out, TupleValue) and len(out.items) == 1:
        out = out.items[0]
    if not (isinstance(out, ArrayValue) and out.is_view):
        c.fail("out is no array", "pass an array or a slice of one")
    assert isinstance(out, ArrayValue)
    same_kind(c.e, c.node, stored_type(result), out.type)
    c.e.builder.assign(c.node, out, result)
    return out


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


def _builtin_minmax(name: str) -> Callable[[Call], Value]:
    def handle(c: Call) -> Value:
        if _on_host(c):
            return _beforehand(c)
        if len(c.args) != 2 or any(isinstance(c.operand(k), ArrayValue) for k in (0, 1)):
            c.fail(
                f"Python's {name} takes two numbers here",
                f"write np.{name}imum(a, b) for each point, np.{name}(a) for one number",
            )
        a, b = c.operand(0), c.operand(1)
        # Python keeps the first one unless the second one is less (greater).
        compare = "less" if name == "min" else "greater"
        builder = c.e.builder
        condition = builder.elementwise(c.node, compare, [b, a])
        kinds = [stored_type(a), stored_type(b)]
        kind = np.result_type(*kinds).name
        args = (condition.expr, builder.cast(b.expr, kind), builder.cast(a.expr, kind))
        assert isinstance(a, ScalarValue) and isinstance(b, ScalarValue)
        return ScalarValue(ir.Op("where", args, kind), a.kind if a.kind == b.kind else kind)

    return handle


def _convert_number(c: Call) -> Value:
    """float(x), int(x), bool(x), np.float64(x) and so on."""
    if _on_host(c):
        if c.function in _TYPES:
            value = c.args[0].value if c.args and isinstance(c.args[0], Host) else 0
            literal = isinstance(c.args[0], Host) and c.args[0].literal if c.args else True
            return Host(c.function(value), literal=literal)
        return _beforehand(c)
    operand = c.operand()
    if c.function in _TYPES:
        kind = _TYPES[c.function]
        if isinstance(operand, ArrayValue):
            return ArrayValue(c.e.builder.cast(operand.expr, kind), operand.shape, kind)
        return ScalarValue(c.e.builder.cast(operand.expr, kind), kind)
    if isinstance(operand, ArrayValue):
        c.fail(f"{c.function.__name__} of an array", "write .astype(...)")
    assert isinstance(operand, ScalarValue)
    kind = {float: "float", int: "int", bool: "bool"}[c.function]
    if kind == "int" and stored(operand.kind).startswith("float"):
        c.fail("int of a float of the run is not taken", "use np.int64(x)")
    if kind == "bool":
        return ScalarValue(c.e.truth(c.node, operand), "bool")
    return ScalarValue(c.e.builder.cast(operand.expr, stored(kind)), kind)


def _where(c: Call) -> Value:
    if len(c.args) != 3:
        c.fail("np.where takes three arguments here", "write np.where(condition, a, b)")
    condition, a, b = c.operand(0), c.operand(1), c.operand(2)
    builder = c.e.builder
    kinds = builder.kinds(c.node, [a, b])
    dummies = [_dummy(k, isinstance(o, ArrayValue)) for k, o in zip(kinds, (a, b), strict=True)]
    kind = np.where(np.ones(1, bool), *dummies).dtype.name
    shape, exprs = builder.together(c.node, [condition, a, b])
    test = exprs[0]
    if test.type != "bool":
        test = ir.Op("not_equal", (test, ir.Literal(0, test.type)), "bool")
    expr = ir.Op("where", (test, builder.cast(exprs[1], kind), builder.cast(exprs[2], kind)), kind)
    return ScalarValue(expr, kind) if shape is None else ArrayValue(expr, shape, kind)


def _dummy(kind: str, is_array: bool) -> Any:
    weak: dict[str, Any] = {"int": 1, "float": 1.0, "bool": True}
    if not is_array and kind in weak:
        return weak[kind]
    number = np.dtype(stored(kind)).type(1)
    return np.full(1, number) if is_array else number


def _clip(c: Call) -> Value:
    low, high = c.take("a_min", 1), c.take("a_max", 2)
    low, high = c.keywords.pop("min", low), c.keywords.pop("max", high)
    c.done()
    result: ScalarValue | ArrayValue = c.array()
    for name, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            value = bound if isinstance(bound, ScalarValue | ArrayValue | Host) else Host(bound)
            operand = c.e.builder.operand(c.node, value)
            result = c.e.builder.elementwise(c.node, name, [result, operand])
    return result


def _roll(c: Call) -> Value:
    array = c.array()
    shift, axis = c.take("shift", 1), c.take("axis", 2)
    c.done()
    if axis is None and len(array.shape) == 1:
        axis = 0
    if axis is None:
        c.fail("np.roll without axis rolls the flattened array", "give axis")
    pairs = zip(_numbers(c, shift), _numbers(c, axis), strict=True)
    for by, along in pairs:
        if not -len(array.shape) <= along < len(array.shape):
            c.fail(f"the array has no axis {along}", "correct the axis")
        try:
            array = values.rolled(array, by, along % len(array.shape))
        except values.OutOfRange as error:
            c.fail(str(error), "keep the rolled part in an array of its own first")
    return array


def _numbers(c: Call, value: Any) -> list[int]:
    items = value.items if isinstance(value, TupleValue) else [value]
    plain = [v.value if isinstance(v, Host) else v for v in items]
    if not all(isinstance(v, int | np.integer) for v in plain):
        c.fail("shift and axis must be known beforehand", "give whole numbers")
    return [int(v) for v in plain if isinstance(v, int | np.integer)]


def _reduction(op: str) -> Callable[[Call], Value]:
    def handle(c: Call) -> Value:
        if _on_host(c):
            return _beforehand(c)
        operand = c.operand()
        c.args = c.args[:1] + [a for a in c.args[1:] if not _none(a)]
        for name in ("axis", "keepdims", "dtype", "initial", "where", "out"):
            given = c.keywords.pop(name, None)
            if (given is not None and not _none(given)) or len(c.args) > 1:
                c.fail(
                    "a reduction along some axes is outside the language of programs",
                    "reduce over all points: np.sum(a)",
                )
        c.done()
        if isinstance(operand, ScalarValue):
            return operand
        return reduced(c, op, operand)

    return handle


def _none(value: Value) -> bool:
    return isinstance(value, Host) and value.value is None


def reduced(c: Call, op: str, array: ArrayValue) -> ScalarValue:
    """Return a reduction of an array, in the type that NumPy gives it."""
    builder = c.e.builder
    kind = array.type
    if op in ("any", "all"):
        test = array.expr
        if kind != "bool":
            test = ir.Op("not_equal", (test, ir.Literal(0, kind)), "bool")
        if math.prod(array.shape) == 0:
            return ScalarValue(ir.Literal(op == "all", "bool"), "bool")
        array = ArrayValue(test, array.shape, "bool")
        extreme = "max" if op == "any" else "min"
        return ScalarValue(builder.reduce(c.node, extreme, array, "bool"), "bool")
    if op in ("max", "min"):
        return ScalarValue(builder.reduce(c.node, op, array, kind), kind)
    whole = not kind.startswith("float")
    if op == "mean":
        total = builder.reduce(c.node, "sum", array, "float64" if whole else kind)
        count = ir.Literal(math.prod(array.shape), total.type)
        return ScalarValue(ir.Op("divide", (total, count), total.type), total.type)
    result = "int64" if whole else kind
    return ScalarValue(builder.reduce(c.node, "sum", array, result), result)


def _norm(c: Call) -> Value:
    array, order = c.array(), c.take("ord", 1)
    c.done()
    if not array.type.startswith("float"):
        array = ArrayValue(c.e.builder.cast(array.expr, "float64"), array.shape, "float64")
    if order is not None and (order != np.inf or len(array.shape) != 1):
        c.fail("this order of a norm is not taken", "write it with np.sum, np.max and np.abs")
    if order is not None:
        size = ir.Op("absolute", (array.expr,), array.type)
        return reduced(c, "max", ArrayValue(size, array.shape, array.type))
    square = ir.Op("multiply", (array.expr, array.expr), array.type)
    total = reduced(c, "sum", ArrayValue(square, array.shape, array.type))
    return ScalarValue(ir.Op("sqrt", (total.expr,), array.type), array.type)


def _create(c: Call) -> Value:
    """np.zeros, np.empty_like and so on: a new array."""
    name = c.function.__name__
    like = name.endswith("_like")
    fills = name.startswith("full")
    first = c.take("a" if like else "shape", 0)
    fill: Any = c.take("fill_value", 1) if fills else float(name.startswith("ones"))
    dtype = c.take("dtype", 2 if fills else 1)
    c.keywords.pop("order", None)
    c.done()
    if like:
        model = c.e.builder.operand(c.node, first if isinstance(first, ArrayValue) else Host(first))
        if not isinstance(model, ArrayValue):
            c.fail("this function takes an array", "pass an array")
        assert isinstance(model, ArrayValue)
        shape, kind = model.shape, model.type
    else:
        shape, kind = _shape(c, first), "float64"
    value = fill if isinstance(fill, ScalarValue) else c.e.builder.operand(c.node, Host(fill, True))
    if fills and not like and isinstance(value, ScalarValue):
        kind = np.full(1, _dummy(value.kind, False)).dtype.name
    if dtype is not None:
        kind = np.dtype(dtype).name
    array = c.e.builder.new_field(c.node, "made", shape, kind, "local")
    c.e.builder.assign(c.node, array, value)
    return array


def _shape(c: Call, shape: Any) -> tuple[int, ...]:
    if isinstance(shape, tuple):
        shape = TupleValue(tuple(Host(n) for n in shape))
    return tuple(_numbers(c, shape))


def _copy(c: Call) -> Value:
    c.keywords.pop("order", None)
    c.done()
    return c.e.builder.materialise(c.node, "copy", c.array())


def _copyto(c: Call) -> Value:
    c.done()
    target = c.array()
    if not target.is_view:
        c.fail("np.copyto writes into an array", "pass an array or a slice of one")
    value = c.operand(1)
    same_kind(c.e, c.node, stored_type(value), target.type)
    c.e.builder.assign(c.node, target, value)
    return Host(None)


def _abs(c: Call) -> Value:
    if _on_host(c):
        return _beforehand(c)
    return c.e.builder.elementwise(c.node, "absolute", [c.operand()])


def _method(e: Evaluates, node: ast.Call, scope: Scope, owner: Value) -> Value:
    assert isinstance(node.func, ast.Attribute)
    name = node.func.attr
    if name not in _METHODS:
        e.builder.fail(
            node,
            f"the method {name} is outside the language of programs",
            f"arrays have the methods {', '.join(_METHODS)}",
        )
    c = Call(e, node, scope, name)
    c.args.insert(0, owner)
    if name == "copy":
        return _copy(c)
    if name == "item":
        operand = c.operand()
        if isinstance(operand, ArrayValue):
            c.fail("item of an array", "index the array")
        assert isinstance(operand, ScalarValue)
        weak = {"float64": "float", "float32": "float", "bool": "bool"}
        kind = weak.get(stored(operand.kind), "int")
        return ScalarValue(e.builder.cast(operand.expr, stored(kind)), kind)
    if name == "astype":
        dtype = c.take("dtype", 1)
        c.done()
        array, kind = c.array(), np.dtype(dtype).name
        return ArrayValue(e.builder.cast(array.expr, kind), array.shape, kind)
    if name == "fill":
        e.builder.assign(node, c.array(), c.operand(1))
        return Host(None)
    return _reduction(name)(c)


_FUNCTIONS: dict[Any, Callable[[Call], Value]] = {
    min: _builtin_minmax("min"), max: _builtin_minmax("max"), abs: _abs,
    float: _convert_number, int: _convert_number, bool: _convert_number,
    np.where: _where, np.clip: _clip, np.roll: _roll, np.copy: _copy, np.copyto: _copyto,
    np.linalg.norm: _norm,
    **{dtype: _convert_number for dtype in _TYPES},
    **{f: _create for f in (np.zeros, np.ones, np.empty, np.full)},
    **{f: _create for f in (np.zeros_like, np.ones_like, np.empty_like, np.full_like)},
    **{getattr(np, name): _reduction(name) for name in ("sum", "max", "min", "mean", "any", "all")},
    np.amax: _reduction("max"), np.amin: _reduction("min"),
}  # fmt: skip
