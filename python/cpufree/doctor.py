"""What this machine can do: processor, memory, GPUs, engines, versions, and what is missing.

Looks only: nothing is installed or changed, no GPU is needed, and no GPU library is initialised.
"""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
import scipy.sparse
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .errors import UnsupportedError


class Status(str, Enum):
    """State of one thing looked at."""

    OK = "ok"
    NOTE = "note"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """One line of the report; `hint` says how to get what is missing."""

    name: str
    status: Status
    detail: str
    hint: str = ""


@dataclass(frozen=True)
class Section:
    """A titled group of findings."""

    title: str
    findings: list[Finding] = field(default_factory=list)


PACKAGES = ("numpy", "scipy", "pymetis", "typer", "rich", "matplotlib")


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


def look_at_machine() -> Section:
    """Report system, processor, cores and memory."""
    total, available = memory_limits(
        read_text("/proc/meminfo"), read_text("/sys/fs/cgroup/memory.max")
    )
    cores = usable_cores()
    memory = f"{total / 2**30:.1f} GiB, {available / 2**30:.1f} GiB available"
    return Section(
        "Machine",
        [
            Finding("system", Status.OK, f"{platform.system()} {platform.release()}"),
            Finding("processor", Status.OK, processor_name(read_text("/proc/cpuinfo"))),
            Finding("cores", Status.OK, f"{cores} usable of {os.cpu_count()}"),
            Finding("memory", Status.OK if total else Status.NOTE, memory if total else "unknown"),
        ],
    )


def look_at_gpus() -> Section:
    """Report GPUs, the driver library and the CUDA compiler. None of them is needed."""
    query = "--query-gpu=name,memory.total,driver_version"
    listed = run_tool(["nvidia-smi", query, "--format=csv,noheader"])
    findings = [
        Finding(f"GPU {index}", Status.OK, line.strip())
        for index, line in enumerate((listed or "").splitlines())
    ]
    if not findings:
        findings = [Finding("GPUs", Status.NOTE, "none found (nvidia-smi lists none)")]
    driver = ctypes.util.find_library("cuda")
    findings.append(
        Finding("driver library", Status.OK, driver)
        if driver
        else Finding("driver library", Status.NOTE, "libcuda was not found; only GPUs need it")
    )
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    version = (run_tool([nvcc, "--version"]) or "").splitlines() if nvcc else []
    release = next((line.split("release")[1].strip() for line in version if "release" in line), "?")
    findings.append(
        Finding("CUDA compiler", Status.OK, f"{nvcc}, release {release}")
        if nvcc
        else Finding("CUDA compiler", Status.NOTE, "nvcc was not found; only developers need it")
    )
    return Section("GPUs", findings)


def self_test() -> str:
    """Solve a small system on the CPU engine and check the answer; return what was seen."""
    from .run import solve

    n = 200
    diagonals = [np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)]
    matrix = scipy.sparse.diags(diagonals, [-1, 0, 1], format="csr")
    solution = np.sin(np.arange(n, dtype=np.float64))
    result = solve(matrix, matrix @ solution, rtol=1e-12, pes=2, blocks=1, engine="cpu_threads")
    error = float(np.abs(result.x - solution).max())
    if not result.converged or error > 1e-8:
        raise ArithmeticError(f"{result.reason.value}, error {error:.1e}")
    return f"works: {n} rows on 2 PEs, {result.iterations} iterations, error {error:.0e}"


def look_at_engines(test: Callable[[], str] = self_test) -> Section:
    """Report the engines of this installation; the CPU engine is tried on a small system."""
    try:
        cpu = Finding("cpu_threads", Status.OK, test())
    except UnsupportedError as error:
        hint = "In the source tree, with a C++20 compiler: pip install ."
        cpu = Finding("cpu_threads", Status.MISSING, str(error), hint)
    except Exception as error:  # whatever it is, the doctor reports it
        hint = "Run again with CPUFREE_LOG=debug, and report what it prints with this page."
        cpu = Finding("cpu_threads", Status.FAILED, f"{type(error).__name__}: {error}", hint)
    later = Finding("cuda_p2p", Status.NOTE, "not part of this version; GPUs are not used yet")
    return Section("Engines", [cpu, later])


def package_finding(name: str) -> Finding:
    """Report the version of an installed package."""
    try:
        return Finding(name, Status.OK, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        what = "." if name == "cpufree" else name
        return Finding(name, Status.MISSING, "not installed", f"pip install {what}")


def look_at_versions() -> Section:
    """Report the versions of Python, of cpufree and of the packages it uses."""
    python = f"{platform.python_version()} ({sys.executable})"
    names = ("cpufree", *PACKAGES)
    findings = [Finding("python", Status.OK, python), *map(package_finding, names)]
    return Section("Versions", findings)


def examine() -> list[Section]:
    """Look at everything; return the report, section by section."""
    return [look_at_machine(), look_at_gpus(), look_at_engines(), look_at_versions()]


def healthy(sections: list[Section]) -> bool:
    """Return whether nothing is missing or failed."""
    bad = {Status.MISSING, Status.FAILED}
    return not any(finding.status in bad for part in sections for finding in part.findings)


def report(sections: list[Section]) -> RenderableType:
    """Return the report as something Rich can print."""
    marks = {Status.OK: "green", Status.NOTE: "dim", Status.MISSING: "red", Status.FAILED: "red"}
    parts: list[RenderableType] = []
    for section in sections:
        table = Table.grid(padding=(0, 2))
        for finding in section.findings:
            state = Text(f"  {finding.status.value:7}", style=marks[finding.status])
            table.add_row(state, Text(finding.name), Text(finding.detail))
            if finding.hint:
                table.add_row("", "", Text(f"→ {finding.hint}", style="yellow"))
        parts += [Text(section.title, style="bold"), table]
    return Group(*parts)


def to_dict(sections: list[Section]) -> dict[str, list[dict[str, str]]]:
    """Return the report as plain data, ready for JSON."""
    return {
        section.title.lower(): [
            {
                "name": finding.name,
                "status": finding.status.value,
                "detail": finding.detail,
                "hint": finding.hint,
            }
            for finding in section.findings
        ]
        for section in sections
    }
