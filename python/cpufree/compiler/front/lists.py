"""Lists and tuples of lengths that are known beforehand: made, gone through, grown."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from itertools import islice
from typing import Any, NoReturn

from cpufree.compiler import ir
from cpufree.compiler.front import values
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.calls.call import Call, beforehand, on_host
from cpufree.compiler.front.flow.regions import grown_list
from cpufree.compiler.front.protocols import Evaluates, Lowers
from cpufree.compiler.front.rows import rows_of
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    ScalarValue,
    Scope,
    TupleValue,
    Value,
)
from cpufree.text import counted

MOST_ITEMS = 64
"""That a loop goes over which is written out."""


def items_of(b: Builder, node: ast.AST, value: Value) -> list[Value]:
    """Return what a loop over a value goes over."""
    value = values.unpacked(value)
    if isinstance(value, TupleValue):
        return list(value.items)
    if isinstance(value, ArrayValue) and 0 < value.shape[0] <= MOST_ITEMS:
        return rows_of(b, node, value)
    items: list[Value] = []
    if isinstance(value, Host):
        text = value.text and f"{value.text}[...]"
        with suppress(TypeError):
            items = [Host(item, text=text) for item in islice(value.value, MOST_ITEMS + 1)]
        if (isinstance(value.value, range) and not value.value) or 0 < len(items) <= MOST_ITEMS:
            return items
    b.fail(
        node,
        "loops go over range(...), or over a short tuple, list or range that is known beforehand",
        "write for k in range(n), and index with k",
    )


def _argument(c: Call, k: int) -> list[Value]:
    return items_of(c.e.builder, c.node, c.args[k] if k < len(c.args) else Host(None))


def _enumerate(c: Call) -> Value:
    start = c.take("start", 1, 0)
    c.done(2)
    if not isinstance(start, int):
        c.fail("enumerate begins with a whole number that is known beforehand", "write it so")
    pairs = enumerate(_argument(c, 0), start)
    return TupleValue(tuple(TupleValue((Host(k, literal=True), item)) for k, item in pairs))


def _zip(c: Call) -> Value:
    strict = c.take("strict", 99, False)
    rows = [_argument(c, k) for k in range(len(c.args))]
    c.done(len(rows))
    if strict and len({len(row) for row in rows}) > 1:
        c.fail("zip of unequal lengths", "give as many items of each")
    return TupleValue(tuple(map(TupleValue, zip(*rows, strict=False))))


def _reversed(c: Call) -> Value:
    c.done(1)
    return TupleValue(tuple(reversed(_argument(c, 0))))


def _sequence(c: Call) -> Value:
    """tuple(...) and list(...)."""
    if on_host(c):
        return beforehand(c)
    c.done(1)
    return TupleValue(tuple(_argument(c, 0)) if c.args else (), c.function is list)


def _sum(c: Call) -> Value:
    """Python's sum, which begins with 0."""
    if on_host(c):
        return beforehand(c)
    start = c.keywords.pop("start", c.args[1] if len(c.args) > 1 else Host(0, literal=True))
    c.done(2)
    add = partial(c.e.binary, c.node, ast.Add)
    return reduce(add, _argument(c, 0), start)


def _truth_of_all(c: Call) -> Value:
    """Python's any and all."""
    if on_host(c):
        return beforehand(c)
    c.done(1)
    is_any, tests = c.function is any, []
    for item in _argument(c, 0):
        known = c.e.known_truth(item)
        if known is is_any:
            return Host(is_any, literal=True)
        tests += [] if known is not None else [c.e.truth(c.node, item)]
    if not tests:
        return Host(not is_any, literal=True)
    name = "logical_or" if is_any else "logical_and"
    return ScalarValue(reduce(lambda a, b: ir.Op(name, (a, b), "bool"), tests), "truth")


FUNCTIONS: dict[Any, Any] = {
    enumerate: _enumerate, zip: _zip, reversed: _reversed,
    tuple: _sequence, list: _sequence, sum: _sum, any: _truth_of_all, all: _truth_of_all,
}  # fmt: skip


# --- comprehensions ---


def comprehension(e: Evaluates, node: ast.ListComp, scope: Scope) -> Value:
    """Return the list that a comprehension makes."""
    inner = Scope(outer=scope, of_comprehension=True)
    turns = _turns(e, node.generators, inner)
    kept = e.builder.kept
    return TupleValue(tuple(kept(node, e.eval(node.elt, inner), "item") for _ in turns), True)


def _turns(e: Evaluates, loops: list[ast.comprehension], scope: Scope) -> Iterator[None]:
    """Give names their values, turn by turn."""
    if not loops:
        yield None
        return
    loop, *others = loops
    for item in items_of(e.builder, loop.iter, e.eval(loop.iter, scope)):
        _bind(e.builder, loop.target, item, scope)
        truths = [e.known_truth(e.test(condition, scope)) for condition in loop.ifs]
        if None in truths:
            e.builder.fail(loop.iter, "the run decides what is in this list", "write a loop")
        if all(truths):
            yield from _turns(e, others, scope)


def _bind(b: Builder, target: ast.expr, item: Value, scope: Scope) -> None:
    if isinstance(target, ast.Name):
        scope.names[target.id] = item
        return
    for name, part in unpacked_for(b, target, item):
        _bind(b, name, part, scope)


def unpacked_for(b: Builder, target: ast.expr, value: Value) -> list[tuple[ast.expr, Value]]:
    """Return the names of a target with the values that they get."""
    names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    if isinstance(value, ScalarValue):
        b.fail(target, "a number is not several values", "give one name")
    items = items_of(b, target, value)
    if len(items) != len(names):
        words = f"{len(names)} names for {counted(len(items), 'value')}"
        b.fail(target, words, "give as many")
    return list(zip(names, items, strict=True))


# --- lists that grow ---


def grown(lowering: Lowers, node: ast.Call) -> bool:
    """Lower `name.append(item)` and the like; False: the call is none of them.

    A list is a value here, so its name gets another one. That is the same as long as nothing else
    shows the list.
    """
    name = grown_list(node)
    old = lowering.scope.names.get(name)
    if not (isinstance(old, TupleValue) and old.is_list and isinstance(node.func, ast.Attribute)):
        return False
    how = node.func.attr
    if len(node.args) != 1 or node.keywords:
        lowering.builder.fail(node, f"{how} takes one argument", "give one")
    given = lowering.kept(node, lowering.eval(node.args[0]), "item")
    more = [given] if how == "append" else items_of(lowering.builder, node, given)
    grow(lowering, node, name, old, more)
    return True


def grow(lowering: Lowers, node: ast.AST, name: str, old: TupleValue, more: list[Value]) -> None:
    """Give a name the list that has some items more."""
    if len(old.items) + len(more) > MOST_ITEMS:
        _refuse(lowering, node, f"{name} gets more than {MOST_ITEMS} items")
    _change(lowering, node, name, old, more, (*old.items, *more))


def set_item(lowering: Lowers, node: ast.Subscript, value: Value) -> bool:
    """Lower `name[k] = value` of a list; False: the name is none."""
    old = lowering.eval(node.value)
    if not (isinstance(old, TupleValue) and old.is_list and isinstance(node.value, ast.Name)):
        return False
    e = lowering.expressions
    key = e.host(node.slice, lowering.scope, "this index")
    given = lowering.kept(node, value, "item")
    items = list(old.items)
    try:
        if not isinstance(key, int):
            raise TypeError("items of lists are set one by one")
        items[key] = given
    except (IndexError, TypeError) as error:
        lowering.builder.fail(node, str(error), "correct the index")
    _change(lowering, node, node.value.id, old, [given], tuple(items))
    return True


def each_of(target: ast.Subscript) -> list[ast.Subscript]:
    """Return the parts u[0], u[-1] of u[[0, -1]]."""
    whole = target.slice
    index = list(whole.elts) if isinstance(whole, ast.Tuple) else [whole]
    lists_in = [k for k, i in enumerate(index) if isinstance(i, ast.List)]
    if len(lists_in) != 1:
        return [target]
    (at,) = lists_in
    found = []
    for one in index[at].elts:  # type: ignore[attr-defined]
        parts = [*index[:at], one, *index[at + 1 :]]
        made = ast.copy_location(ast.Tuple(parts, ast.Load()), whole)
        part = ast.Subscript(target.value, made if len(parts) > 1 else one, ast.Store())
        found.append(ast.copy_location(part, target))
    return found


def _change(
    lowering: Lowers,
    node: ast.AST,
    name: str,
    old: TupleValue,
    more: list[Value],
    items: tuple[Value, ...],
) -> None:
    """Give a name the list with other items, of which those in `more` are new."""
    if isinstance(old.made, str):
        _refuse(lowering, node, f"{name} changes, which is the caller's")
    if old.made is None:
        _refuse(lowering, node, f"{name} changes where the run decides, or is one of several lists")
    shown = list(more)
    for scope in lowering.scopes:
        shown += [v for k, v in scope.names.items() if k != name or scope is not lowering.scope]
    if lowering.scope.names.get(name) is not old or any(_shows(value, old) for value in shown):
        _refuse(lowering, node, f"{name} changes, which another name, a loop or the caller shows")
    lowering.scope.names[name] = replace(old, items=items)


def _shows(value: Value, part: TupleValue) -> bool:
    if not isinstance(value, TupleValue):
        return False
    same = value.made is part.made or value.made is None or part.made is None
    return (value.is_list and same) or any(_shows(item, part) for item in value.items)


def _refuse(lowering: Lowers, node: ast.AST, problem: str) -> NoReturn:
    lowering.builder.fail(
        node,
        problem,
        "write into an array that has a place for each (out[k] = u), or make a new list, "
        "a = a + [b]",
    )
