"""Versions that matter to a run on GPUs: driver, CUDA, and NVIDIA's libraries that are loaded."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

from cpufree.extension import load_core
from cpufree.host import read_text, run_tool

DRIVER_FILE, MAPS_FILE = "/proc/driver/nvidia/version", "/proc/self/maps"
# As they stand among the versions of a header.
NAMES = ("driver", "cuda_driver", "cuda_runtime", "cublas", "cusparse", "nccl")
NAMES_QUERY = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
QUERY = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")


def made_with() -> dict[str, str]:
    """Return the versions of compiler and CUDA runtime of the extension, where known."""
    core = load_core()
    found = {"core_compiler": str(core.compiler), "cuda_runtime": str(core.cuda_runtime())}
    return {name: version for name, version in found.items() if version}


def gpu_versions() -> dict[str, str]:
    """Return the versions that can be found out here, by those of NAMES. Starts no GPU."""
    driver = driver_version(read_text(DRIVER_FILE))
    if not driver:
        driver = (run_tool(list(QUERY)) or "").partition("\n")[0].strip()
    loaded = loaded_libraries(read_text(MAPS_FILE))
    readers: dict[str, Callable[[Any], str]] = {
        "cublas": lambda library: _property(library.cublasGetProperty),
        "cusparse": lambda library: _property(library.cusparseGetProperty),
        "nccl": lambda library: nccl_text(_number(library.ncclGetVersion)),
    }
    found = {
        "driver": driver,
        "cuda_driver": _ask(
            "libcuda.so.1", lambda cuda: cuda_text(_number(cuda.cuDriverGetVersion))
        ),
        "cuda_runtime": made_with().get("cuda_runtime", ""),
        **{name: _ask(loaded[name], read) for name, read in readers.items() if name in loaded},
    }
    return {name: version for name, version in found.items() if version}


def gpu_names(numbers: Sequence[int]) -> str:
    """Return what GPUs are, such as "2 × NVIDIA H200"; "unknown": the driver's tool is missing."""
    listed = (run_tool(list(NAMES_QUERY)) or "").splitlines()
    different = sorted(set(numbers))
    if not different or different[-1] >= len(listed):
        return "unknown"
    names = dict.fromkeys(listed[number].strip() for number in different)
    return f"{len(different)} × {' and '.join(names)}"


def driver_version(text: str) -> str:
    """Return the driver's version, such as 580.65.06, out of what it says in /proc."""
    match = re.search(r"Kernel Module\s+(?:for\s+\S+\s+)?(\d+(?:\.\d+)+)", text)
    return match[1] if match else ""


def loaded_libraries(maps: str) -> dict[str, str]:
    """Return the paths of cublas, cusparse and nccl in the memory map of a process."""
    paths = re.findall(r"(/\S*/lib(cublas|cusparse|nccl)\.so[.\d]*)$", maps, re.MULTILINE)
    return {name: path for path, name in paths}


def cuda_text(version: int) -> str:
    """Return 13.0 for 13000; "" for 0, which means that there is none."""
    return f"{version // 1000}.{version % 1000 // 10}" if version else ""


def nccl_text(version: int) -> str:
    """Return 2.27.3 for 22703."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def _ask(path: str, read: Callable[[Any], str]) -> str:
    """Return what a library says; "" where it is not there, or has no such function."""
    try:
        return read(ctypes.CDLL(path))
    except (OSError, AttributeError):
        return ""


def _number(function: Any) -> int:
    """Return the number that a function of CUDA or NCCL writes; 0 where it fails."""
    value = ctypes.c_int(0)
    return 0 if function(ctypes.byref(value)) else value.value


def _property(function: Any) -> str:
    """Return the version that a library's GetProperty gives: major, minor, patch level."""
    parts = [ctypes.c_int(0) for _ in range(3)]
    if any(function(kind, ctypes.byref(part)) for kind, part in enumerate(parts)):
        return ""
    return ".".join(str(part.value) for part in parts)
