"""The STREAM-like triad of triad.cpp: compiled here, run between other measurements."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("triad.cpp")
FLAGS = ("-std=c++20", "-O3", "-march=native", "-shared", "-fPIC", "-pthread")
BYTES_PER_ELEMENT = 24  # two loads and a store; the write-allocate of the store is not counted
SMALLEST_ARRAY = 160_000_000


def array_elements(last_level_bytes: int) -> int:
    """Return the elements of each array: four times the last-level cache, at least 160 MB."""
    return max(4 * last_level_bytes, SMALLEST_ARRAY) // 8


class TriadError(RuntimeError):
    """The triad cannot be compiled or run."""


class Triad:
    """Three arrays of `elements` doubles and the threads that run the triad over them.

    A context manager: the memory is held until it ends. Raises TriadError where there is no C++20
    compiler or not enough memory.
    """

    def __init__(self, elements: int, threads: int, compiler: str = "c++") -> None:
        self.elements, self.threads = elements, threads
        self._library = load_library(compiler)
        self._handle = self._library.triad_create(elements, threads)
        if not self._handle:
            raise TriadError(f"no memory for three arrays of {elements * 8 / 1e6:.0f} MB each")

    @property
    def bytes_per_pass(self) -> int:
        """Bytes counted for one pass over the arrays."""
        return BYTES_PER_ELEMENT * self.elements

    def run(self, passes: int = 5) -> float:
        """Return the seconds of one pass, the mean of `passes`."""
        return float(self._library.triad_run(self._handle, passes))

    def wrong(self) -> int:
        """Return how many elements of the result are wrong."""
        return int(self._library.triad_wrong(self._handle))

    def __enter__(self) -> Triad:
        return self

    def __exit__(self, *error: object) -> None:
        self._library.triad_destroy(self._handle)
        self._handle = None


def load_library(compiler: str) -> ctypes.CDLL:
    """Compile triad.cpp for this processor and load it."""
    if shutil.which(compiler) is None:
        raise TriadError(f"the compiler '{compiler}' was not found; install g++ or clang++")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "triad.so"
        command = [compiler, *FLAGS, str(SOURCE), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise TriadError(f"{SOURCE.name} does not compile with {compiler}:\n{done.stderr}")
        library = ctypes.CDLL(str(target))
    library.triad_create.argtypes = [ctypes.c_size_t, ctypes.c_int]
    library.triad_create.restype = ctypes.c_void_p
    library.triad_run.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.triad_run.restype = ctypes.c_double
    library.triad_wrong.argtypes = [ctypes.c_void_p]
    library.triad_wrong.restype = ctypes.c_size_t
    library.triad_destroy.argtypes = [ctypes.c_void_p]
    library.triad_destroy.restype = None
    return library
