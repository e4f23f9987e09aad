"""Plain functions that programs call: written out in place of the call, as other programs are."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from cpufree.compiler.front.text.source import Source
from cpufree.errors import CpufreeError

_LIBRARIES = ("numpy", "scipy", "cpufree", "math", "cupy", "torch", "jax", "numba")


@dataclass(frozen=True, eq=False)
class Helper:
    """A function without a decorator, and the object whose method it is."""

    name: str
    source: Source
    signature: inspect.Signature
    receiver: tuple[Any, ...] = ()


_KNOWN: WeakKeyDictionary[FunctionType, Helper | None] = WeakKeyDictionary()


def helper_of(function: Any) -> Helper | None:
    """Return a plain function of the user's as something to lower; None: it is none."""
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
