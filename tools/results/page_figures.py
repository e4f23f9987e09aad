"""Sentences and tables of hand-written pages that quote figures, made from the records."""

from __future__ import annotations

import json
import statistics
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cpufree.bench.core.noise import geometric_mean
from cpufree.machine.communication import Communication, load_ways
from cpufree.model.fit import medians
from cpufree.model.samples import read_samples
from cpufree.model.use import single
from tools.results import (
    choices,
    dace,
    headlines,
    method_table,
    predictions,
    programs,
    rule_by_sizes,
    small_studies,
)
from tools.results import solver_tables as cg
from tools.results.page_tables import Tables, markdown
from tools.results.papers import roles
from tools.results.records import (
    FOLDER,
    ROOT,
    declared_lines,
    json_lines,
    problems,
    solver_record,
)
from tools.results.records import medians as medians_of

CPU_PROGRAMS = "programs-cpu-2026-11-26.jsonl"
# Folder of samples and verdicts, machine file, and the ways in the table of the page.
TWO = ("model-2x-2026-11-26", "h100")
FOUR = ("model-4x-2026-11-26", "h200")
SIZES = (8, 1 << 16, 8 << 20)  # the columns of those tables
CLOSE = 0.12  # a fitted curve this far from a median is not worth a word


def filled(text: str) -> str:
    """Return a paragraph in lines of the page."""
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False) + "\n"


def cpu_programs() -> str:
    """Return how programs on CPU threads compare with NumPy, numba and DaCe."""
    head, found = json_lines(CPU_PROGRAMS)[0], medians_of(CPU_PROGRAMS)
    names = {case: line["program"] for case, line in problems(CPU_PROGRAMS).items()}

    def over(rival: str) -> dict[str, float]:
        times = {names[case]: of for case, of in found.items()}
        return {name: t[rival] / t["cpufree"] for name, t in times.items() if rival in t}

    numpy, numba, dace = over("numpy"), over("numba"), over("dace")
    refused = [names[case] for case, of in found.items() if "numba" not in of]
    ours = [1 / ratio for ratio in dace.values()]
    command = head["command"].partition(" --")[0]
    return filled(
        f"On {head['machine']} of a virtual machine, whose load was {head['load']:.1f} when it "
        f"began (`{command}`, [record](../bench/results/{CPU_PROGRAMS})), the {len(numpy)} "
        f"programs at 1024² and 128³ are **{geometric_mean([*numpy.values()]):.2f} times** as fast "
        f"as NumPy (geometric mean; {_worst(numpy)}; goal 5), and the {len(numba)} that numba's "
        f"`njit(parallel=True)` takes **{geometric_mean([*numba.values()]):.2f} times** as fast as "
        f"that ({_worst(numba)}; goal 1.0). {_and(refused)} are not typed by numba. Of NPBench's "
        f"programs, {_and(sorted(dace))} take {min(ours):.2f} to {max(ours):.2f} times what DaCe's "
        "own code generator takes."
    )


NPBENCH = "npbench-programs-2026-11-29.json"
_NOT_OF_THE_LIST = ("conv_3x3", "softmax (all points)")


def npbench_programs() -> str:
    """Return which kernels of NPBench run as programs."""
    record = json.loads((FOLDER / NPBENCH).read_text())
    kernels = {k: one for k, one in record["kernels"].items() if k not in _NOT_OF_THE_LIST}
    run = sorted(k for k, one in kernels.items() if one["outcome"] != "refused")
    command = record["command"].partition(" --")[0]
    return filled(
        f"Of NPBench's {len(kernels)} kernels {len(run)} run as they are written for the tests of "
        f"[DaCe's programs](dace.md), on {record['pes']} PEs and with NumPy's values: {_and(run)} "
        f"(`{command}`, [record](../bench/results/{NPBENCH})). Most others go by rows one "
        "after the other: DaCe's front end takes these, on one PE."
    )


def _worst(ratios: dict[str, float]) -> str:
    name = min(ratios, key=lambda one: ratios[one])
    return f"{ratios[name]:.2f} at worst, {name}"


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _verdicts(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / folder / "validate.json").read_text("utf-8"))
    return found


def _by_device(machine: Communication) -> set[str]:
    return {name for name, way in machine.ways.items() if way.initiated == "device"}


def curves(folder: str, name: str) -> str:
    """Return how many curves are within the limits, those of messages by a device first."""
    checks = _verdicts(folder)["checks"]
    those = [one for one in checks if one["way"] in _by_device(load_ways(name))]
    good, passed = (sum(one["passed"] for one in group) for group in (those, checks))
    *_, second, least = sorted(those, key=lambda one: -one["r2"])
    return filled(
        f"{passed} of {len(checks)} curves are within the limits, of messages that a device "
        f"initiates {good} of {len(those)}: median errors of at most "
        f"{100 * max(one['error'] for one in those):.1f} %, R² from {second['r2']:.3f}, and "
        f"{least['r2']:.3f} of `{least['way']}`."
    )


def pairs(folder: str, name: str) -> str:
    """Return where a device and the host overtake one another as predicted, between two GPUs."""
    machine = load_ways(name)
    between = {way for way in machine.ways if way.startswith(("device-", "host-", "nvshmem-"))}
    device = _by_device(machine) & between
    found = [
        one
        for one in _verdicts(folder)["crossings"]
        if set(one["ways"]) <= between and len(set(one["ways"]) & device) == 1
    ]
    missed = [one for one in found if not one["passed"]]
    told = "; ".join(
        f"`{'` and `'.join(one['ways'])}` ({_bytes(one['measured'])} measured, "
        f"{_bytes(one['predicted'])} predicted)"
        for one in missed
    )
    return filled(
        "**Where the host overtakes a device**: of "
        f"{len(found)} pairs of a way that a device initiates and one of the host's between two "
        f"GPUs, {len(found) - len(missed)} are predicted within the factor of 1.5. Missed: {told}."
    )


def _bytes(count: float | None) -> str:
    return "none" if count is None else f"{count / 1e3:.1f} kB"


def one_way(folder: str, name: str, ways: Sequence[str]) -> str:
    """Return how far the fitted curves of a table are from the medians measured."""
    return filled(
        "The table is of the fitted curves. The medians measured at these sizes are within "
        f"{100 * CLOSE:.0f} % of them, but for {_and([*_far(folder, name, ways)])}."
    )


def _far(folder: str, name: str, ways: Sequence[str]) -> Iterator[str]:
    machine, samples = load_ways(name), read_samples(FOLDER / folder / "samples.jsonl")
    for way in ways:
        there = medians(samples, way, "single", None)
        assert there is not None, way
        measured = dict(zip(there.sizes, there.seconds, strict=True))
        for size in SIZES:
            predicted = single(machine.ways[way], size)
            assert predicted is not None, way
            if abs(float(predicted) / measured[size] - 1) > CLOSE:
                yield f"`{way}` at {size} B ({1e6 * measured[size]:.1f} µs)"


def mpi_on_four() -> str:
    """Return how slow MPI through the host is beside the best of the other baselines."""
    results = solver_record(cg.FOUR)
    ratios = {}
    for group in cg.groups(cg.FOUR):
        times: dict[bool, list[float]] = {True: [], False: []}
        for one in filter(cg.any_baseline, results.valid(group)):
            times[one.task.contender == "mpi"].append(one.median)
        ratios[group.case] = min(times[True]) / min(times[False])
    *rest, second, most = sorted(ratios, key=lambda case: ratios[case])
    return filled(
        f"Measured (Open MPI 4.1.6, halos through the host, four GPUs, {len(ratios)} matrices, "
        f"[record](../../bench/results/{cg.FOUR})): {ratios[rest[0]]:.2f} to "
        f"{ratios[rest[-1]]:.2f} times the time of the best of the others, {ratios[second]:.2f} "
        f"times on {second}, and {ratios[most]:.2f} times on {most}; median "
        f"{statistics.median(ratios.values()):.2f}."
    )


TWO_WAYS = (
    *("device-get", "device-packets", "device-store-block", "device-bulk", "device-proxy"),
    *("nvshmem-put-signal", "nvshmem-p", "nvshmem-iput", "nvshmem-put-block", "nvshmem-put-warp"),
    *("nvshmem-put-thread", "host-copy", "host-copy-graph", "host-copy-get", "nvshmem-get-stream"),
    *("nvshmem-put-stream", "host-ipc", "host-nccl", "host-managed", "host-mpi-staged"),
    "processes-mpi",
)
FOUR_WAYS = (
    *("device-get", "device-packets", "device-store-block", "device-bulk", "host-copy"),
    *("host-copy-graph", "nvshmem-get-stream", "nvshmem-put-stream", "host-nccl"),
)
BUILDS_BEFORE, BUILDS_NOW = "build-2026-11-28.json", "build-edits-2026-11-28.json"


def builds(link: str) -> str:
    """Return what building the package takes, before and after the last change of that."""
    record = declared_lines(BUILDS_NOW)[0]
    both, rows = ((BUILDS_BEFORE, "before"), (BUILDS_NOW, "after")), []
    for step, label in BUILD_STEPS.items():
        shown = []
        for name, tree in both:
            wall, used = (medians_of(name, x).get(step, {}) for x in ("seconds", "processors"))
            shown.append(f"{wall[tree]:.0f} s, {used[tree]:.0f} s" if tree in wall else "–")
        rows.append((label, *shown))
    then = medians_of(BUILDS_BEFORE)["install"]["after"]
    head = ("command; wall time, and time of processors", "before", "now")
    return (
        markdown(head, rows)
        + "\n"
        + filled(
            f"On {record['cores']} cores of an {record['machine']} ({record['compiler']}; Python "
            f"{record['python']}), without a cache of compilations, packages installed before "
            f"([record]({link}{BUILDS_NOW}), with its command). *Before* is the commit before "
            "kernels for CPUs were left to be compiled when they are first used, in another run on "
            f"a machine of the same kind ([record]({link}{BUILDS_BEFORE}), in which *now* took "
            f"{then:.0f} s)."
        )
    )


BUILD_STEPS = {
    "install": "`make install` in a fresh clone",
    "edit cpufree/solvers/cg.hpp": "after an edit of `cpufree/solvers/cg.hpp`",
    "edit cpufree/device/port.hpp": "after an edit of `cpufree/device/port.hpp`",
    "all kernels": "all other kernels for CPUs, which tests want",
}
KERNEL_TIMES = "kernel-times-2026-11-29.json"


def kernel_times() -> str:
    """Return what NVRTC takes for kernels of solvers."""
    record, sizes = declared_lines(KERNEL_TIMES)[0], medians_of(KERNEL_TIMES, "bytes")
    rows: list[tuple[str, ...]] = []
    for case, of in medians_of(KERNEL_TIMES).items():
        method, pc, form = case.split(", ", 2)
        size = f"{int(sizes[case]['NVRTC']) >> 10} KB"
        rows.append((f"`{method}`, {pc}", form, f"{of['NVRTC']:.1f} s", size))
    head = ("method, preconditioner", "for", "NVRTC, one core", "machine code")
    return (
        markdown(head, rows)
        + "\n"
        + filled(
            f"Of an {record['machine']}, {record['compiler']}, {record['architecture']}, double "
            f"precision ([record](../../bench/results/{KERNEL_TIMES}), with its command)."
        )
    )


MULTIGRID = "amg-cpu-2026-11-29.jsonl"


def multigrid_on_cpus() -> str:
    """Return how long multigrid, Jacobi and PyAMG take on CPUs, set-up included."""
    head, found = json_lines(MULTIGRID)[0], medians_of(MULTIGRID)
    setups, counts = (medians_of(MULTIGRID, what) for what in ("setup_seconds", "iterations"))
    rows, over = [], []
    for case, line in problems(MULTIGRID).items():
        of = found[case]
        rival = min((name for name in of if name.startswith("pyamg")), key=lambda name: of[name])
        over.append(of[rival] / of["amg"])
        cells = [f"{of[who]:.3f} ({counts[case][who]:.0f})" for who in ("amg", "jacobi", rival)]
        setup = f"{setups[case]['amg']:.3f}"
        rows.append((case, f"{line['rows']:,}".replace(",", " "), setup, *cells, f"{over[-1]:.2f}"))
    names = ("system", "rows", "set-up", "amg (iterations)", "jacobi", "PyAMG", "PyAMG over amg")
    return (
        markdown(names, rows)
        + "\n"
        + filled(
            f"PyAMG takes {geometric_mean(over):.2f} times as long in the geometric mean, "
            f"{min(over):.2f} to {max(over):.2f} times. Jacobi is sooner than amg on "
            f"{sum(of['jacobi'] < of['amg'] for of in found.values())} of these {len(over)} small "
            f"systems, because of its set-up. {head['machine']['cores']} cores of an "
            f"{head['machine']['cpu']} ([record](../../bench/results/{MULTIGRID}))."
        )
    )


PAGES: dict[Path, Tables] = {
    ROOT / "README.md": lambda: {"headlines": headlines.table()},
    ROOT / "docs/install.md": lambda: {"builds": builds("../bench/results/")},
    ROOT / "docs/design/multigrid.md": lambda: {
        "multigrid beside PyAMG": multigrid_on_cpus(),
    },
    ROOT / "docs/design/kernel-compilation.md": lambda: {
        "builds": builds("../../bench/results/"),
        "kernels": kernel_times(),
    },
    ROOT / "docs/compiler.md": lambda: {
        "programs on CPUs": cpu_programs(),
        "NPBench's kernels": npbench_programs(),
        ("<!-- figures of compiled programs -->", "<!-- end of figures -->"): (
            f"\n\n{programs.text_of(*headlines.GPU_PROGRAMS)}\n\n"
        ),
    },
    ROOT / "docs/benchmarking.md": lambda: {**choices.pages(), "who does what": roles.table()},
    ROOT / "docs/dace.md": dace.pages,
    ROOT / "docs/gpus.md": lambda: {
        **small_studies.expected(),
        "choices of auto": rule_by_sizes.table(),
    },
    ROOT / "docs/solving/methods.md": lambda: {
        **method_table.tables(),
        "preconditioners": small_studies.preconditioners(),
    },
    ROOT / "docs/model.md": lambda: {
        "curves, two H100": curves(*TWO),
        "one way, two H100": one_way(*TWO, TWO_WAYS),
        "pairs, two H100": pairs(*TWO),
        "curves, four H200": curves(*FOUR),
        "one way, four H200": one_way(*FOUR, FOUR_WAYS),
        "predicted beforehand": predictions.predicted(),
        "predicted multigrid": predictions.multigrid(),
    },
    ROOT / "docs/design/baselines.md": lambda: {"MPI, four GPUs": mpi_on_four()},
}
