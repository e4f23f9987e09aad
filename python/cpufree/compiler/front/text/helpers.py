"""Plain functions that programs call: written out in place of the call, as other programs are."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from cpufree.compiler.front.protocols import Evaluates
from cpufree.compiler.front.text.source import Source
from cpufree.compiler.front.values import Scope
from cpufree.errors import CpufreeError

_LIBRARIES = ("numpy", "scipy", "cpufree", "math", "cupy", "torch", "jax", "numba")


@dataclass(frozen=True, eq=False)
class Helper:
    """A function without a decorator, and the object whose method it is."""

    name: str
    source: Source
    signature: inspect.Signature
    receiver: tuple[Any, ...] = ()
    scope: Scope | None = None
    """That of the program's function that defines it; None: it is defined outside."""


_KNOWN: WeakKeyDictionary[FunctionType, Helper | None] = WeakKeyDictionary()


def helper_of(function: Any) -> Helper | None:
    """Return a plain function of the user's as something to lower; None: it is none."""
    if isinstance(function, Helper):
        return function
    if isinstance(function, MethodType):
        found = helper_of(function.__func__)
        if found is None:
            return None
        return Helper(found.name, found.source, found.signature, (function.__self__,))
    if not isinstance(function, FunctionType):
        return None
    if (function.__module__ or "").split(".")[0] in _LIBRARIES:
        return None
    if function not in _KNOWN:
        _KNOWN[function] = _made(function)
    return _KNOWN[function]


def _made(function: FunctionType) -> Helper | None:
    try:
        return Helper(function.__name__, Source.of(function), inspect.signature(function))
    except CpufreeError:  # its text is not known
        return None


def local_function(e: Evaluates, node: ast.FunctionDef | ast.Lambda, scope: Scope) -> Helper:
    """Return a function that a program defines; its defaults are evaluated now."""
    tree = node
    if isinstance(node, ast.Lambda):
        value = ast.copy_location(ast.Return(node.body), node.body)
        tree = ast.copy_location(ast.FunctionDef("lambda", node.args, [value], []), node)
    elif node.decorator_list:
        e.builder.fail(
            node.decorator_list[0],
            "a decorator of a function inside a program is not taken",
            "leave it out, or define the function outside",
        )
    assert isinstance(tree, ast.FunctionDef)
    source = replace(e.builder.source, name=tree.name, tree=tree)
    return Helper(tree.name, source, _signature(e, node.args, scope), (), scope)


def _signature(e: Evaluates, args: ast.arguments, scope: Scope) -> inspect.Signature:
    """Return the signature of a function of the program, with values as defaults."""
    kinds = inspect.Parameter
    plain: list[tuple[str, Any]] = [(a.arg, kinds.POSITIONAL_ONLY) for a in args.posonlyargs]
    plain += [(a.arg, kinds.POSITIONAL_OR_KEYWORD) for a in args.args]
    given = [(d, e.eval(d, scope)) for d in (*args.defaults, *args.kw_defaults) if d is not None]
    values = {id(node): e.builder.kept(node, value, "default") for node, value in given}
    missing = len(plain) - len(args.defaults)
    defaults = [None] * missing + [values[id(d)] for d in args.defaults]
    made = [
        kinds(name, kind, default=kinds.empty if default is None else default)
        for (name, kind), default in zip(plain, defaults, strict=True)
    ]
    if args.vararg:
        made.append(kinds(args.vararg.arg, kinds.VAR_POSITIONAL))
    for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        default = kinds.empty if d is None else values[id(d)]
        made.append(kinds(a.arg, kinds.KEYWORD_ONLY, default=default))
    if args.kwarg:
        made.append(kinds(args.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(made)
