"""Compiles kernels for the CPU with the system's C++ compiler: programs, and those kernels of
solvers that are not built in.

What is compiled is kept (kernel_cache), by a digest of all that it depends on: its text, the
headers, the flags, the compiler and the processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cpufree import kernel_cache
from cpufree.env import BuildEnv
from cpufree.errors import EngineError, UnsupportedError
from cpufree.extension import load_core
from cpufree.host import read_text, run_tool
from cpufree.log import logger
from cpufree.patience import says

SHARED = ("-std=c++20", "-fPIC", "-shared", "-w")
_PORT = '\n#include "cpufree/engines/cpu_threads/port.cpp"\n'
_LIMIT = 600.0  # seconds that a compiler may take
# What the headers of kernels are in (CMakeLists.txt installs these).
ROOMS = (
    *("base", "device", "problem", "formats", "solvers", "multigrid", "stencils", "programs"),
    *("trace", "engines/cpu_threads", "distributed", "launch", "plugins"),
)


@dataclass(frozen=True)
class Built:
    """A kernel that is loaded."""

    address: int
    path: Path
    was_there: bool
    """It was found in the cache."""


def build(what: str, text: str, flags: tuple[str, ...], entry: str, wrapper: str = "") -> Built:
    """Return a function of a C++ text, which is compiled unless it has been.

    Parameters
    ----------
    what
        What is compiled, for the log and for errors.
    text
        The text; the port of the CPU engine is compiled with it.
    flags
        Of the compiler, besides those of every shared object.
    entry
        The name of the function, of C linkage.
    wrapper
        What stands behind the text and the port: a function of that name, where the text has none.

    Raises
    ------
    UnsupportedError
        There is no compiler, or the headers are not there.
    EngineError
        The compiler fails, or what it has made does not load.
    """
    compiler = BuildEnv.read().compiler
    headers = header_folder()
    whole, every = text + _PORT + wrapper, (*SHARED, *flags)
    parts = (whole, *every, *compiler, _version(compiler), _processor(), _digest(headers))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    kept = load_core().CodeCache(kernel_cache.folders())
    claim = None
    if not (path := kept.find_file(key)):
        claim = kept.claim(key)
        path = kept.find_file(key)  # another process may have made it meanwhile
    found = path and _address(path, entry)
    if not found:
        code = _compile(what, [*compiler, *every, f"-I{headers}"], whole)
        path = kept.keep(key, code) or ""
        built = Built(_address(path, entry) or _load_once(what, code, entry), Path(path), False)
    else:
        built = Built(found, Path(path), True)
    del claim
    return built


def solver_kernel(name: str, text: str, flags: str, built_in_all: bool) -> int:
    """Return where a kernel of the solvers is. Called by the extension (find_kernel.hpp)."""
    try:
        built = build(f"the kernel for {name}", text, tuple(flags.split()), "cpufree_kernel")
    except UnsupportedError as error:
        build_it_in = "; or build cpufree with all kernels: pip install . -C "
        build_it_in += "cmake.define.CPUFREE_KERNELS=ALL"
        raise UnsupportedError(
            f"the kernel for {name} is not built in, and cannot be compiled: {error}"
            f"{build_it_in if built_in_all else ''}"
        ) from None
    return ctypes.CFUNCTYPE(ctypes.c_void_p)(built.address)() or 0


def _address(path: str, entry: str) -> int:
    """Return where a function of a shared object is, which stays loaded; 0 if it does not load."""
    if not path:
        return 0
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        logger.warning("%s does not load (%s)", path, error)
        return 0
    return ctypes.cast(getattr(library, entry), ctypes.c_void_p).value or 0


def _load_once(what: str, code: bytes, entry: str) -> int:
    """Load code that cannot be kept, or not be loaded from where it is kept."""
    with tempfile.TemporaryDirectory(prefix="cpufree-") as folder:
        file = Path(folder, "kernel.so")
        file.write_bytes(code)
        try:
            library = ctypes.CDLL(str(file))
        except OSError as error:
            raise EngineError(
                f"{what} has been compiled and does not load ({error}): name a folder that code "
                "may be loaded from in CPUFREE_KERNEL_CACHE"
            ) from None
        return ctypes.cast(getattr(library, entry), ctypes.c_void_p).value or 0


@cache
def header_folder() -> Path:
    """Return where the headers of kernels are: in the package, or in the source tree around it."""
    package = Path(__file__).resolve().parent
    found = _installed_headers()
    for folder in (*package.parents, *found, package / "include"):
        if (folder / "cpufree/programs/runtime.hpp").exists():
            return folder
    raise UnsupportedError("the headers of kernels are not installed: install cpufree again")


def _installed_headers() -> list[Path]:
    """Return the folder beside the extension, which an editable install has elsewhere."""
    core = getattr(load_core(), "__file__", None)
    return [Path(core).resolve().parent / "include"] if core else []


@cache
def _digest(folder: Path) -> str:
    """Return a digest of the headers that kernels may include."""
    found = hashlib.sha256()
    for room in ROOMS:
        for file in sorted((folder / "cpufree" / room).rglob("*.hpp")):
            found.update(file.read_bytes())
    found.update((folder / "cpufree/engines/cpu_threads/port.cpp").read_bytes())
    return found.hexdigest()


@cache
def _version(compiler: tuple[str, ...]) -> str:
    text = run_tool([compiler[0], *compiler[1:], "--version"])
    if text is None:
        raise UnsupportedError(
            f"there is no C++ compiler '{compiler[0]}': install one (GCC 11 or Clang 14, or "
            "newer), or name it in CPUFREE_CXX"
        )
    return text


@cache
def _processor() -> str:
    """Return what the processor can do, which -march=native follows."""
    for line in read_text("/proc/cpuinfo").splitlines():
        if line.startswith(("flags", "Features")):
            return line
    return os.uname().machine


def _compile(what: str, command: list[str], text: str) -> bytes:
    """Return the shared object of a text."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cpufree-") as folder:
        source, made = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        source.write_text(text)
        try:
            with says(f"compiling {what}; it is kept, so that later calls do not wait"):
                done = subprocess.run(
                    [*command, str(source), "-o", str(made)],
                    capture_output=True,
                    text=True,
                    timeout=_LIMIT,
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(f"the C++ compiler does not run: {error}") from None
        if done.returncode:
            raise EngineError(
                f"the C++ compiler fails on {what}, kept as {_kept_text(text)}; please report "
                f"this:\n{done.stderr[:4000]}"
            )
        logger.info("%s was compiled in %.1f s", what, time.monotonic() - begin)
        return made.read_bytes()


def _kept_text(text: str) -> str:
    """Keep a text that does not compile, for a report; return the name of its file."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="cpufree-kernel-", suffix=".cpp", delete=False
    ) as file:
        file.write(text)
    return file.name
