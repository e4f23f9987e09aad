"""What the machine under this process is like: processor, memory, programs that tell of it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from pathlib import Path


def read_text(path: str) -> str:
    """Return the text of a file, "" where it cannot be read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def run_tool(command: list[str]) -> str | None:
    """Return what a program prints, None when it is not there, fails, or hangs."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def processor_name(cpuinfo: str) -> str:
    """Return the processor's model from the text of /proc/cpuinfo, else the architecture."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine() or "unknown processor"


def memory_limits(meminfo: str, cgroup: str) -> tuple[int, int]:
    """Return (total, available) bytes from /proc/meminfo, capped by a container's memory.max."""
    fields = {}
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            fields[name] = int(words[0]) * 1024
    total = fields.get("MemTotal", 0)
    available = fields.get("MemAvailable", total)
    if cgroup.strip().isdigit():
        limit = int(cgroup)
        total, available = min(total, limit), min(available, limit)
    return total, available


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find_library(package: str, name: str) -> str:
    """Return the path of a library in one of pip's packages of NVIDIA, "" where it is not there."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # there is no package nvidia
        return ""
    for folder in (spec.submodule_search_locations or []) if spec else []:
        library = Path(folder) / "lib" / name
        if library.exists():
            return str(library)
    return ""


def find_nccl() -> str:
    """Return the path of NCCL's library in pip's package, "" where that is not installed.

    With "", it is looked for where the system looks.
    """
    return find_library("nvidia.nccl", "libnccl.so.2")
