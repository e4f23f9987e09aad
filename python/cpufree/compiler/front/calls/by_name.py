"""Calls in a program: NumPy's functions, methods of arrays, other programs."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front import lists, masks, values
from cpufree.compiler.front.calls import fields, products, shapes
from cpufree.compiler.front.calls.advice import instead_of
from cpufree.compiler.front.calls.arrays import (
    close,
    copy,
    copyto,
    count,
    create,
    equal,
    norm,
    reduction,
    reshape,
    spread,
)
from cpufree.compiler.front.calls.call import (
    Call,
    beforehand,
    called_beforehand,
    dtype_of,
    numbers,
    on_host,
    type_by_numpy,
    written_to,
)
from cpufree.compiler.front.numbers import fitting, python_numbers
from cpufree.compiler.front.protocols import Evaluates
from cpufree.compiler.front.text.helpers import helper_of
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    Masked,
    ScalarValue,
    Scope,
    TupleValue,
    Value,
)
from cpufree.compiler.operations import MATH, UFUNCS, WEAK, kinds_of, stored
from cpufree.text import counted

_TYPES: dict[Any, str] = {np.dtype(name).type: name for name in ir.TYPES}
_MATH = {getattr(math, name): name for name in MATH if hasattr(math, name)}
_UFUNC_NAMES = {ufunc: name for name, ufunc in UFUNCS.items()}


def call(e: Evaluates, node: ast.Call, scope: Scope) -> Value:
    """Return what a call stands for."""
    if isinstance(node.func, ast.Attribute):
        owner = e.eval(node.func.value, scope)
        if isinstance(owner, Host) and isinstance(owner.value, np.ndarray) and owner.value.ndim:
            if node.func.attr in _BEFOREHAND:
                return _method_beforehand(Call.of(e, node, scope, node.func.attr), owner)
            owner = e.builder.constant(node, owner)
        if isinstance(owner, ArrayValue | ScalarValue | Masked):
            return _method(e, node, scope, owner)
    function = e.eval(node.func, scope)
    helper = helper_of(function.value) if isinstance(function, Host) else None
    if not isinstance(function, Host) or not (helper or callable(function.value)):
        e.builder.fail(node, "this is no function", "call a function of NumPy or a program")
    made = Call.of(e, node, scope, function.value)
    if getattr(function.value, "is_cpufree_program", False):
        return e.call_program(node, function.value, made.args, made.keywords, scope)
    if helper is not None:
        return e.call_program(node, helper, made.args, made.keywords, scope)
    return _through_masks(made, lambda: _of_function(made))


def _of_function(c: Call) -> Value:
    try:
        handler = _FUNCTIONS.get(c.function, beforehand)
    except TypeError:  # not hashable: none of ours
        handler = beforehand
    return handler(c)


def _through_masks(c: Call, handle: Callable[[], Value]) -> Value:
    """Return what a call gives, of points that a mask chooses where those are among its arguments.

    Functions of each point alone are computed at all points.
    """
    given = [*c.args, *c.keywords.values()]
    if not (masks.has_masks(given) and _is_pointwise(c.function)):
        return handle()
    name = _UFUNC_NAMES.get(c.function)
    if name and ("out" in c.keywords or len(c.args) > UFUNCS[name].nin):
        c.fail("out beside points that a mask chooses", "write u[mask] = ...")
    if c.function is np.power:
        masks.check_power(c.e.builder, c.node, c.args)

    def compute(plain: list[Value]) -> Value:
        names, count = list(c.keywords), len(c.args)
        c.args, c.keywords = plain[:count], dict(zip(names, plain[count:], strict=True))
        return handle()

    return masks.pointwise(c.e.builder, c.node, given, compute)


def _is_pointwise(function: Any) -> bool:
    try:
        return function in _UFUNC_NAMES or function in _POINTWISE
    except TypeError:  # not hashable: none of ours
        return False


def _ufunc(c: Call) -> Value:
    f = c.function
    if on_host(c):
        return beforehand(c)
    name = _UFUNC_NAMES[f]
    out = c.keywords.pop("out", None)
    c.done(4)
    operands = [c.operand(k) for k in range(len(c.args))]
    count = UFUNCS[name].nin
    if len(operands) == count + 1 and out is None:
        out = operands.pop()
    if len(operands) != count:
        c.fail(f"{name} takes {count} arguments", "give as many")
    result = c.e.builder.elementwise(c.node, name, operands)
    if isinstance(result, ScalarValue):
        result = ScalarValue(result.expr, result.expr.type)
    return written_to(c, out, result)


def _math(c: Call) -> Value:
    """A function of Python's math, which takes numbers as floats of Python's and raises errors."""
    if on_host(c):
        return beforehand(c)
    name = _MATH[c.function]
    c.done(MATH[name])
    operands = [c.operand(k) for k in range(len(c.args))]
    if any(isinstance(o, ArrayValue) for o in operands):
        c.fail(f"math.{name} of an array", "use NumPy's function for arrays")
    if len(operands) != MATH[name]:
        c.fail(f"math.{name} takes {counted(MATH[name], 'argument')} here", "give as many")
    args = tuple(c.e.builder.cast(o.expr, "float64") for o in operands)
    return ScalarValue(ir.Op(f"math_{name}", args, "float64"), "float")


def _builtin_minmax(name: str) -> Callable[[Call], Value]:
    def handle(c: Call) -> Value:
        if on_host(c):
            return beforehand(c)
        builder = c.e.builder
        if len(c.args) == 1 and not isinstance(c.args[0], ArrayValue):
            c.args = lists.items_of(builder, c.node, c.args[0])
        c.done(len(c.args))
        if on_host(c) and c.args:
            return beforehand(c)
        if len(c.args) < 2 or any(isinstance(a, ArrayValue) for a in c.args):
            c.fail(
                f"Python's {name} takes several numbers here",
                f"write np.{name}imum(a, b) for each point, np.{name}(a) for one number",
            )
        # Python keeps the first one unless a later one is less (greater).
        comparison = "less" if name == "min" else "greater"
        best = c.operand(0)
        for k in range(1, len(c.args)):
            other = c.operand(k)
            condition = fitting.compare(builder, c.node, comparison, [other, best])
            best = c.e.choice(c.node, condition.expr, other, best)
        return best

    return handle


def _convert_number(c: Call) -> Value:
    """float(x), int(x), bool(x), np.float64(x) and so on."""
    if on_host(c):
        return beforehand(c)
    c.done(1)
    operand = c.operand()
    if c.function in _TYPES:
        kind = _TYPES[c.function]
        if isinstance(operand, ArrayValue) and operand.type == kind:
            return operand  # as NumPy does
        if isinstance(operand, ArrayValue):
            return ArrayValue(c.e.builder.cast(operand.expr, kind), operand.shape, kind)
        if any(one in WEAK for one in kinds_of(operand.kind)):
            operand = fitting.checked(c.e.builder, c.node, operand, kind)
        return ScalarValue(c.e.builder.cast(operand.expr, kind), kind)
    if isinstance(operand, ArrayValue):
        c.fail(f"{c.function.__name__} of an array", "write .astype(...)")
    assert isinstance(operand, ScalarValue)
    kind = {float: "float", int: "int", bool: "truth"}[c.function]
    if kind == "int":
        operand = fitting.checked(c.e.builder, c.node, operand, "int64")
    if kind == "truth":
        return ScalarValue(c.e.truth(c.node, operand), kind)
    return ScalarValue(c.e.builder.cast(operand.expr, stored(kind)), kind)


def _where(c: Call) -> Value:
    if len(c.args) != 3:
        c.fail("np.where takes three arguments here", "write np.where(condition, a, b)")
    condition, a, b = c.operand(0), c.operand(1), c.operand(2)
    builder = c.e.builder

    kind = type_by_numpy(c, [a, b], lambda *ab: np.where(np.ones(1, bool), *ab))
    shape, exprs = builder.together(c.node, [condition, a, b])
    test = exprs[0]
    if test.type != "bool":
        test = ir.Op("not_equal", (test, ir.Literal(0, test.type)), "bool")
    expr = ir.Op("where", (test, builder.cast(exprs[1], kind), builder.cast(exprs[2], kind)), kind)
    return ScalarValue(expr, kind) if shape is None else ArrayValue(expr, shape, kind)


def _clip(c: Call) -> Value:
    low, high = c.take("a_min", 1), c.take("a_max", 2)
    low, high = c.keywords.pop("min", low), c.keywords.pop("max", high)
    out = c.take("out", 3)
    c.done(4)
    builder, array = c.e.builder, c.array()
    bounds: dict[str, ScalarValue | ArrayValue] = {}
    for name, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            value = bound if isinstance(bound, ScalarValue | ArrayValue | Host) else Host(bound)
            bounds[name] = builder.operand(c.node, value)
    if not bounds:
        c.fail("np.clip takes a bound, or two", "write np.clip(a, low, high)")

    operands = [array, *bounds.values()]
    kind = type_by_numpy(c, operands, lambda *abc: np.clip(*abc, *[None] * (3 - len(abc))))
    result: ScalarValue | ArrayValue = array
    if array.type != kind:
        result = ArrayValue(builder.cast(array.expr, kind), array.shape, kind)
    given = {name: fitting.bound(name, o, kind) for name, o in bounds.items()}
    # Between two numbers NumPy keeps a zero; else it takes that of the bound.
    between = len(given) == 2 and all(isinstance(o, ScalarValue) for o in given.values())
    for name, operand in given.items():
        pair = [operand, result] if between else [result, operand]
        result = builder.elementwise(c.node, name, pair)
    return written_to(c, out, result)


def _roll(c: Call) -> Value:
    array = c.array()
    shift, axis = c.take("shift", 1), c.take("axis", 2)
    c.done(3)
    if axis is None and len(array.shape) == 1:
        axis = 0
    if axis is None:
        c.fail("np.roll without axis rolls the flattened array", "give axis")
    shifts, axes = numbers(c, shift), numbers(c, axis)
    try:
        pairs = np.broadcast(shifts, axes)
    except ValueError as error:
        c.fail(f"shift and axis: {error}", "give as many shifts as axes, or one")
    for by, along in ((int(s), int(a)) for s, a in pairs):
        if not -len(array.shape) <= along < len(array.shape):
            c.fail(f"the array has no axis {along}", "correct the axis")
        try:
            array = values.rolled(array, by, along % len(array.shape))
        except values.OutOfRange as error:
            c.fail(str(error), "keep the rolled part in an array of its own first")
    return array


_BEFOREHAND = (
    "reshape", "ravel", "flatten", "transpose", "tolist", "prod", "cumsum", "round", "argmax",
    "argmin", "repeat", "dot",
)  # fmt: skip
"""Methods that an array from outside has, for what they are called with that is known, too."""


def _method_beforehand(c: Call, owner: Host) -> Value:
    """Return what a method of an array that is known beforehand gives."""

    def method(array: np.ndarray, *args: Any, **keywords: Any) -> Any:
        return getattr(array, c.function)(*args, **keywords)

    method.__name__ = c.function
    made = called_beforehand(replace(c, function=method, args=[owner, *c.args]))
    if isinstance(made, Host) and isinstance(made.value, np.ndarray):
        shows_it = np.may_share_memory(made.value, owner.value)
        return replace(made, is_own=owner.is_own, text=owner.text) if shows_it else made
    return made


def _len(c: Call) -> Value:
    array = c.args[0] if len(c.args) == 1 else None
    if isinstance(array, ArrayValue):
        return Host(array.shape[0])
    return Host(len(array.items)) if isinstance(array, TupleValue) else beforehand(c)


def _abs(c: Call) -> Value:
    if on_host(c):
        return beforehand(c)
    c.done(1)
    operand = c.operand()
    if isinstance(operand, ScalarValue) and python_numbers.is_whole([operand.kind]):
        whole = c.e.builder.cast(operand.expr, "int64")
        return ScalarValue(ir.Op("py_absolute", (whole,), "int64"), "int")
    return c.e.builder.elementwise(c.node, "absolute", [operand])


def _method(e: Evaluates, node: ast.Call, scope: Scope, owner: Value) -> Value:
    assert isinstance(node.func, ast.Attribute)
    name = node.func.attr
    if name not in METHODS:
        e.builder.fail(
            node,
            f"the method {name} is outside the language of programs",
            instead_of(name, f"arrays have the methods {', '.join(METHODS)}"),
        )
    c = Call.of(e, node, scope, name)
    c.args.insert(0, owner)
    return _through_masks(c, lambda: METHODS[name](c))


def _item(c: Call) -> Value:
    c.done(1)
    operand = c.operand()
    if isinstance(operand, ArrayValue):
        c.fail("item of an array", "index the array")
    assert isinstance(operand, ScalarValue)
    if any(kind in WEAK for kind in kinds_of(operand.kind)):
        c.fail("a number of Python has no item", "leave .item() out")
    weak = {"float64": "float", "float32": "float", "bool": "truth"}
    b = c.e.builder
    kind = b.one_for_all(c.node, "item", [operand.kind], lambda kind: weak.get(kind, "int"))
    return ScalarValue(b.cast(operand.expr, stored(kind)), kind)


def _astype(c: Call) -> Value:
    dtype = c.take("dtype", 1)
    c.done(2)
    if dtype is None:
        c.fail("astype takes a type", "write .astype(np.float64)")
    array, kind = c.array(), dtype_of(c, dtype)
    return ArrayValue(c.e.builder.cast(array.expr, kind), array.shape, kind)


def _fill(c: Call) -> Value:
    c.done(2)
    if not c.array().is_view:
        c.fail("fill of an expression has no effect", "fill an array or a slice of one")
    c.e.builder.assign(c.node, c.array(), c.operand(1))
    return Host(None)


def _method_of(function: Any, handler: Callable[[Call], Value]) -> Callable[[Call], Value]:
    """Return what handles a method that does what a function does."""
    return lambda c: handler(replace(c, function=function))


_REDUCTIONS = {name: reduction(name) for name in ("sum", "max", "min", "mean", "any", "all")}
METHODS: dict[str, Callable[[Call], Value]] = {
    "copy": copy, "astype": _astype, "fill": _fill, **_REDUCTIONS, "item": _item,
    "reshape": reshape, "std": spread, "var": spread, "clip": _method_of(np.clip, _clip),
    "round": _method_of(np.round, fields.rounded), "repeat": _method_of(np.repeat, shapes.repeated),
    "dot": _method_of(np.dot, products.FUNCTIONS[np.dot]),
}  # fmt: skip

# Functions, and names of methods, of each point alone.
_POINTWISE = (
    np.where,
    np.clip,
    np.copy,
    np.round,
    np.around,
    abs,
    *_TYPES,
    *("astype", "copy", "clip", "round"),
)

_FUNCTIONS: dict[Any, Callable[[Call], Value]] = {
    **fields.FUNCTIONS, **products.FUNCTIONS, **shapes.FUNCTIONS,
    np.std: spread, np.var: spread,
    min: _builtin_minmax("min"), max: _builtin_minmax("max"), abs: _abs,
    **lists.FUNCTIONS, len: _len,
    np.where: _where, np.clip: _clip, np.roll: _roll, np.copy: copy, np.copyto: copyto,
    np.reshape: reshape, np.array_equal: equal, np.isclose: close, np.allclose: close,
    np.linalg.norm: norm, np.count_nonzero: count,
    **dict.fromkeys((float, int, bool, *_TYPES), _convert_number),
    **dict.fromkeys((np.zeros, np.ones, np.empty, np.full), create),
    **dict.fromkeys((np.zeros_like, np.ones_like, np.empty_like, np.full_like), create),
    **{getattr(np, name): handler for name, handler in _REDUCTIONS.items()},
    np.amax: _REDUCTIONS["max"], np.amin: _REDUCTIONS["min"],
    **dict.fromkeys(_MATH, _math), **dict.fromkeys(_UFUNC_NAMES, _ufunc),
}  # fmt: skip
