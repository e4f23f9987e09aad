"""Compiles kernels with the system's C++ compiler, and keeps them on disk.

A shared object is found again by a digest of all that it depends on: its text, the headers, the
options, the compiler and the processor. It appears under its name when it is complete, so that
several processes may make it at the same time.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cpufree.env import BuildEnv
from cpufree.errors import EngineError, UnsupportedError
from cpufree.host import read_text, run_tool

# No -ffast-math: results are NumPy's, to the bit where the operations are IEEE's. Errors of the
# library need no errno, and traps are not looked at; both let loops be vectorised.
FLAGS = (
    "-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno",
    "-fno-trapping-math", "-fwrapv", "-fPIC", "-shared", "-w",
)  # fmt: skip
_LIMIT = 600.0  # seconds that a compiler may take
_ENTRY = """
#include "cpufree/engines/cpu_threads/port.cpp"

extern "C" void cpufree_program(cpufree::cpu_threads::Port& port,
                                const cpufree::programs::Args& args, std::byte* heap) {
  run(port, args, heap);
}
"""


@dataclass(frozen=True)
class Built:
    """A kernel that is loaded."""

    address: int
    path: Path
    was_there: bool
    """It was found in the cache."""


def build(text: str) -> Built:
    """Return the kernel of a C++ text.

    Raises
    ------
    UnsupportedError
        There is no compiler, or the headers are not there.
    EngineError
        The compiler fails.
    """
    env = BuildEnv.read()
    headers = header_folder()
    whole = text + _ENTRY
    parts = (whole, *FLAGS, *env.compiler, _version(env.compiler), _processor(), _digest(headers))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    path = env.cache / "programs" / f"{key}.so"
    was_there = path.exists()
    if not was_there:
        _compile(env.compiler, whole, headers, path)
    return Built(_address(str(path)), path, was_there)


@cache
def _address(path: str) -> int:
    """Return where the kernel of a shared object is; it stays loaded."""
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise EngineError(f"{path} does not load ({error}): remove it") from None
    return ctypes.cast(library.cpufree_program, ctypes.c_void_p).value or 0


@cache
def header_folder() -> Path:
    """Return where the headers of kernels are: in the package, or in the source tree around it."""
    package = Path(__file__).resolve().parents[1]
    found = _installed_headers()
    for folder in (*found, package / "include", *package.parents):
        if (folder / "cpufree/programs/runtime.hpp").exists():
            return folder
    raise UnsupportedError("the headers of kernels are not installed: install cpufree anew")


def _installed_headers() -> list[Path]:
    """Return the folder beside the extension, which an editable install has elsewhere."""
    from cpufree.extension import load_core

    core = getattr(load_core(), "__file__", None)
    return [Path(core).resolve().parent / "include"] if core else []


@cache
def _digest(folder: Path) -> str:
    """Return a digest of the headers that kernels may include."""
    found = hashlib.sha256()
    for room in ("base", "device", "programs", "engines/cpu_threads"):
        for file in sorted((folder / "cpufree" / room).glob("*.hpp")):
            found.update(file.read_bytes())
    found.update((folder / "cpufree/engines/cpu_threads/port.cpp").read_bytes())
    return found.hexdigest()


@cache
def _version(compiler: tuple[str, ...]) -> str:
    text = run_tool([compiler[0], *compiler[1:], "--version"])
    if text is None:
        raise UnsupportedError(
            f"there is no C++ compiler '{compiler[0]}': install one (GCC 11 or Clang 14, or "
            "newer), or name it in CPUFREE_CXX; program.interpret(...) runs without"
        )
    return text


@cache
def _processor() -> str:
    """Return what the processor can do, which -march=native follows."""
    for line in read_text("/proc/cpuinfo").splitlines():
        if line.startswith(("flags", "Features")):
            return line
    return os.uname().machine


def _compile(compiler: tuple[str, ...], text: str, headers: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=path.parent) as folder:
        source, made = Path(folder, "program.cpp"), Path(folder, "program.so")
        source.write_text(text)
        command = [*compiler, *FLAGS, f"-I{headers}", str(source), "-o", str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(f"the C++ compiler does not run: {error}") from None
        if done.returncode:
            kept = path.with_suffix(".cpp")
            kept.write_text(text)
            raise EngineError(
                f"the C++ compiler fails on {kept}; please report this:\n{done.stderr[:4000]}"
            )
        os.replace(made, path)
