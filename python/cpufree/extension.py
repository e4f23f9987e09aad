"""The compiled core, loaded when first needed so that importing cpufree stays quick."""

from __future__ import annotations

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


def load_core() -> ModuleType:
    """Return the extension; UnsupportedError where it does not load."""
    try:
        from cpufree import _core
    except ImportError as error:
        raise UnsupportedError(
            f"the compiled part of cpufree does not load ({error}). Install the package with its "
            "compiler step: pip install . in the source tree"
        ) from error
    _warn_of_processor(_core.cpu_lacks())
    return _core


@cache
def _warn_of_processor(lacks: str) -> None:
    """Say once that the package was built for a processor that can do more than this one."""
    if lacks:
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
