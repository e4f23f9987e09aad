"""What a program's text means beside its arguments: the values of names from outside.

DaCe takes them into the graph as constants, so a graph holds as long as they are the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any, TypeAlias

import numpy as np

from cpufree import device_arrays

Key: TypeAlias = tuple[Any, ...]
_DEEP = 4  # attributes of attributes
_NUMBERS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_CONSTANT = ("numpy", "dace", "math", "cmath", "sympy", "builtins", "cpufree", "scipy")
"""Packages that are taken as constant."""


def key_of(function: Any) -> Key:
    """Return what the names of a function from outside stand for; that can be compared.

    Examples
    --------
    >>> half = 0.5
    >>> key_of(lambda a: half * a) == key_of(lambda a: 0.5 * a)
    False
    """
    return tuple(_names(function, set()))


def key_of_arguments(arguments: Mapping[str, Any]) -> Key:
    """Return the types of arguments, and the values of what is no array."""
    return tuple((n, _argument(v)) for n, v in sorted(arguments.items()) if v is not None)


def _argument(value: Any) -> Key:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return ("array", tuple(value.shape), str(value.dtype))
    return _value(value, set(), set(), _DEEP)


def _names(function: Any, seen: set[int]) -> Iterator[Key]:
    if id(function) in seen or not _has_code(function):
        return
    seen.add(id(function))
    names = set(_of_code(function.__code__))
    around = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    values = {**function.__globals__, **around}
    for name in sorted(names & set(values)):
        yield name, _value(values[name], names, seen, _DEEP)
    yield "defaults", _value(function.__defaults__, names, seen, _DEEP)


def _has_code(value: Any) -> bool:
    return isinstance(getattr(value, "__code__", None), CodeType)


def _of_code(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _of_code(part)


def _value(value: Any, names: set[str], seen: set[int], deep: int) -> Key:
    """Return what stands for a value: itself, its parts, or which object it is."""
    kind = type(value).__name__
    if isinstance(value, _NUMBERS):
        return kind, repr(value)
    if isinstance(value, np.ndarray):
        return kind, value.shape, str(value.dtype), value.tobytes()
    if isinstance(value, tuple | list | set | frozenset | dict):
        parts = value.items() if isinstance(value, dict) else value
        found = tuple(_value(p, names, seen, deep - 1) for p in parts) if deep else ()
        return kind, found
    function = getattr(value, "f", value)
    if _has_code(function):
        return kind, id(function), tuple(_names(function, seen))
    package = (value if isinstance(value, ModuleType) else type(value)).__dict__.get(
        "__name__" if isinstance(value, ModuleType) else "__module__", ""
    )
    if not deep or str(package).partition(".")[0] in _CONSTANT:
        return kind, id(value)
    if device_arrays.cuda_device(value) is not None:
        return kind, id(value)
    attributes = sorted(n for n in names if hasattr(value, n))
    found = tuple((n, _value(getattr(value, n), names, seen, deep - 1)) for n in attributes)
    return kind, id(value), found
