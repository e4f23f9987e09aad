"""What a result was measured on: processor, caches, memory, versions, the state of the sources."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from cpufree import env
from cpufree.errors import InvalidInputError
from cpufree.host import memory_limits, processor_name, read_text, usable_cores

CPUS = Path("/sys/devices/system/cpu")
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, memory and caches."""
    total, available = memory_limits(
        read_text("/proc/meminfo"), read_text("/sys/fs/cgroup/memory.max")
    )
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": processor_name(read_text("/proc/cpuinfo")),
        "cores": usable_cores(),
        "memory_bytes": total,
        "memory_available_bytes": available,
        "caches": caches(),
        "huge_pages": read_text("/sys/kernel/mm/transparent_hugepage/enabled").strip(),
    }


def caches() -> list[dict[str, Any]]:
    """Return data and unified caches of the usable cores: level, bytes of one, instances."""
    found: dict[tuple[int, int], set[str]] = {}
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    for cpu in cores:
        for entry in (CPUS / f"cpu{cpu}/cache").glob("index*"):
            level, kind, size, shared = (
                read_text(str(entry / name)).strip()
                for name in ("level", "type", "size", "shared_cpu_list")
            )
            if kind != "Instruction" and level.isdigit() and size[:-1].isdigit():
                bytes_ = int(size[:-1]) * UNITS.get(size[-1], 1)
                found.setdefault((int(level), bytes_), set()).add(shared)
    return [
        {"level": level, "bytes": bytes_, "instances": len(shared)}
        for (level, bytes_), shared in sorted(found.items())
    ]


def last_level_bytes(listed: list[dict[str, Any]]) -> int:
    """Return the bytes of all last-level caches together, 0 where unknown."""
    last = max((cache["level"] for cache in listed), default=0)
    return sum(cache["bytes"] * cache["instances"] for cache in listed if cache["level"] == last)


class CpuUse:
    """Counts how busy the processor is, from construction on, with other programs than this."""

    def __init__(self) -> None:
        self._begin = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        """Return processor seconds so far: all, busy, of this process; None where unknown."""
        words = read_text("/proc/stat").partition("\n")[0].split()
        if len(words) < 9 or words[0] != "cpu":
            return None
        # user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user.
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in words[1:9]]
        own = os.times()
        spent = own.user + own.system + own.children_user + own.children_system
        return sum(ticks), sum(ticks) - ticks[3] - ticks[4], spent

    def others(self) -> float | None:
        """Return the share of all cores' time that went to others, None where unknown."""
        now = self._now()
        if now is None or self._begin is None:
            return None
        total, busy, own = (after - before for after, before in zip(now, self._begin, strict=True))
        return max(0.0, busy - own) / total if total > 0 else None


def package_version(name: str) -> str:
    """Return the version of a package; that of a copied source tree is known to the package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found = sys.modules.get(name)
        return str(getattr(found, "__version__", "unknown"))


def source_root() -> Path | None:
    """Return the source tree that this package is in, or was copied within; None: in none."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "pyproject.toml").exists() and (folder / "python/cpufree/bench").is_dir():
            return folder
    return None


def source_state() -> dict[str, Any]:
    """Return the commit of the sources and whether files differ from it; None where unknown.

    Of a copy without history, they are those that CPUFREE_COMMIT says.
    """
    root = source_root()
    # A source tree without history may lie inside another repository.
    if root is None or _git(root, "rev-parse", "--show-toplevel") != str(root):
        return state_from_text(env.source_commit())
    changed = _git(root, "status", "--porcelain")
    modified = None if changed is None else bool(changed)
    return {"commit": _git(root, "rev-parse", "HEAD"), "modified": modified}


def state_from_text(text: str) -> dict[str, Any]:
    """Return commit and modified of a text such as 3649143, or 3649143-dirty; "": not known.

    Raises InvalidInputError for a text that is none.
    """
    if not text:
        return {"commit": None, "modified": None}
    commit, dash, rest = text.lower().partition("-")
    if not re.fullmatch("[0-9a-f]{7,64}", commit) or (dash and rest != "dirty"):
        raise InvalidInputError(
            f"environment variable CPUFREE_COMMIT={text!r} is not valid; it takes "
            f"{env.VARIABLES['CPUFREE_COMMIT']}"
        )
    return {"commit": commit, "modified": bool(dash)}


def _git(folder: Path, *arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
