"""What this machine can do: processor, memory, GPUs, engines, versions, and what is missing.

Looks only: nothing is installed or changed, and no GPU is needed. Where there are GPUs, a small
system is solved on them, as on the CPU.
"""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cpufree.errors import CpufreeError, UnsupportedError
from cpufree.extension import load_core, load_gpu_core
from cpufree.host import memory_limits, processor_name, read_text, run_tool, usable_cores

if TYPE_CHECKING:
    from cpufree.engines.gpus import Gpu


COMPILED_FOR_AMD = ("gfx90a", "gfx942")
"""GPUs of AMD that `make hip` compiles kernels for."""


class Status(str, Enum):
    """State of one thing looked at."""

    OK = "ok"
    NOTE = "note"
    OPTIONAL = "optional"
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


PACKAGES = ("numpy", "scipy", "typer", "rich")
# What solves work without, and what each is good for.
OPTIONAL_PACKAGES = {
    "pymetis": "partitions by METIS; without it, rows are shared out in consecutive blocks",
    "matplotlib": "plots: --plot, cpufree bench report",
}


def inspect_machine() -> Section:
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


def inspect_gpus() -> Section:
    """Report GPUs, whether they can be used together, driver and compiler. None is needed."""
    findings = [*extension_findings(), *amd_findings()]
    if vendor_built_for() == "AMD":
        return Section("GPUs", [*findings, library_finding("amdhip64", "AMD")])
    findings.append(library_finding("cuda", "NVIDIA"))
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    version = (run_tool([nvcc, "--version"]) or "").splitlines() if nvcc else []
    release = next((line.split("release")[1].strip() for line in version if "release" in line), "?")
    findings.append(
        Finding("CUDA compiler", Status.OK, f"{nvcc}, release {release}")
        if nvcc
        else Finding("CUDA compiler", Status.OPTIONAL, "no nvcc: builds all GPU kernels in")
    )
    return Section("GPUs", findings)


def vendor_built_for() -> str:
    """Return whose GPUs this build has an engine for, "" for none."""
    try:
        return str(load_core().gpu_vendor())
    except UnsupportedError:  # the section on engines tells
        return ""


def library_finding(name: str, vendor: str) -> Finding:
    """Report the library by which a vendor's GPUs are reached."""
    if found := ctypes.util.find_library(name):
        return Finding("driver library", Status.OK, found)
    return Finding("driver library", Status.OPTIONAL, f"no lib{name}: solves on {vendor} GPUs")


def extension_findings() -> list[Finding]:
    """Report the GPUs as the extension sees them; nvidia-smi's list where it sees none."""
    from cpufree.engines import gpus

    try:
        there, vendor = gpus.find(), load_core().gpu_vendor()
    except UnsupportedError:  # the section on engines tells
        return listed_by_driver()
    built = vendor != ""
    with_cuda = Finding("extension", Status.OK, f"compiled with {gpus.runtime()[0]}")
    if not there:
        listed = [] if vendor == "AMD" else listed_by_driver()
        if not built:  # which matters to those who have a GPU
            hint = gpus.remedy(there) if listed[0].status is Status.OK else ""
            with_cuda = Finding("extension", Status.NOTE, "compiled without CUDA", hint)
        why = Finding("GPUs in use", Status.NOTE, f"none: {gpus.absence(there)}")
        kernels = kernels_findings() if built else []
        return [*listed, with_cuda, *kernels, why]
    usable = gpus.usable(there)
    return [*map(gpu_finding, there), with_cuda, *kernels_findings(), *peer_findings(usable)]


def kernels_findings() -> list[Finding]:
    """Report what compiles kernels for GPUs, and where they are kept; nothing if built in."""
    name = "GPU kernels"
    if not load_core().kernels_compiled():
        return []
    try:
        compiler = load_gpu_core().kernel_compiler()
    except UnsupportedError as error:
        hint = "pip install 'nvidia-cuda-nvrtc>=13,<14'"
        if vendor_built_for() == "AMD":
            hint = "Install ROCm 6.0 or newer (package hip-runtime-amd, which has libhiprtc.so)."
        return [Finding(name, Status.MISSING, str(error), hint)]
    detail = f"compiled when first used, by {compiler}"
    return [Finding(name, Status.OK, detail)]


def listed_by_driver() -> list[Finding]:
    """Report the GPUs that nvidia-smi lists."""
    query = "--query-gpu=name,memory.total,driver_version"
    listed = (run_tool(["nvidia-smi", query, "--format=csv,noheader"]) or "").splitlines()
    findings = [Finding(f"GPU {k}", Status.OK, line.strip()) for k, line in enumerate(listed)]
    return findings or [Finding("GPUs", Status.NOTE, "none found (nvidia-smi lists none)")]


def amd_findings(nodes: str = "/sys/class/kfd/kfd/topology/nodes") -> list[Finding]:
    """Report AMD's GPUs, by the driver's folder of devices, where this build has no engine for
    them.
    """
    if vendor_built_for() == "AMD":
        return []
    findings: list[Finding] = []
    for file in sorted(Path(nodes).glob("*/properties")):
        lines = [line.split() for line in read_text(str(file)).splitlines()]
        found = {line[0]: line[1] for line in lines if len(line) == 2}.get("gfx_target_version", "")
        version = int(found) if found.isdigit() else 0
        if version == 0:  # a processor
            continue
        name = f"gfx{version // 10000}{version // 100 % 100}{version % 100:x}"
        detail, hint = f"AMD {name}: there is no engine for it", ""
        if name in COMPILED_FOR_AMD:
            detail = f"AMD {name}: this build has no engine for it; kernels compile, never run"
            hint = (
                "To try it, with ROCm installed, in the source tree: "
                "pip install . -C cmake.define.CPUFREE_HIP=ON"
            )
        findings.append(Finding(f"AMD GPU {len(findings)}", Status.NOTE, detail, hint))
    return findings


def gpu_finding(gpu: Gpu) -> Finding:
    """Report one GPU: name, memory, compute capability."""
    memory = f"{gpu.memory_bytes / 2**30:.1f} GiB"
    detail = f"{gpu.name}, {memory}, {gpu.kind or f'compute capability {gpu.capability}'}"
    if not gpu.usable:
        return Finding(f"GPU {gpu.index}", Status.NOTE, f"{detail}: too low for cpufree")
    try:
        free = f"{gpu.free_bytes() / 2**30:.1f} GiB free"
    except CpufreeError as error:
        hint = "Another program may hold it for itself: nvidia-smi shows which."
        return Finding(f"GPU {gpu.index}", Status.FAILED, f"{detail}: {error}", hint)
    if not gpu.tried:
        untried = "kernels compile for it, and have never run on one: compare a first solve with"
        return Finding(f"GPU {gpu.index}", Status.NOTE, f"{detail}, {free}; {untried} cpu_threads")
    return Finding(f"GPU {gpu.index}", Status.OK, f"{detail}, {free}")


def peer_findings(there: list[Gpu]) -> list[Finding]:
    """Report whether all pairs of GPUs reach one another's memory, nothing for a single one."""
    from cpufree.engines import gpus

    if len(there) < 2:
        return []
    problem = gpus.peer_problem(there)
    if problem:
        return [Finding("peer access", Status.NOTE, f"{problem}; auto uses one GPU")]
    return [Finding("peer access", Status.OK, f"between all pairs of {len(there)} GPUs")]


def self_test(gpus: Sequence[int] = ()) -> str:
    """Solve a small system on these GPUs, or the CPU, and check the answer; say what was seen."""
    from cpufree.solvers.once import solve

    n = 200
    diagonals = [np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)]
    matrix = scipy.sparse.diags(diagonals, [-1, 0, 1], format="csr")
    solution = np.sin(np.arange(n, dtype=np.float64))
    cpu: dict[str, Any] = {"engine": "cpu_threads", "pes": 2, "blocks": 1}
    where = {"engine": "cuda_p2p", "pes": len(gpus), "gpus": list(gpus)} if gpus else cpu
    result = solve(matrix, matrix @ solution, rtol=1e-12, **where)
    error = float(np.abs(result.x - solution).max())
    if not result.converged or error > 1e-8:
        raise ArithmeticError(f"{result.reason.value}, error {error:.1e}")
    place = f"{result.pes} PE{'' if result.pes == 1 else 's'}"
    return f"works: {n} rows on {place}, {result.iterations} iterations, error {error:.0e}"


def inspect_engines(
    test: Callable[[], str] = self_test, gpu_test: Callable[[], str] | None = None
) -> Section:
    """Report the engines of this installation; each is tried on a small system."""
    findings = [cpu_kernels_finding(), *compiled_findings(), try_engine("cpu_threads", test)]
    try:
        findings.append(inspect_gpu_engine(gpu_test))
    except UnsupportedError as error:
        findings.append(Finding("cuda_p2p", Status.NOTE, f"not used: {error}"))
    return Section("Engines", findings)


def cpu_kernels_finding() -> Finding:
    """Report for which processors the kernels of the CPU engine are compiled."""
    name = "CPU kernels"
    try:
        core = load_core()
        level, there, lacks = core.cpu_level(), core.cpu_levels(), core.cpu_lacks()
    except UnsupportedError as error:
        return Finding(name, Status.MISSING, str(error))
    except CpufreeError as error:
        return Finding(name, Status.FAILED, str(error), "Unset CPUFREE_CPU_LEVEL, or correct it.")
    if lacks:
        detail = f"of a build for another processor (this one lacks {lacks}): compiled when used"
        return Finding(name, Status.NOTE, detail, "pip install . on this machine")
    if level == "native":
        return Finding(name, Status.OK, "native: for the processor of the machine that built it")
    more = f", out of {', '.join(there)}" if len(there) > 1 else ""
    return Finding(name, Status.OK, f"{level}{more}")


def compiled_findings() -> list[Finding]:
    """Report the compiler of kernels that are not built in, and where they are kept."""
    from cpufree import kernel_cache
    from cpufree.env import BuildEnv

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kept = kernel_cache.described()
    words = BuildEnv.read().compiler
    version = (run_tool([*words, "--version"]) or "").splitlines()
    compiler = Finding("C++ compiler", Status.OK, f"{words[0]}: {version[0]}" if version else "")
    if not version:
        detail = f"no '{words[0]}': compiles programs, and CPU kernels that are not built in"
        hint = "Install GCC 11 or Clang 14, or newer; or name a compiler in CPUFREE_CXX."
        compiler = Finding("C++ compiler", Status.OPTIONAL, detail, hint)
    hint = "Name a folder that can be written in CPUFREE_KERNEL_CACHE." if said else ""
    cache = Finding("compiled kernels", Status.NOTE if said else Status.OK, kept, hint)
    return [compiler, cache]


def inspect_gpu_engine(test: Callable[[], str] | None = None) -> Finding:
    """Report the engine for GPUs, tried on all of them, or on one where they do not combine."""
    from cpufree.engines import gpus

    there = gpus.find()
    usable = gpus.usable(there)
    if not usable:
        return Finding("cuda_p2p", Status.NOTE, f"not used: {gpus.absence(there)}")
    if gpus.peer_problem(usable):
        usable = usable[:1]
    numbers = tuple(gpu.index for gpu in usable)
    return try_engine("cuda_p2p", test or (lambda: self_test(numbers)))


def try_engine(name: str, test: Callable[[], str]) -> Finding:
    """Report what the test of an engine finds."""
    try:
        return Finding(name, Status.OK, test())
    except UnsupportedError as error:
        hint = "In the source tree, with a C++20 compiler: pip install ."
        return Finding(name, Status.MISSING, str(error), hint)
    except Exception as error:  # whatever it is, the doctor reports it
        hint = "Run again with CPUFREE_LOG=debug, and report what it prints with this page."
        return Finding(name, Status.FAILED, f"{type(error).__name__}: {error}", hint)


def package_finding(name: str, use: str = "") -> Finding:
    """Report the version of an installed package; `use` is what one is for that may be missing."""
    try:
        return Finding(name, Status.OK, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        hint = f"pip install {name}"
        if use:
            return Finding(name, Status.OPTIONAL, f"for {use}", hint)
        return Finding(name, Status.MISSING, "not installed", hint)


def inspect_versions() -> Section:
    """Report the versions of Python, of cpufree and of the packages it uses."""
    import cpufree

    # A package that was copied, as a build for GPUs is, is not known to pip.
    place = os.path.dirname(cpufree.__file__)
    findings = [
        Finding("python", Status.OK, f"{platform.python_version()} ({sys.executable})"),
        Finding("cpufree", Status.OK, f"{cpufree.__version__} ({place})"),
        *map(package_finding, PACKAGES),
        *(package_finding(name, use) for name, use in OPTIONAL_PACKAGES.items()),
    ]
    return Section("Versions", findings)


def examine() -> list[Section]:
    """Look at everything; return the report, section by section."""
    return [inspect_machine(), inspect_gpus(), inspect_engines(), inspect_versions()]


def healthy(sections: list[Section]) -> bool:
    """Return whether nothing is missing or failed."""
    bad = {Status.MISSING, Status.FAILED}
    return not any(finding.status in bad for part in sections for finding in part.findings)


def report(sections: list[Section]) -> RenderableType:
    """Return the report as something Rich can print."""
    marks = dict.fromkeys(Status, "dim")
    marks |= {Status.OK: "green", Status.MISSING: "red", Status.FAILED: "red"}
    parts: list[RenderableType] = []
    for section in sections:
        table = Table.grid(padding=(0, 2))
        for finding in section.findings:
            state = Text(f"  {finding.status.value:8}", style=marks[finding.status])
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
