"""Arguments of a call of a program: arrays of NumPy, CuPy and PyTorch, and others."""

from __future__ import annotations

import array as arrays_of_python
import dataclasses
import inspect
from collections.abc import Mapping, Sequence, Set
from copy import copy
from itertools import count
from types import GeneratorType, MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree import device_arrays
from cpufree.compiler import ir
from cpufree.compiler.arrays import divided_first
from cpufree.compiler.front.lowered import Lowered, Outside
from cpufree.compiler.front.values import (
    ArrayValue,
    Host,
    Listed,
    ScalarValue,
    TupleValue,
    Value,
)
from cpufree.compiler.operations import KINDS
from cpufree.errors import InvalidInputError

Array = npt.NDArray[Any]
_NO_ARRAYS = (memoryview, bytearray, arrays_of_python.array)
_USED_UP: tuple[type, ...] = (
    GeneratorType,
    zip,
    map,
    filter,
    enumerate,
    type(iter(())),
    type(iter([])),
)
_TABLES = ("pandas", "xarray", "polars", "jax", "jaxlib")
"""Libraries whose arrays have rules of their own."""


class Arguments:
    """The arguments of one call.

    `given` are the caller's objects, `arrays` those that are arrays, as arrays of NumPy, and
    `lowered` all of them as the compiler takes them. Of arrays on a GPU, whose names are in
    `on_gpu`, `arrays` has no values, but shape and type, until `to_host` brings them.
    """

    def __init__(self, name: str, given: dict[str, Any]) -> None:
        self.name = name
        self.given = given
        self.arrays: dict[str, Array] = {}
        self.lowered: dict[str, Any] = {}
        self.on_gpu: set[str] = set()
        self.brought: set[str] = set()
        """The names of arrays on a GPU whose values `to_host` has brought."""
        self.lists: dict[str, Listed] = {}
        for key, value in tuple(given.items()):
            self._take(key, value)
        for key, value in tuple(given.items()):
            if type(value) in (list, tuple) and value:
                self._take_list(key, value)

    def _take(self, key: str, value: Any) -> None:
        if device_arrays.cuda_device(value) is not None:
            self.on_gpu.add(key)
        array = _as_array(self.name, key, value)
        self.lowered[key] = value if array is None else array
        if array is not None:
            self.arrays[key] = array

    def _take_list(self, key: str, items: Sequence[Any]) -> None:
        """Make arguments of the arrays in a list."""
        names = [key]
        for k in range(len(items)):
            taken = {*self.given, *names}
            names.append(
                next(n for more in count() if (n := f"{key}_{k}{'_' * more}") not in taken)
            )
        try:
            for name, item in zip(names[1:], items, strict=True):
                self._take(name, item)
                self.given[name] = item
        except InvalidInputError:  # an array that programs do not have may be known beforehand
            pass
        self.lists[key] = Listed(tuple(names[1:]), isinstance(items, list))
        if not all(name in self.arrays for name in names[1:]):
            self.leave_lists(key)
            return
        del self.lowered[key]
        self.lowered[key] = self.lists[key]  # behind its items

    def leave_lists(self, *keys: str) -> bool:
        """Let lists of arrays be what they are: known beforehand; return whether there are any."""
        found = keys or tuple(self.lists)
        for key in found:
            for name in self.lists.pop(key).names:
                for kept in (self.arrays, self.lowered, self.given):
                    kept.pop(name, None)
                self.on_gpu.discard(name)
            self.lowered[key] = self.given[key]
        return bool(found)

    @classmethod
    def of(
        cls, signature: inspect.Signature, name: str, args: Any, kwargs: Mapping[str, Any]
    ) -> Arguments:
        """Return the arguments of a call.

        Raises:
            InvalidInputError: they do not suit the signature, or an array cannot be used.
        """
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidInputError(f"{name}{signature}: {error}") from None
        bound.apply_defaults()
        return cls(name, dict(bound.arguments))

    def check(self, program: ir.Program, outside: Outside = MappingProxyType({})) -> None:
        """Refuse arrays that are written and cannot be, or that overlap others that are read.

        `outside` has the arrays that are no arguments.

        Raises:
            InvalidInputError: with the name of the array.
        """
        for key in sorted(program.written & set(self.arrays)):
            if key not in self.on_gpu and not self.arrays[key].flags.writeable:
                raise InvalidInputError(
                    f"{self.name} writes into {key}, which is read-only: pass a copy"
                )
            if key not in self.on_gpu and overlaps_itself(self.arrays[key]):
                raise InvalidInputError(
                    f"{self.name} writes into {key}, of which several points share memory, so that "
                    "the result hangs on the order: pass a copy"
                )
            self._check_outside(key, program, outside)
            for other in self.arrays:
                if other != key and self._overlap(key, other):
                    raise InvalidInputError(
                        f"{self.name} writes into {key}, which shares memory with {other}: pass a "
                        "copy of one of them"
                    )

    def _check_outside(self, key: str, program: ir.Program, outside: Outside) -> None:
        """Refuse an array that is written where the program reads its memory by another name."""
        for field, (text, array) in outside.items():
            if key in self.on_gpu or not np.shares_memory(self.arrays[key], array):
                continue
            if field in _fields_read(program):
                raise InvalidInputError(
                    f"{self.name} writes into {key}, which shares memory with {text}, which it "
                    "reads: pass a copy of one of them"
                )

    def _overlap(self, one: str, other: str) -> bool:
        """Return whether two arrays share memory."""
        if (one in self.on_gpu) != (other in self.on_gpu):
            return False
        if one not in self.on_gpu:
            return bool(np.shares_memory(self.arrays[one], self.arrays[other]))
        begin, end = device_arrays.extent(self.given[one])
        first, last = device_arrays.extent(self.given[other])
        return begin < last and first < end

    @property
    def near(self) -> int | None:
        """The number of the GPU on which the first array on one lies; None: there is none."""
        for key, value in self.given.items():
            if key in self.on_gpu:
                return device_arrays.cuda_device(value)
        return None

    def to_host(self) -> None:
        """Bring the values of arrays on GPUs, for what runs on the CPU."""
        for key in self.on_gpu & set(self.arrays):
            self.arrays[key] = np.array(device_arrays.copy_to_host(self.given[key], key))
        self.brought |= self.on_gpu
        self.on_gpu = set()

    def contiguous(self, key: str, copy_values: bool = True, axis: int = 0) -> Any:
        """Return an array where it lies, or one without gaps in its place; `axis` is the first."""
        if key in self.on_gpu:
            given = device_arrays.moved(self.given[key], axis, 0)
            return device_arrays.contiguous(given, copy_values)
        array = divided_first(self.arrays[key], axis)
        if copy_values or array.flags.c_contiguous:
            return np.ascontiguousarray(array)
        return np.empty(array.shape, array.dtype)

    def in_planes(self, fields: Sequence[ir.Field]) -> Arguments:
        """Return arguments whose arrays are given by planes where these fields are planes."""
        planes = [(f.name, *f.plane) for f in fields if f.role == "argument" and f.plane]
        if not planes:
            return self
        made = copy(self)
        made.arrays, made.given = dict(self.arrays), dict(self.given)
        made.on_gpu, made.brought = set(self.on_gpu), set(self.brought)
        for name, whole, k in planes:
            made.arrays.pop(whole, None)
            made.arrays[name], made.given[name] = self.arrays[whole][k], self.given[whole][k]
            for names in (made.on_gpu, made.brought):
                names |= {name} if whole in names else set()
        return made

    def take_results(
        self, arrays: Mapping[str, Any], places: Mapping[str, Any], written: Set[str]
    ) -> dict[str, Any]:
        """Bring what `contiguous` gave as places to the caller's arrays.

        Returns `arrays` with the caller's own instead of their places; new ones are put beside
        those on a GPU, where there are any.
        """
        like = next((self.given[key] for key in sorted(self.on_gpu & set(self.arrays))), None)
        owners = {id(place): key for key, place in places.items()}
        for key in written & set(places):
            self._accept(key, places[key])
        self.give_back(written)
        found = {}
        for name, array in arrays.items():
            owner = owners.get(id(array))
            if owner is not None:
                found[name] = self.arrays[owner]
            else:
                found[name] = array if like is None else device_arrays.copy_beside(like, array)
        return found

    def _accept(self, key: str, values: Any) -> None:
        if key not in self.on_gpu:
            if not np.may_share_memory(values, self.arrays[key]):
                self.arrays[key][...] = values
        elif device_arrays.address(values) != device_arrays.address(self.given[key]):
            device_arrays.assign(self.given[key], values)

    def give_back(self, written: Set[str]) -> None:
        """Bring what was written to the arrays that `to_host` has brought."""
        for key in written & self.brought & set(self.arrays):
            device_arrays.copy_into(self.given[key], self.arrays[key])

    def returned(
        self, lowered: Lowered, arrays: Mapping[str, Array], scalars: Mapping[str, Any]
    ) -> Any:
        """Return what the call returns: the caller's arrays as they are, new ones as arrays."""
        return _Returned(self, lowered, arrays, scalars).value(lowered.result)


def overlaps_itself(array: Array) -> bool:
    """Return whether two points of an array share memory."""
    reach = array.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True)):
        if n > 1 and stride < reach:
            break
        reach += stride * (n - 1)
    else:
        return False
    # Strides that interlace may yet be fit: all points have a place of their own.
    places = np.zeros((), np.int64)
    for stride, n in zip(array.strides, array.shape, strict=True):
        places = places[..., None] + stride * np.arange(n)
    return bool((np.diff(np.sort(places.ravel())) < array.itemsize).any())


def _fields_read(program: ir.Program) -> set[str]:
    """Return the names of the fields whose points a program reads."""
    found: set[str] = set()

    def look(part: Any) -> None:
        if isinstance(part, ir.Read | ir.Element):
            found.add(part.field)
        if dataclasses.is_dataclass(part):
            for f in dataclasses.fields(part):
                look(getattr(part, f.name))
        elif isinstance(part, tuple):
            for item in part:
                look(item)

    look(program.body)
    return found


def _as_array(program: str, name: str, value: Any) -> Array | None:
    """Return an argument as an array of NumPy that shares memory; None where it is no array."""
    if isinstance(value, np.ma.MaskedArray | np.matrix):
        raise InvalidInputError(
            f"{name} is a {type(value).__name__}, whose rules are not those of arrays: pass a "
            "plain array"
        )
    array = None
    if isinstance(value, np.ndarray):
        array = value
    elif device_arrays.cuda_device(value) is not None:
        device_arrays.require_known(value, name)
        shape, kind = device_arrays.layout(value)
        array = np.broadcast_to(np.zeros((), kind), shape)
    elif device_arrays.library_of(value) == "torch" and hasattr(value, "detach"):
        array = value.detach().numpy()
    elif isinstance(value, _NO_ARRAYS) or type(value).__module__.split(".")[0] in _TABLES:
        kind = type(value).__name__
        raise InvalidInputError(f"{program}: {name} is of type {kind}: pass np.asarray({name})")
    elif isinstance(value, _USED_UP):
        raise InvalidInputError(
            f"{program}: {name} is an iterator, which can be gone through once: pass tuple({name})"
        )
    if array is None or array.ndim == 0:
        return None
    if array.dtype.name not in ir.TYPES or not array.dtype.isnative:
        kind = array.dtype.str if array.dtype.name in ir.TYPES else array.dtype.name
        raise InvalidInputError(
            f"{program}: {name} holds {kind}; use one of {', '.join(ir.TYPES)} ({name}.astype)"
        )
    if array.size == 0:
        raise InvalidInputError(f"{program}: {name} has shape {array.shape}: no points")
    return array.view(np.ndarray)


class _Returned:
    """What a call returns, from what a run has left."""

    def __init__(
        self,
        arguments: Arguments,
        lowered: Lowered,
        arrays: Mapping[str, Array],
        scalars: Mapping[str, Any],
    ) -> None:
        self.arrays: dict[str, Any] = {**lowered.data, **arrays}
        self.scalars = scalars
        self.fields = {f.name: f for f in lowered.program.fields}
        self.given = arguments.given
        given = {id(array): arguments.given[key] for key, array in arguments.arrays.items()}
        for name, array in arrays.items():  # names may have changed places
            self.arrays[name] = given.get(id(array), array)
        self.views: dict[int, Any] = {}
        """By the value that they are of: one object where the program has one."""

    def value(self, result: Value | None) -> Any:
        """Return a value as an object of Python."""
        if result is None:
            return None
        if isinstance(result, Host):
            return copy(result.value) if result.is_own else result.value
        if isinstance(result, TupleValue) and isinstance(result.made, str):
            return self.given[result.made]
        if isinstance(result, TupleValue):
            items = [self.value(item) for item in result.items]
            return items if result.is_list else tuple(items)
        if isinstance(result, ScalarValue):
            return _number(result, self.scalars)
        assert isinstance(result, ArrayValue)
        if result.unless and not self.scalars[result.unless[0]]:
            return self.value(result.unless[1])
        if id(result) not in self.views:
            self.views[id(result)] = self._array(result)
        return self.views[id(result)]

    def _array(self, result: ArrayValue) -> Any:
        assert isinstance(result.expr, ir.Read)
        base, f = self.arrays[result.expr.field], self.fields[result.expr.field]
        first, *others = result.expr.axes
        first = dataclasses.replace(
            first, start=(first.start - f.first) // f.apart, step=first.step // f.apart
        )
        axes = (*others[: f.axis], first, *others[f.axis :])
        whole = all(a == ir.Axis(k) for k, a in enumerate(axes))
        if whole and not result.is_part:
            return base
        index = tuple(
            a.start if a.dim == ir.FIXED else _slice(a, result.shape[a.dim]) for a in axes
        )
        return base[index].reshape(result.shape)


def _slice(axis: ir.Axis, count: int) -> slice:
    """Return the part of an axis that a view has; it may be empty."""
    stop = axis.start + axis.step * (count - 1) + 1 if count else axis.start
    return slice(axis.start, stop, axis.step)


def _number(result: ScalarValue, scalars: Mapping[str, Any]) -> Any:
    value = result.expr.value if isinstance(result.expr, ir.Literal) else None
    if isinstance(result.expr, ir.Scalar):
        value = scalars[result.expr.name]
    kind = result.kind
    if result.tag is not None:
        assert isinstance(result.tag, ir.Scalar)
        kind = KINDS[int(scalars[result.tag.name])]
    weak: dict[str, Any] = {"int": int, "float": float, "truth": bool}
    return weak[kind](value) if kind in weak else np.dtype(kind).type(value)
