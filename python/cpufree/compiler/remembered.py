"""Calls that are alike need not be lowered again.

What a call lowers to follows from the function's text, from what its names mean, from types and
shapes of arrays and from the values of other arguments. A call is remembered where none of these
can change unseen.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cpufree.compiler.front.lowering import Lowered
from cpufree.compiler.front.source import Source

_MOST = 64
_PLAIN = (bool, int, str, bytes, type(None), np.integer, np.bool_, np.dtype)
_FIXED = (types.BuiltinFunctionType, np.ufunc)
_MODULES = ("numpy", "math")


class Remembered:
    """Lowered programs by what they follow from."""

    def __init__(
        self, source: Source, lower: Callable[[Source, Mapping[str, Any]], Lowered]
    ) -> None:
        self.source, self.lower = source, lower
        self.known: dict[tuple[Any, ...], Lowered] = {}
        self.is_fixed: bool | None = None
        """Whether what the function's names mean cannot change; None: nobody has looked."""

    def get(self, arguments: Mapping[str, Any]) -> Lowered:
        """Return what a call lowers to.

        Raises
        ------
        ProgramError
            Something is outside the language.
        """
        if self.is_fixed is None:
            self.is_fixed = names_are_fixed(self.source)
        key = call_key(arguments) if self.is_fixed else None
        if key is None:
            return self.lower(self.source, arguments)
        found = self.known.pop(key, None) or self.lower(self.source, arguments)
        while len(self.known) >= _MOST:
            self.known.pop(next(iter(self.known)))
        self.known[key] = found
        return found


def call_key(arguments: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return what a call's lowering depends on; None: on something that may change."""
    parts: list[Any] = []
    for name, value in arguments.items():
        if isinstance(value, np.ndarray) and value.ndim > 0:
            parts.append((name, value.shape, value.dtype.str))
            continue
        part = _part(value)
        if part is None:
            return None
        parts.append((name, part))
    return tuple(parts)


def _part(value: Any) -> Any:
    """Return something hashable that tells a value from others of any type; None: there is none."""
    if isinstance(value, float | np.floating):
        return type(value), float(value).hex(), repr(value)
    if isinstance(value, _PLAIN):
        return type(value), value
    if isinstance(value, tuple):
        parts = tuple(_part(v) for v in value)
        return None if None in parts else (tuple, parts)
    return None


def names_are_fixed(source: Source, seen: frozenset[int] = frozenset()) -> bool:
    """Return whether nothing that a function's text names can change.

    Globals are those of the time when the function became a program; modules, functions of NumPy,
    numbers and other programs stay what they are. Lists, arrays and other objects may not.
    """
    if id(source) in seen:
        return True
    for name in _free_names(source.tree) & set(source.names):
        value = source.names[name]
        if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] in _MODULES:
            continue
        if getattr(value, "is_cpufree_program", False):
            if not names_are_fixed(value.source, seen | {id(source)}):
                return False
        elif not (isinstance(value, _FIXED) or _is_numpy(value) or _part(value) is not None):
            return False
    return True


def _is_numpy(value: Any) -> bool:
    """Return whether a value is one of NumPy's functions, of which some are written in Python."""
    module = (getattr(value, "__module__", None) or "").split(".")[0]
    if isinstance(value, type):  # attributes of others may change
        return module in ("numpy", "builtins")
    return callable(value) and module == "numpy"


def _free_names(tree: ast.FunctionDef) -> set[str]:
    """Return the names that a function reads and does not set."""
    inside = [n for statement in tree.body for n in ast.walk(statement)]
    found = [n for n in inside if isinstance(n, ast.Name)]
    own = {n.id for n in found if not isinstance(n.ctx, ast.Load)}
    own |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    return {n.id for n in found} - own
