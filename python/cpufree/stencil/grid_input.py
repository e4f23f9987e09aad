"""Values on grids as users give them: arrays, or functions that are asked for boxes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cpufree import device_arrays
from cpufree.arguments import DeviceArray
from cpufree.device_arrays import cuda_device
from cpufree.engines import choices
from cpufree.engines.digests import digest
from cpufree.errors import InvalidInputError, OutOfMemoryError
from cpufree.text import counted

BOUNDARIES = ("dirichlet", "periodic")

Box = tuple[slice, ...]
"""Points of a grid: a slice with start and stop for each axis."""
GridLike: TypeAlias = npt.ArrayLike | DeviceArray | Callable[[Box], npt.ArrayLike]
"""Values at all points of a grid: an array, or a function that returns those of a box."""


@dataclass(frozen=True, eq=False)
class GridValues:
    """Values at all points of a grid: an array, or a function that returns those of a box."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    array: npt.NDArray[Any] | None = None
    function: Callable[[Box], Any] | None = None
    is_file: bool = False
    """The function reads the file `name`."""

    @property
    def origin(self) -> str:
        """Where values of a box come from, for messages."""
        return self.name if self.is_file else f"what {self.name} returns"

    @property
    def size(self) -> int:
        """How many points there are."""
        return int(np.prod(self.shape, dtype=object))

    def part(self, box: Box) -> npt.NDArray[Any]:
        """Return the values of a box as a contiguous array.

        Raises:
            InvalidInputError: what a function returns does not fit. What it raises passes through.
        """
        if self.array is not None:
            return np.ascontiguousarray(self.array[box])
        assert self.function is not None
        shape = tuple(axis.stop - axis.start for axis in box)
        if math.prod(shape) * self.dtype.itemsize > sys.maxsize:
            raise no_room(shape, self.dtype)
        values = as_values(self.function(box), self.origin)
        if values.shape != shape:
            raise InvalidInputError(
                f"{self.name} returns values of shape {values.shape} for points {spell(box)}: "
                f"give {shape}"
            )
        return as_type(values, self.dtype, self.name)

    def by_numbers(self, lo: Sequence[int], hi: Sequence[int]) -> npt.NDArray[Any]:
        """Return the values of points lo to hi, as the compiled core asks for them."""
        return self.part(tuple(map(slice, lo, hi)))

    @property
    def summary(self) -> str:
        """What is the same for the same values; of functions nothing is known."""
        return "a function" if self.array is None else f"array {digest(self.array):032x}"


class Room:
    """Memory for the values of one box, which the compiled core asks for."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.box: Box = ()
        self.values: npt.NDArray[Any] = np.empty(0, dtype)

    def __call__(self, lo: Sequence[int], hi: Sequence[int]) -> npt.NDArray[Any]:
        self.box = tuple(map(slice, lo, hi))
        shape = tuple(end - begin for begin, end in zip(lo, hi, strict=True))
        try:
            self.values = np.empty(shape, self.dtype)
        except MemoryError:
            raise no_room(shape, self.dtype) from None
        return self.values


def no_room(shape: tuple[int, ...], dtype: np.dtype[Any]) -> OutOfMemoryError:
    """Return the error for values that no memory here holds."""
    points = " x ".join(map(str, shape))
    size = math.prod(shape) * dtype.itemsize / 2**30
    return OutOfMemoryError(f"{points} points of {dtype} take {size:.4g} GiB: not enough memory")


def whole(shape: Sequence[int]) -> Box:
    """Return the box of all points."""
    return tuple(slice(0, n) for n in shape)


def spell(box: Box) -> str:
    """Return a box as one writes it."""
    return "[" + ", ".join(f"{axis.start}:{axis.stop}" for axis in box) + "]"


def as_grid(
    values: Any, name: str, shape: Sequence[int] | None, dtype: npt.DTypeLike | None
) -> GridValues:
    """Return first values, an array or a function of boxes, the latter with shape and dtype."""
    if not callable(values):
        for what, given in (("shape", shape), ("dtype", dtype)):
            if given is not None:
                raise InvalidInputError(
                    f"{what} is for a function: {name} is an array, which has one of its own"
                )
        array = as_values(values, name)
        return GridValues(name, array.shape, array.dtype, array)
    if shape is None:
        raise InvalidInputError(f"{name} is a function: give the shape of the grid as well")
    try:
        sizes = tuple(shape)
    except TypeError:
        raise InvalidInputError(f"shape is {shape!r}: give 2 or 3 numbers of points") from None
    if len(sizes) not in (2, 3):
        raise InvalidInputError(f"shape has {counted(len(sizes), 'number')}: give 2 or 3")
    sizes = tuple(choices.integer("a number of shape", n, 1) for n in sizes)
    kind = choices.floating(np.float64 if dtype is None else dtype)
    return GridValues(name, sizes, kind, function=values)


def as_values(values: Any, name: str) -> npt.NDArray[Any]:
    """Return values as a contiguous, finite array of float32 or float64, 2D or 3D."""
    if cuda_device(values) is not None:
        values = device_arrays.copy_to_host(values, name)
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(f"{name} has a mask, which a stencil has no use for: fill it")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} is no array of numbers: {error}") from None
    if array.dtype.kind not in "fiu":
        raise InvalidInputError(f"{name} holds {array.dtype}: give real numbers")
    if array.ndim not in (2, 3):
        raise InvalidInputError(
            f"{name} has {counted(array.ndim, 'dimension')}: give an array of 2 or 3"
        )
    if array.size == 0:
        raise InvalidInputError(f"{name} has shape {array.shape}: every dimension needs a point")
    single = array.dtype.name == "float32"  # in whatever order of bytes
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInputError(
            f"{name}{list(where)} is {array[where]}: values must be finite, for an iteration would "
            "spread what is not over the grid"
        )
    return array


def as_source(source: Any, like: GridValues) -> GridValues:
    """Return a source term, of the shape and type of `like`."""
    if callable(source):
        return GridValues("source", like.shape, like.dtype, function=source)
    term = as_values(source, "source")
    if term.shape != like.shape:
        raise InvalidInputError(f"source has shape {term.shape}, u0 {like.shape}: give one like u0")
    term = as_type(term, like.dtype, "source")
    return GridValues("source", term.shape, term.dtype, term)


def as_type(values: npt.NDArray[Any], dtype: np.dtype[Any], name: str) -> npt.NDArray[Any]:
    """Return finite values in a type in which they are finite as well."""
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(values, dtype=dtype)
    if not np.isfinite(values).all():
        raise InvalidInputError(f"values of {name} are too large for float32: give u0 as float64")
    return values


def as_boundary(boundary: str | Sequence[str], dims: int) -> list[bool]:
    """Return for each axis whether it is periodic."""
    names: list[Any] = [boundary] * dims
    if isinstance(boundary, Iterable) and not isinstance(boundary, str):
        names = list(boundary)
    for name in names:
        choices.one_of("boundary", name, BOUNDARIES)
    if len(names) != dims:
        raise InvalidInputError(
            f"boundary has {counted(len(names), 'name')}, but u0 {dims} dimensions: give one name "
            "for each, or one for all"
        )
    return [name == "periodic" for name in names]


def count_updates(shape: Sequence[int], periodic: Sequence[bool]) -> int:
    """Return how many points of a grid an iteration updates."""
    inner = (n if wraps else max(0, n - 2) for n, wraps in zip(shape, periodic, strict=True))
    return math.prod(inner)
