"""Matrices in MATLAB's files of versions 5 to 7 (.mat), read by scipy.io.loadmat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cpufree.errors import FileFormatError

_COLLECTION = "Problem.A"
"""What the SuiteSparse collection calls its matrices: a field of a structure."""


def read_mat(path: Path, name: str = "") -> Any:
    """Return a matrix of a file.

    Args:
        path: the file.
        name: of the variable, or VARIABLE.FIELD in a structure; "": the only sparse matrix, or
            that of the SuiteSparse collection, Problem.A.

    Raises:
        FileFormatError: of version 7.3 or 4, or there is no such matrix.
    """
    import scipy.io  # a heavy import

    _check_version(path)
    kinds = {variable: kind for variable, _, kind in scipy.io.whosmat(path)}
    chosen = name or _only_matrix(path, kinds)
    variable, _, field = chosen.partition(".")
    if variable not in kinds:
        raise FileFormatError(f"{path}: there is no {variable!r}; {_contents(kinds)}", path)
    found = scipy.io.loadmat(path, variable_names=[variable])[variable]
    if field:
        if found.dtype.names is None or field not in found.dtype.names or found.size != 1:
            raise FileFormatError(f"{path}: {variable!r} has no field {field!r}", path)
        found = found[field].reshape(-1)[0]
    if sp.issparse(found) or (isinstance(found, np.ndarray) and found.dtype.kind in "fiubc"):
        return found
    raise FileFormatError(f"{path}: {chosen!r} is not a matrix of numbers; {_contents(kinds)}", path)


def _check_version(path: Path) -> None:
    with open(path, "rb") as file:
        head = file.read(128)
    if head.startswith((b"MATLAB 7.3", b"\x89HDF")):
        raise FileFormatError(
            f"{path}: a MATLAB file of version 7.3, which is not read here: in MATLAB, save it by "
            "save('A.mat', 'A', '-v7')",
            path,
        )
    if head[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
        raise FileFormatError(
            f"{path}: not a MATLAB file of versions 5 to 7: in MATLAB, save it by "
            "save('A.mat', 'A', '-v7')",
            path,
        )


def _only_matrix(path: Path, kinds: dict[str, str]) -> str:
    sparse = [name for name, kind in kinds.items() if kind == "sparse"]
    if len(sparse) == 1:
        return sparse[0]
    if not sparse and kinds.get("Problem") == "struct":
        return _COLLECTION
    how = f"several sparse matrices: {', '.join(sparse)}" if sparse else "no sparse matrix"
    more = "" if sparse else f"; {_contents(kinds)}"
    raise FileFormatError(
        f"{path}: holds {how}{more}. Name the one that is meant, as in {path.name}#NAME", path
    )


def _contents(kinds: dict[str, str]) -> str:
    known = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
    return f"the file holds {known or 'nothing'}"
