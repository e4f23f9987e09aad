"""The compiled core, loaded when first needed so that importing cpufree stays quick."""

from __future__ import annotations

import fcntl
import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

from cpufree import kernel_cache
from cpufree.errors import CpufreeWarning, UnsupportedError
from cpufree.host import find_library

COMPILER = "libnvrtc.so.13"
"""NVIDIA's compiler of kernels at run time, in the wheel nvidia-cuda-nvrtc."""


SHIPPED = Path(__file__).with_name("kernels")
"""Kernels that come with the package, if it was built with some (tools/ship_kernels.py)."""


_LIMIT = 600.0  # seconds that building a part of the package may take


def load_core() -> ModuleType:
    """Return the extension; UnsupportedError where it does not load."""
    try:
        from cpufree import _core
    except ImportError as error:
        raise UnsupportedError(
            f"the compiled part of cpufree does not load ({error}). Install the package with its "
            "compiler step: pip install . in the source tree"
        ) from error
    _warn_of_processor(_core)
    return _core


def load_part(
    name: str, what: str, otherwise: str = "install cpufree again: pip install . in its source tree"
) -> ModuleType:
    """Return another extension of the package, "_triggered"; UnsupportedError without it.

    An installation that `make install` has made builds it when it is first wanted.

    Parameters
    ----------
    name, what
        The module, and what it has, in words.
    otherwise
        What the user can do where this build has no such part.
    """
    try:
        return importlib.import_module(f"cpufree.{name}")
    except ImportError as error:
        file = _built_here(name, what)
        if file is None:
            raise UnsupportedError(
                f"the part of cpufree with {what} does not load ({error}): {otherwise}"
            ) from error
    loader = importlib.machinery.ExtensionFileLoader(f"cpufree.{name}", str(file))
    spec = importlib.util.spec_from_loader(loader.name, loader, origin=str(file))
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def has_part(name: str) -> bool:
    """Return whether `load_part` finds an extension, or builds it."""
    return _is_there(name) or _build_folder(name) is not None


def make_part(name: str, what: str) -> None:
    """Build an extension that is not there yet, for processes that are about to load it."""
    if not _is_there(name):
        _built_here(name, what)


def _is_there(name: str) -> bool:
    return importlib.util.find_spec(f"cpufree.{name}") is not None


def _build_folder(name: str) -> Path | None:
    """Return the build folder of the source tree if it can make an extension."""
    folder = Path(__file__).resolve().parents[2] / "build/python"
    rules = folder / "build.ninja"
    known = rules.exists() and f"\nbuild {name}: phony" in rules.read_text(encoding="utf-8")
    return folder if known else None


def _cmake_of(folder: Path) -> str | None:
    """Return the CMake of a build folder: another version would build all of it again."""
    cache = (folder / "CMakeCache.txt").read_text(encoding="utf-8")
    _, _, rest = cache.partition("\nCMAKE_COMMAND:INTERNAL=")
    found = rest.partition("\n")[0]
    beside = str(Path(sys.executable).parent)  # where the environment of the build has its tools
    return found if Path(found).is_file() else shutil.which("cmake", path=beside)


def _built_here(name: str, what: str) -> Path | None:
    """Build an extension in the build folder of the source tree; None where there is none."""
    folder = _build_folder(name)
    cmake = folder and _cmake_of(folder)
    if folder is None or cmake is None:
        return None
    with (folder / ".part").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes one builds it
        if not any(folder.glob(f"{name}.*so")):
            print(f"cpufree: building the part for {what}, once", file=sys.stderr, flush=True)
        command = [cmake, "--build", str(folder), "--target", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
        except subprocess.TimeoutExpired as error:
            raise UnsupportedError(f"the part for {what} cannot be built: {error}") from None
    if done.returncode:
        raise UnsupportedError(f"the part for {what} cannot be built:\n{done.stdout[-4000:]}")
    return next(iter(sorted(folder.glob(f"{name}.*so"))), None)


@cache
def _warn_of_processor(core: ModuleType) -> None:
    """Say once that the package was built for a processor that can do more than this one.

    Asked once: reading /proc/cpuinfo takes longer than a small set-up.
    """
    if lacks := core.cpu_lacks():
        warnings.warn(
            f"cpufree was built on a processor with {lacks}, which this one lacks: its CPU kernels "
            "are compiled here when they are first used. To have them built in, install it on this "
            "machine again (pip install .), or for all: "
            "pip install . -C cmake.define.CPUFREE_NATIVE=OFF",
            CpufreeWarning,
            stacklevel=3,
        )


def with_kernels(core: ModuleType) -> ModuleType:
    """Return the extension once it knows where kernels of GPUs come from.

    Where they are not built in, they are compiled when they are first used.
    """
    if core.kernels_compiled():
        set_compiler(core)
    return core


def set_compiler(core: ModuleType) -> None:
    """Tell the extension where kernels come from that are not built in."""
    shipped = str(SHIPPED) if SHIPPED.is_dir() else ""
    core.set_kernel_compiler(find_compiler(), kernel_cache.folders(), shipped)


def find_compiler() -> str:
    """Return the path of the compiler in pip's package, "" where that is not installed."""
    return find_library("nvidia.cu13", COMPILER)


def load_gpu_core() -> ModuleType:
    """Return the extension for work on GPUs; UnsupportedError where it does not load."""
    return with_kernels(load_core())
