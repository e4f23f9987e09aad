"""The compiled core, loaded when first needed so that importing cpufree stays quick."""

from __future__ import annotations

import fcntl
import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import warnings
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from types import ModuleType

from cpufree import kernel_cache
from cpufree.errors import CpufreeWarning, UnsupportedError
from cpufree.host import find_library
from cpufree.options import PROCESSES_ON_GPUS
from cpufree.patience import says
from cpufree.text import counted

COMPILER = "libnvrtc.so.13"
"""NVIDIA's compiler of kernels at run time, in the wheel nvidia-cuda-nvrtc."""


SHIPPED = Path(__file__).with_name("kernels")
"""Kernels that come with the package, if it was built with some (tools/ship_kernels.py)."""


BUILD_FOLDER = Path(__file__).resolve().parents[2] / "build/python"
"""Where `make install` builds, of a package that is used in its source tree."""

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
    core: ModuleType = _core
    _warn_of_processor(core)
    return core


def load_part(
    name: str, what: str, otherwise: str = "install cpufree again: pip install . in its source tree"
) -> ModuleType:
    """Return another extension of the package, such as "_triggered".

    An installation that `make install` has made builds it when it is first wanted.

    Parameters
    ----------
    name, what
        The module, and what it has, in words.
    otherwise
        What the user can do where this build has no such part.

    Raises
    ------
    UnsupportedError
        This build has no such part, or it cannot be built, or it does not load.
    """
    try:
        file = None if _is_there(name) else _built_here(name, what)
        return _load_file(name, file) if file else importlib.import_module(f"cpufree.{name}")
    except ImportError as error:
        raise UnsupportedError(
            f"the part of cpufree with {what} does not load ({error}): {otherwise}"
        ) from error


def has_part(name: str) -> bool:
    """Return whether an extension is there, or can be built: `load_part` need not succeed."""
    return _is_there(name) or _can_be_built(name)


def make_part(name: str, what: str) -> None:
    """Build an extension that is not there yet, for processes that are about to load it.

    Raises
    ------
    UnsupportedError
        It cannot be built.
    """
    if not _is_there(name):
        _built_here(name, what)


def _is_there(name: str) -> bool:
    """Return whether an extension is loaded, or is in the package."""
    full = f"cpufree.{name}"
    return sys.modules.get(full) is not None or importlib.util.find_spec(full) is not None


def _load_file(name: str, file: Path) -> ModuleType:
    """Load an extension that is not in the package's folder."""
    loader = importlib.machinery.ExtensionFileLoader(f"cpufree.{name}", str(file))
    spec = importlib.util.spec_from_loader(loader.name, loader, origin=str(file))
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    loader.exec_module(module)
    sys.modules[loader.name] = module
    return module


def _can_be_built(name: str) -> bool:
    """Return whether the build folder of the source tree, if there is one, makes an extension."""
    rules = BUILD_FOLDER / "build.ninja"
    return rules.exists() and f"\nbuild {name}: phony" in rules.read_text(encoding="utf-8")


def _cmake() -> str | None:
    """Return the CMake of the build folder: another version would build all of it again."""
    cache = (BUILD_FOLDER / "CMakeCache.txt").read_text(encoding="utf-8")
    _, _, rest = cache.partition("\nCMAKE_COMMAND:INTERNAL=")
    found = rest.partition("\n")[0]
    beside = str(Path(sys.executable).parent)  # where the environment of the build has its tools
    return found if Path(found).is_file() else shutil.which("cmake", path=beside)


def _built_here(name: str, what: str) -> Path | None:
    """Build an extension in the build folder of the source tree; None where that makes none."""
    if not _can_be_built(name):
        return None
    try:
        if (cmake := _cmake()) is None:
            raise UnsupportedError(f"the part for {what} cannot be built: CMake was not found")
        with (BUILD_FOLDER / ".part").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes one builds it
            if not any(BUILD_FOLDER.glob(f"{name}.*so")):
                print(f"cpufree: building the part for {what}, once", file=sys.stderr, flush=True)
            command = [cmake, "--build", str(BUILD_FOLDER), "--target", name]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"the part for {what} cannot be built: {error}") from None
    if done.returncode:
        raise UnsupportedError(f"the part for {what} cannot be built:\n{done.stdout[-4000:]}")
    return next(iter(sorted(BUILD_FOLDER.glob(f"{name}.*so"))), None)


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


def set_compiler(core: ModuleType) -> None:
    """Tell the extension where kernels come from that are not built in."""
    shipped = str(SHIPPED) if SHIPPED.is_dir() else ""
    compiler = (
        "" if core.gpu_vendor() == "AMD" else find_compiler()
    )  # ROCm's own lies in its folder
    core.set_kernel_compiler(compiler, kernel_cache.folders(), shipped)


def says_what_compiles() -> AbstractContextManager[None]:
    """Say that kernels are compiled for GPUs, where a set-up or a solve waits a second for that."""

    def words() -> str:
        count = load_core().kernels_compiling()
        kernels = counted(count, "kernel")
        return f"compiling {kernels} for GPUs; they are kept for later solves" if count else ""

    return says(words)


class CompileTime:
    """How long this process has waited for compilers of kernels since this was made."""

    def __init__(self) -> None:
        self._begin = load_core().kernel_seconds()

    def seconds(self) -> float:
        """Return the seconds until now."""
        return float(load_core().kernel_seconds() - self._begin)


def find_compiler() -> str:
    """Return the path of the compiler in pip's package, "" where that is not installed."""
    return find_library("nvidia.cu13", COMPILER)


def load_gpu_core() -> ModuleType:
    """Return the extension for work on GPUs; UnsupportedError where it does not load.

    It knows where kernels come from: those that are not built in are compiled when first used.
    """
    core = load_core()
    if core.kernels_compiled():
        set_compiler(core)
    return core


def load_for(engine: str) -> ModuleType:
    """Return the extension for work on an engine; UnsupportedError where it does not load."""
    return load_gpu_core() if engine in ("cuda_p2p", *PROCESSES_ON_GPUS) else load_core()


def load_for_programs() -> ModuleType:
    """Return the extension for programs on GPUs, whose kernels are compiled in any build."""
    core = load_core()
    set_compiler(core)
    return core
