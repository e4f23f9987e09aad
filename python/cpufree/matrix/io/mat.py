"""Matrices in MATLAB's files of versions 4 to 7 (.mat).

The format: The MathWorks, "MAT-File Format". Of versions 5 to 7 SciPy's reader (as of 1.17) crashes
on a sparse matrix whose indices are damaged, so that what is needed here is read by NumPy alone:
sparse and dense matrices, by themselves or in structures. Files of version 4 SciPy reads.
"""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree.dtypes import COMPLEX_FILE
from cpufree.errors import FileFormatError, MatrixError
from cpufree.matrix.problem import check_shape

_COLLECTION = "Problem.A"
"""What the SuiteSparse collection calls its matrices: a field of a structure."""
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"},
    **{7: "f4", 9: "f8", 12: "i8", 13: "u8", 16: "u1"},  # 16: UTF-8, of names
}
_KINDS = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 6: "double", 7: "single"}
_STRUCT, _SPARSE, _DENSE = 2, 5, range(6, 16)
_COMPLEX, _LOGICAL = 0x0800, 0x0200
_MOST_VARIABLES = 10_000
_HEAD = 4096  # bytes of a compressed variable in which its name is found


@dataclass(frozen=True)
class _Variable:
    """A variable of a file, or a field of a structure."""

    name: str
    kind: int
    complex: bool
    logical: bool
    shape: tuple[int, ...]
    parts: Iterator[tuple[int, memoryview]]
    """What follows the name."""
    packed: memoryview | None = None
    """All of it, compressed, where no more than its head has been read."""

    def __str__(self) -> str:
        other = "integers" if self.kind in _DENSE else "other"
        return f"{self.name} ({_KINDS.get(self.kind, other)})"


def read_mat(path: Path, name: str = "") -> Any:
    """Return a matrix of a file.

    Args:
        path: the file.
        name: of the variable, or VARIABLE.FIELD in a structure, which may be a structure itself;
            "": the only sparse matrix, or that of the SuiteSparse collection, Problem.A.

    Raises:
        FileFormatError: damaged, of version 7.3, or there is no such matrix.
        MatrixError: complex, or not square.
    """
    if _is_version_4(path):
        return _read_version_4(path, name)
    if path.stat().st_size <= 128:
        raise FileFormatError(f"{path}: not a MATLAB file: it is too short", path)
    data: memoryview = np.memmap(path, np.uint8, mode="r").data
    order = _byte_order(path, bytes(data[:128]))
    variables = {variable.name: variable for variable in _variables(data[128:], order)}
    chosen = name or _only_matrix(path, variables)
    first, *within = chosen.split(".")
    if first not in variables:
        raise FileFormatError(f"{path}: there is no {first!r}; {_contents(variables)}", path)
    found = _whole(variables[first], order)
    for k, field in enumerate(within):
        fields = _fields(found, order)
        if field not in fields:
            where = ".".join((first, *within[:k]))
            raise FileFormatError(f"{path}: {where!r} has no field {field!r}", path)
        found = fields[field]
    if found.kind not in (_SPARSE, *_DENSE):
        what = f"{chosen!r} is not a matrix of numbers; {_contents(variables)}"
        raise FileFormatError(f"{path}: {what}", path)
    if found.complex:
        raise MatrixError(f"{path}: {COMPLEX_FILE}")
    check_shape(found.shape)
    return _sparse(found, order) if found.kind == _SPARSE else _dense(found, order)


def _byte_order(path: Path, head: bytes) -> str:
    advice = "in MATLAB, save it by save('A.mat', 'A', '-v7')"
    if head.startswith((b"MATLAB 7.3", b"\x89HDF")) or head[124:128] in (
        b"\x00\x02IM",
        b"\x02\x00MI",
    ):
        raise FileFormatError(
            f"{path}: a MATLAB file of version 7.3, which is not read here: {advice}", path
        )
    order = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(head[124:128])
    if order is None:
        raise FileFormatError(f"{path}: not a MATLAB file of versions 4 to 7: {advice}", path)
    return order


def _is_version_4(path: Path) -> bool:
    """Whether a file begins as those do: kind, rows, columns, imaginary part, length of the name.

    The kind is four digits: byte order, 0, type of the numbers, and full, text or sparse.
    """
    with open(path, "rb") as file:
        head = file.read(20)
    for order in "<>" if len(head) == 20 else "":
        kind, *_, imaginary, length = (int(word) for word in np.frombuffer(head, f"{order}i4"))
        machine, zero, numbers, matrix = kind // 1000, *(kind // 10**k % 10 for k in (2, 1, 0))
        if machine == (order == ">") and zero == 0 and numbers <= 5 and matrix <= 2:
            return imaginary in (0, 1) and 0 < length <= 1024
    return False


def _read_version_4(path: Path, name: str) -> Any:
    """Return a matrix of a file of version 4, as `read_mat` does."""
    import scipy.io  # a heavy import

    file = io.BytesIO(path.read_bytes())  # no more can be promised than there is
    kinds = {found: kind for found, _, kind in scipy.io.whosmat(file)}
    sparse = [found for found, kind in kinds.items() if kind == "sparse"]
    contents = f"the file holds {', '.join(f'{n} ({k})' for n, k in list(kinds.items())[:20])}"
    if not name and len(sparse) != 1:
        what = (
            f"several sparse matrices: {', '.join(sparse[:20])}" if sparse else "no sparse matrix"
        )
        raise FileFormatError(
            f"{path}: holds {what}; {contents}. Name the one that is meant, as in {path.name}#NAME",
            path,
        )
    chosen = name or sparse[0]
    if chosen not in kinds:
        raise FileFormatError(f"{path}: there is no {chosen!r}; {contents}", path)
    if kinds[chosen] not in ("sparse", "double"):
        raise FileFormatError(f"{path}: {chosen!r} is not a matrix of numbers; {contents}", path)
    file.seek(0)
    found = scipy.io.loadmat(file, variable_names=[chosen], spmatrix=False)[chosen]
    if found.dtype.kind == "c":
        raise MatrixError(f"{path}: {COMPLEX_FILE}")
    check_shape(found.shape)
    return found


def _only_matrix(path: Path, variables: dict[str, _Variable]) -> str:
    sparse = [name for name, variable in variables.items() if variable.kind == _SPARSE]
    if len(sparse) == 1:
        return sparse[0]
    if not sparse and "Problem" in variables and variables["Problem"].kind == _STRUCT:
        return _COLLECTION
    how = f"several sparse matrices: {', '.join(sparse[:20])}" if sparse else "no sparse matrix"
    more = "" if sparse else f"; {_contents(variables)}"
    raise FileFormatError(
        f"{path}: holds {how}{more}. Name the one that is meant, as in {path.name}#NAME", path
    )


def _contents(variables: dict[str, _Variable]) -> str:
    known = ", ".join(map(str, list(variables.values())[:20]))
    return f"the file holds {known or 'nothing'}"


# The elements of a file: a type, a number of bytes, and these. Those of a matrix hold others.


def _elements(data: memoryview, order: str, head: bool = False) -> Iterator[tuple[int, memoryview]]:
    """Yield type and bytes of each element; `head`: of the last one there may be a part."""
    at = 0
    while at + 8 <= len(data):
        kind, size = (int(word) for word in np.frombuffer(data[at : at + 8], f"{order}u4"))
        if kind >> 16:  # a small one, in the place of its size
            yield kind & 0xFFFF, data[at + 4 : at + 4 + min(kind >> 16, 4)]
            at += 8
            continue
        if not size and kind not in (_MATRIX, *_NUMBERS):
            raise ValueError(f"there is no type of data {kind}")
        begin, at = at + 8, at + 8 + size
        if at > len(data) and not head:
            raise ValueError(f"truncated: {size} bytes promised, {len(data) - begin} there")
        yield kind, data[begin:at]
        at += 0 if kind == _COMPRESSED else -size % 8


def _numbers(parts: Iterator[tuple[int, memoryview]], order: str) -> NDArray[Any]:
    """Return the numbers of the next element."""
    kind, data = next(parts, (0, memoryview(b"")))
    if kind not in _NUMBERS:
        raise ValueError(f"numbers expected, found data of type {kind}")
    dtype = np.dtype(f"{order}{_NUMBERS[kind]}")
    return np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)


def _variables(data: memoryview, order: str) -> Iterator[_Variable]:
    """Yield the variables of a file; of those that are compressed only their heads are read."""
    for count, (kind, element) in enumerate(_elements(data, order)):
        if count == _MOST_VARIABLES:
            raise ValueError(f"there are more than {_MOST_VARIABLES} variables")
        if kind == _COMPRESSED:
            head = zlib.decompressobj().decompress(element[: 2 * _HEAD], _HEAD)
            _, inner = next(_elements(memoryview(head), order, head=True), (0, memoryview(b"")))
            yield replace(_variable(inner, order, head=True), packed=element)
        elif kind == _MATRIX:
            yield _variable(element, order)


def _whole(variable: _Variable, order: str) -> _Variable:
    """Return a variable of a file, decompressed if need be."""
    if variable.packed is None:
        return variable
    packer = zlib.decompressobj()
    data = packer.decompress(variable.packed)  # deflate itself limits what it can become
    if not packer.eof:
        raise ValueError("truncated: a compressed variable does not end")
    whole = _variable(next(_elements(memoryview(data), order))[1], order)
    # Numbers of one byte become numbers of eight, which would go beyond that limit.
    if whole.kind in _DENSE and 8 * math.prod(whole.shape) > 1032 * len(variable.packed):
        raise ValueError(f"{whole.shape} numbers are more than a file of its size should hold")
    return whole


def _variable(data: memoryview, order: str, head: bool = False, name: str = "") -> _Variable:
    """Return what an element of type matrix is; `name`: of one that is a field."""
    parts = _elements(data, order, head)
    flags = _numbers(parts, order)
    if flags.size != 2:
        raise ValueError("the flags of a variable are missing")
    shape = tuple(int(size) for size in _numbers(parts, order))
    own = _numbers(parts, order).tobytes().decode("utf-8", "replace")
    kind = int(flags[0]) & 0xFF
    bits = int(flags[0])
    return _Variable(name or own, kind, bool(bits & _COMPLEX), bool(bits & _LOGICAL), shape, parts)


def _fields(variable: _Variable, order: str) -> dict[str, _Variable]:
    """Return the fields of a structure; none where it is an array of structures, or none at all."""
    if variable.kind != _STRUCT or math.prod(variable.shape) != 1:
        return {}
    length = _numbers(variable.parts, order)
    names = _numbers(variable.parts, order).tobytes()
    if length.size != 1 or not 0 < length[0] <= len(names):
        raise ValueError("the names of the fields are missing")
    step, fields = int(length[0]), {}
    for at, (_, element) in zip(range(0, len(names), step), variable.parts, strict=False):
        name = names[at : at + step].partition(b"\0")[0].decode("latin-1")
        if len(element):  # an empty one has nothing in it, not even flags
            fields[name] = _variable(element, order, name=name)
    return fields


def _sparse(variable: _Variable, order: str) -> sp.csc_array:
    rows, starts = (_numbers(variable.parts, order) for _ in range(2))
    if starts.size != variable.shape[1] + 1 or rows.dtype.kind == "f" or starts.dtype.kind == "f":
        raise ValueError("a sparse matrix has the wrong number of column pointers")
    entries = int(starts[-1])
    parts = variable.parts
    if variable.logical:
        # MATLAB writes bytes here, and calls them doubles.
        kind, data = next(parts, (0, memoryview(b"")))
        as_said = np.dtype(_NUMBERS.get(kind, "u1")).itemsize * entries
        parts = iter([(kind if len(data) >= as_said else 2, data)])
    values = _numbers(parts, order)
    if not 0 <= entries <= min(rows.size, values.size):
        raise ValueError(f"a sparse matrix promises {entries} entries, and has fewer")
    arrays = (values[:entries].astype(np.float64), rows[:entries], starts)
    # What the indices are is looked at where matrices of all kinds are converted.
    native = tuple(array.astype(array.dtype.newbyteorder("=")) for array in arrays)
    return sp.csc_array(native, shape=variable.shape)


def _dense(variable: _Variable, order: str) -> NDArray[Any]:
    values = _numbers(variable.parts, order)
    if values.size != math.prod(variable.shape):
        raise ValueError(f"{math.prod(variable.shape)} numbers promised, {values.size} there")
    return values.reshape(variable.shape, order="F").astype(np.float64)
