"""Tables about processes, set-up, and the CPU engine."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from cpufree.bench.core import work
from cpufree.bench.report.tables import micro
from cpufree.generate.look_alikes import entry_of
from tools.results.records import json_record, markdown, medians, problems, values
from tools.results.solver_tables import EIGHT, copy_rate, millions

PROCESSES_EIGHT = "nvshmem-8x-2026-11-22.json"
PROCESSES_TWO = "nvshmem-2x-2026-11-22.json"
SETUP = "setup-1x-2026-11-23.json"
CPU = "cpu-2026-11-21.json"


def matrix(spec: str) -> str:
    """Return the name of a generated grid matrix: poisson2d 512²."""
    name, _, sizes = spec.removeprefix("gen:").partition("?")
    lengths = [part.split("=")[1] for part in sizes.split(",")]
    return f"{name} {lengths[0]}{'²' if len(lengths) == 2 else '³'}"


def processes_eight() -> str:
    """Return one process, a process for each GPU, and two nodes of four GPUs; eight GPUs."""
    record = json_record(PROCESSES_EIGHT)
    found: dict[tuple[str, str], dict[str, float]] = {}
    for line in record["iterations"]:
        one = found.setdefault((line["matrix"], line["method"]), {})
        one[line["engine"]] = line["microseconds_least"]
    for line in record["nodes_of_four"]:
        found[line["matrix"], line["method"]]["nodes"] = line["microseconds_least"]
    rows = [
        [
            *(matrix(spec), f"`{method}`", f"{t['cuda_p2p']:.2f}", f"{t['nvshmem']:.2f}"),
            *(f"{t['nvshmem'] / t['cuda_p2p']:.3f}", f"{t['nodes']:.2f}"),
        ]
        for (spec, method), t in found.items()
    ]
    heads = ["matrix", "method", "one process, µs", "a process for each GPU, µs", "ratio"]
    return markdown([*heads, "two nodes of four GPUs, µs"], rows)


def process_ratio() -> float:
    """Return the largest ratio of a process for each GPU to one process, poisson2d, 8 GPUs."""
    times: dict[tuple[str, str], float] = {}
    for line in json_record(PROCESSES_EIGHT)["iterations"]:
        if "poisson2d" in line["matrix"]:
            times[line["method"], line["engine"]] = line["microseconds_least"]
    return max(times[m, "nvshmem"] / times[m, "cuda_p2p"] for m in ("cg", "prcg"))


def _two() -> dict[tuple[str, str], dict[str, float]]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    for line in json_record(PROCESSES_TWO)["derived"]["iterations"]:
        one = found.setdefault((line["matrix"], line["method"]), {})
        one[line["contender"]] = line["seconds_per_iteration"]["median"]
    return found


def processes_two() -> str:
    """Return one process, processes, nodes of one GPU, and sums by NVSHMEM; two GPUs."""
    rows = [
        [
            *(matrix(spec), f"`{method}`", micro(t["one process"]), micro(t["processes"])),
            *(micro(t["library"]), f"{t['library'] / t['processes']:.2f}", micro(t["nodes"])),
        ]
        for (spec, method), t in _two().items()
    ]
    heads = ["matrix", "method", "one process, µs", "a process for each GPU, µs"]
    heads += ["sums by NVSHMEM, µs", "ratio", "two nodes of one GPU, µs"]
    return markdown(heads, rows)


def library_ratios() -> list[float]:
    """Return how much longer iterations on poisson2d take with NVSHMEM's sums: cg, prcg."""
    found = {method: t for (spec, method), t in _two().items() if "poisson2d" in spec}
    return [found[m]["library"] / found[m]["processes"] for m in ("cg", "prcg")]


def first_iteration() -> float:
    """Return the seconds from the command to the first iteration of two processes."""
    rounds: list[dict[str, Any]] = json_record(PROCESSES_TWO)["rounds"]
    those = [r["start"]["until first iteration"] for r in rounds if r["contender"] == "processes"]
    return float(statistics.median(those))


@dataclass(frozen=True)
class Billion:
    """poisson1d with 10⁹ rows: seconds, and shares of the copy rate by three counts of bytes."""

    setup: float
    iteration: float
    by_cg: float  # as Trotter et al. count an iteration of CG
    by_method: float  # the same rule for the method that ran, which has more dot products
    must: float  # those that must move


def billion() -> Billion:
    """Return what poisson1d with 10⁹ rows takes on eight GPUs."""
    run = json_record(PROCESSES_EIGHT)["poisson1d_1e9"]
    rows, seconds = 10**9, run["timings"]["per_iteration"]
    problem = work.Problem(rows, 3 * rows - 2)
    counted = [work.operations(m, 10**6).bytes(problem) / 1e6 for m in ("cg", run["method"])]
    must = 136.0 * rows  # matrix in CSR, 10 passes over vectors, Jacobi
    rate = copy_rate(EIGHT) * 8
    shares = [count / seconds / rate for count in (*counted, must)]
    return Billion(run["timings"]["setup"], seconds, *shares)


PARTS = {
    "check": ("setup_check",),
    "partition and order": ("setup_partition",),
    "plan and layout": ("setup_system_plan", "setup_system_layout"),
    "upload": ("setup_system_upload",),
}


def setup() -> str:
    """Return seconds of set-up, of its parts, and of an update; one GPU."""
    rows = []
    for system in json_record(SETUP)["systems"]:
        runs = system["runs"]
        entry = entry_of(f"gen:{system['matrix']}")
        if entry is not None:
            name = entry.name
        else:
            name = matrix(system["matrix"]) if "poisson" in system["matrix"] else "flange_hex"
        median = {
            k: statistics.median(r[k] for r in runs) for k in ("setup", "update", "iteration")
        }
        row = [name, millions(system["nonzeros"]), f"{median['setup']:.3f}"]
        for names in PARTS.values():
            value = statistics.median(sum(r["timings"].get(n, 0.0) for n in names) for r in runs)
            row.append(f"{value:.3f}")
        row += [f"{median['setup'] / median['iteration']:.0f}", f"{median['update']:.3f}"]
        rows.append([*row, f"{median['update'] / median['iteration']:.0f}"])
    heads = ["matrix", "nonzeros", "set-up, s", *PARTS, "in iterations", "update, s"]
    return markdown([*heads, "in iterations"], rows)


def setup_iterations() -> tuple[float, float]:
    """Return the least and the most iterations that a set-up takes as long as."""
    found = []
    for system in json_record(SETUP)["systems"]:
        runs = system["runs"]
        times = [statistics.median(r[k] for r in runs) for k in ("setup", "iteration")]
        found.append(times[0] / times[1])
    return min(found), max(found)


def _range(found: list[float]) -> str:
    return f"{statistics.median(found):.2f} ({min(found):.2f}–{max(found):.2f})"


def _paired(name: str, what: str, one: str, other: str) -> dict[str, list[float]]:
    """Return the ratios of two contenders, round by round, of each case."""
    return {
        case: [a / b for a, b in zip(of[one], of[other], strict=True)]
        for case, of in values(name, what).items()
    }


def over_scipy(name: str, method: str) -> dict[str, list[float]]:
    """Return the time of whole calls over SciPy's, round by round, of each large system."""
    return _paired(name, "seconds", method, "scipy")


def cpu_large() -> str:
    """Return the CPU engine against SciPy and against a triad, `prcg`."""
    shares, kernel = _paired(CPU, "GB/s", "prcg", "triad"), medians(CPU, "kernel")
    rows, calls = [], medians(CPU)
    for case, ratios in over_scipy(CPU, "prcg").items():
        row = [case, millions(problems(CPU)[case]["rows"]), f"{calls[case]['scipy'] * 1e3:.1f}"]
        row.append(f"{kernel[case]['prcg'] * 1e3:.2f}")
        rows.append([*row, _range(ratios), _range(shares[case])])
    heads = ["matrix", "rows", "SciPy, ms", "cpufree, ms", "ratio of whole calls"]
    return markdown([*heads, "share of the triad"], rows)


def cpu_small() -> str:
    """Return the range of ratios of whole calls on small systems."""
    ratios = sorted(
        s["derived"]["ratio_to_scipy"]["median"]
        for s in json_record(CPU)["small"]
        if "derived" in s
    )
    slower = [r for r in ratios if r > 1]
    return (
        f"On {len(ratios)} small systems (up to 10 000 rows, whole calls) the ratio is "
        f"{ratios[0]:.2f} to {ratios[-1]:.2f}; {len(slower)} of them, which converge in few "
        "iterations, take longer than with SciPy, since the checks of the input outweigh the solve."
    )
