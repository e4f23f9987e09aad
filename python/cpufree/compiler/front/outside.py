"""What a call's lowering depends on besides the text: values, as keys that tell them apart.

A key is made of what the text reads: names from outside and arguments, with the attributes and
items that it reads of them. Numbers, strings and tuples are told apart by value, functions by
identity, small arrays by both, and other programs by what their text reads. Of anything else
there is no key.
"""

from __future__ import annotations

import enum
import types
from collections import namedtuple
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

import numpy as np

from cpufree.compiler.front.text.helpers import helper_of
from cpufree.compiler.front.text.source import Source
from cpufree.compiler.front.text.uses import Step, Use
from cpufree.compiler.front.values import Listed

_PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis))
_FUNCTIONS = (types.BuiltinFunctionType, np.ufunc)
_NUMBERS = (np.number, np.bool_)
_MODULES = ("numpy", "math")
_MOST_BYTES = 1 << 16
"""Of an array whose values are part of a key."""
_PAIR: Any = namedtuple("_PAIR", "first second")
# Attributes of classes that are looked up without running code of the user's.
_FINDERS = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    staticmethod,
    classmethod,
    type(_PAIR.first),
)
Key: TypeAlias = Any


class NoKey(Exception):
    """Something may change unseen."""


class Same:
    """An object, told from others by identity; it lives as long as the key."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


_ABSENT = Same("no value")


def key_of(source: Source, arguments: Mapping[str, Any]) -> Key:
    """Return what the lowering of a call depends on.

    Raises:
        NoKey: on something that may change unseen.
    """
    arrays = [(n, a.shape, a.dtype.str) for n, a in arguments.items() if _is_field(a)]
    return tuple(arrays), _key_of_text(source, arguments, frozenset())


def _is_field(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _key_of_text(source: Source, known: Mapping[str, Any], seen: frozenset[Any]) -> Key:
    """Return the key of what a text reads; `known` are those of its arguments that are known."""
    parts = []
    for use in source.uses:
        if use.is_parameter and (use.name not in known or _is_field(known[use.name])):
            continue
        parts.append(value_key(_value(use, known if use.is_parameter else source.names), seen))
    return tuple(parts)


def _value(use: Use, names: Mapping[str, Any]) -> Any:
    value = names.get(use.name, _ABSENT)
    for step in use.steps:
        if value is _ABSENT or isinstance(value, np.ndarray | Listed):
            break
        value = _after(value, step)
    return value


def value_key(value: Any, seen: frozenset[Any] = frozenset()) -> Key:
    """Return something hashable that tells a value from others of any type.

    Raises:
        NoKey: there is none.
    """
    kind = type(value)
    if kind in _PLAIN or isinstance(value, np.dtype | Listed):
        return kind, value
    if (kind is type or kind in _FUNCTIONS) and _is_known(value):
        return Same(value)
    if kind is float:
        return kind, value.hex()  # 0.0 is not -0.0
    if kind is range or isinstance(value, _NUMBERS):
        return kind, repr(value)
    if (isinstance(value, tuple) and "__eq__" not in vars(kind)) or kind is tuple:
        return kind, tuple([value_key(v, seen) for v in value])
    if kind is slice:
        return kind, value_key((value.start, value.stop, value.step), seen)
    if kind is np.ndarray and value.dtype.kind != "O" and value.nbytes <= _MOST_BYTES:
        return Same(value), value.shape, value.strides, value.dtype.str, value.tobytes()
    if getattr(kind, "is_cpufree_program", False):
        return _key_of_program(value, seen)
    helper = helper_of(value)
    if helper is not None:
        return _key_of_program(helper, seen)
    if value is _ABSENT or isinstance(value, enum.Enum) or _is_known(value):
        return Same(value)
    raise NoKey


def _key_of_program(program: Any, seen: frozenset[Any]) -> Key:
    """Return the key of another program: of what its text reads, too."""
    source, receiver = program.source, program.receiver
    place = (source, *map(id, receiver))
    if place in seen:
        return Same(source)
    parameters = program.signature.parameters
    known = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    known.update(zip(parameters, receiver, strict=False))
    return Same(source), _key_of_text(source, known, seen | {place})


def _is_known(value: Any) -> bool:
    """Return whether a value is of Python or NumPy: a module, a function, a type of number."""
    if isinstance(value, types.ModuleType):
        return value.__name__ in _MODULES
    if isinstance(value, _FUNCTIONS):
        owner = getattr(value, "__self__", None)
        return owner is None or isinstance(owner, types.ModuleType)
    module = (getattr(value, "__module__", None) or "").split(".")[0]
    if isinstance(value, type):  # attributes of others may change
        return module in ("numpy", "builtins")
    return module == "numpy" and hasattr(value, "__qualname__") and callable(value)


def _after(value: Any, step: Step) -> Any:
    """Return an attribute or item of a value; _ABSENT: it has none.

    Raises:
        NoKey: to look at it may do more than that.
    """
    is_attribute, name = step
    if is_attribute:
        return getattr(value, name, _ABSENT) if _only_finds(value, name) else _refuse()
    if type(value) not in (tuple, list, dict):
        _refuse()
    try:
        return value[name]
    except (LookupError, TypeError):
        return _ABSENT


def _refuse() -> NoReturn:
    raise NoKey


def _only_finds(value: Any, name: str) -> bool:
    """Return whether reading an attribute runs no code of the user's."""
    kind = type(value)
    if isinstance(value, types.ModuleType):
        return name in vars(value)
    if isinstance(value, enum.EnumMeta) and name in value.__members__:
        return True
    if isinstance(kind.__getattribute__, types.FunctionType):
        return False
    classes = (*kind.__mro__, *(value.__mro__ if isinstance(value, type) else ()))
    found = [vars(c)[name] for c in classes if name in vars(c)]
    if found:
        return all(map(_finds, found))
    return name in getattr(value, "__dict__", ()) or not hasattr(kind, "__getattr__")


def _finds(attribute: Any) -> bool:
    kind = type(attribute)
    is_plain = not hasattr(kind, "__get__") or kind in _FINDERS
    return is_plain or getattr(kind, "is_cpufree_program", False)
