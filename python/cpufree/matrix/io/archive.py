"""Matrix Market files in archives (.tar.gz, .tgz), as the SuiteSparse collection has them.

An archive of the matrix NAME holds NAME/NAME.mtx and, for some, a right-hand side NAME/NAME_b.mtx.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from cpufree.errors import FileFormatError
from cpufree.matrix.io.matrix_market import EXPANSION, parse_matrix_market

_MOST_MEMBERS = 1000
# Members are read some KB at a time; a header that wants more at once is not one of a matrix.
_MOST_AT_ONCE = 1 << 20


def read_archive(path: Path, name: str = "", vector: bool = False) -> Any:
    """Return the matrix in an archive, as `read_matrix_market` does, or its right-hand side.

    Args:
        path: the archive.
        name: of the file in it; "": NAME/NAME.mtx, of vectors NAME/NAME_b.mtx, or the only .mtx.
        vector: the right-hand side is wanted.

    Raises:
        FileFormatError: damaged, or it holds no such file, or several.
        MatrixError: as of `read_matrix_market`.
    """
    most = path.stat().st_size * EXPANSION
    with gzip.open(path, "rb") as stream, _open_tar(stream) as archive:
        members = {member.name: member for member in _matrices(path, archive)}
        chosen = _choose(path, list(members), name, vector)
        text = archive.extractfile(members[chosen])
        assert text is not None  # of a regular file
        called = f"{path}#{chosen}"
        return parse_matrix_market(called, text, min(most, members[chosen].size), square=not vector)


def _open_tar(stream: Any) -> tarfile.TarFile:
    return tarfile.TarFile(fileobj=_Limited(stream), mode="r")


def _matrices(path: Path, archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the Matrix Market files of an archive."""
    for number, member in enumerate(archive):
        if number == _MOST_MEMBERS:
            raise FileFormatError(
                f"{path}: holds more than {_MOST_MEMBERS} files: unpack it, and name the .mtx", path
            )
        # Of a sparse member, a few bytes stand for any number of zeros.
        if member.isreg() and not member.issparse() and member.name.lower().endswith(".mtx"):
            yield member


def _choose(path: Path, names: list[str], name: str, vector: bool) -> str:
    there = f"it holds {', '.join(names[:20]) or 'no .mtx file'}"
    if name:
        if name not in names:
            raise FileFormatError(f"{path}: there is no {name!r}; {there}", path)
        return name
    end = "_b" if vector else ""
    proper = [
        one for one in names if PurePosixPath(one).stem == PurePosixPath(one).parent.name + end
    ]
    if len(proper) == 1:
        return proper[0]
    if len(names) == 1 and not vector:
        return names[0]
    wanted = "NAME/NAME_b.mtx, a right-hand side" if vector else "NAME/NAME.mtx, a matrix"
    raise FileFormatError(
        f"{path}: no single {wanted}; {there}. Name the one that is meant, as in {path.name}#FILE",
        path,
    )


class _Limited(io.RawIOBase):
    """A stream that refuses to give much at once, which a damaged header may ask for."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MOST_AT_ONCE:
            raise tarfile.ReadError(f"a header wants {size} bytes")
        found: bytes = self._stream.read(size)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())
