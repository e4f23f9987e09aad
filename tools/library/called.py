"""libcpufree called from Python through ctypes, for tests and measurements."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HEADER = (Path(__file__).parents[2] / "cpufree/cpufree.h").read_text(encoding="utf-8")
NUMBERS = {name: int(number) for name, number in re.findall(r"(CPUFREE_\w+) = (-?\d+)", HEADER)}
TYPES = {
    "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "double": ctypes.c_double,
}


def struct(name: str) -> Any:
    """Return a struct of the header for ctypes."""
    body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", HEADER, re.DOTALL)
    assert body is not None
    fields = []
    for line in re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL).split(";"):
        if not (words := line.split()):
            continue
        pointer = "*" in line or words[0] == "cpufree_progress"
        kind = ctypes.c_void_p if pointer else TYPES[words[0]]
        fields += [(re.findall(r"\w+", one)[-1], kind) for one in line.split(",")]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


class Handle:
    """A solver of libcpufree."""

    def __init__(self, library: Path, A: Any, **setup: Any) -> None:
        self.c = ctypes.CDLL(str(library))
        self.c.cpufree_error.restype = ctypes.c_char_p
        given = self.filled("cpufree_setup", **setup)
        self.handle = ctypes.c_void_p()
        matrix = self.matrix(A)
        status = self.c.cpufree_create(
            ctypes.byref(matrix), ctypes.byref(given), ctypes.byref(self.handle)
        )
        assert status == 0, self.c.cpufree_error()

    def filled(self, name: str, **members: Any) -> Any:
        """Return a struct with its defaults but for some members; arrays as their addresses."""
        made = struct(name)()
        getattr(self.c, f"{name}_init")(ctypes.byref(made), ctypes.c_size_t(ctypes.sizeof(made)))
        for key, value in members.items():
            setattr(made, key, value.ctypes.data if isinstance(value, np.ndarray) else value)
        made.kept = members  # arrays live as long
        return made

    def matrix(self, A: Any) -> Any:
        """Return a matrix of SciPy as the interface takes it."""
        single = A.data.dtype == np.float32
        arrays = {"row_ptr": A.indptr.astype(np.int64), "col": A.indices, "val": A.data}
        return self.filled(
            "cpufree_matrix", rows=A.shape[0], nonzeros=A.nnz, type=int(single), **arrays
        )

    def update(self, A: Any) -> None:
        """Take new values."""
        matrix = self.matrix(A)
        assert self.c.cpufree_update(self.handle, ctypes.byref(matrix), 0) == 0

    def prepared(self, b: Any, x: Any, **options: Any) -> Callable[[], Any]:
        """Return a function that solves for b, writes x, and returns the result."""
        given, result = self.filled("cpufree_options", **options), self.filled("cpufree_result")
        vectors = [ctypes.c_void_p(v) for v in (b.ctypes.data, None, x.ctypes.data)]
        arguments = self.handle, *vectors, ctypes.byref(given), ctypes.byref(result)
        function = self.c.cpufree_solve

        def run() -> Any:
            status = function(*arguments)
            assert status == 0, self.c.cpufree_error()
            return result

        return run

    def solve(self, b: Any, **options: Any) -> tuple[Any, Any]:
        """Return x and the result."""
        x = np.empty_like(b)
        return x, self.prepared(b, x, **options)()

    def close(self) -> None:
        """Free it."""
        self.c.cpufree_destroy(self.handle)
