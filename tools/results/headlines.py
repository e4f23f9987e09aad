"""The table of the README: what a user gains, against what they would otherwise take."""

from __future__ import annotations

from statistics import median

from cpufree.bench.core.noise import geometric_mean
from cpufree.bench.time.tables import collect
from tools.results import other_tables as others
from tools.results import programs
from tools.results import solver_tables as cg
from tools.results.page_tables import markdown
from tools.results.records import json_lines, origin

CPU = "cpu-2026-11-21.json"
SCRIPT = "time-2x-2026-11-26/text.jsonl"
GPU_PROGRAMS = "programs-2x-2026-11-26-later.jsonl", "programs-4x-2026-11-26.jsonl"


def table() -> str:
    """Return the table of headlines."""
    head = ("what", "faster than", "by", "where", "command")
    return markdown(head, [_on_cpu(), _to_the_answer(), _iteration(), _programs()])


def _on_cpu() -> tuple[str, ...]:
    found = [1 / median(ratios) for ratios in others.over_scipy(CPU, "prcg").values()]
    return (
        f"A solve of 100 iterations with Jacobi, {len(found)} matrices of 0.4 to 1.3 million rows",
        "SciPy's `cg` with Jacobi",
        f"{geometric_mean(found):.1f}× ({min(found):.1f} to {max(found):.1f})",
        "2 CPU cores",
        f"`python bench/cpu.py`, [record](bench/results/{CPU})",
    )


def _to_the_answer() -> tuple[str, ...]:
    found = collect(json_lines(SCRIPT))
    times = {
        contender: median(float(one["seconds"]) for one in lines)
        for (_, kind, contender), lines in found.items()
        if kind == "script"
    }
    ours, theirs = times["cpufree"], times["cupy"]
    return (
        f"Time to the answer, {ours:.2f} s: a whole script that reads 8 million rows from a Matrix "
        "Market file and solves to 1e-8 with Jacobi",
        "SciPy's reader and CuPy's `cg`",
        f"{theirs / ours:.1f}×",
        "1 H100",
        f"`cpufree bench time`, [record](bench/results/{SCRIPT})",
    )


def _iteration() -> tuple[str, ...]:
    name = cg.JITTERED_FOUR
    gain = cg.mean(name, cg.any_baseline, None)
    assert gain is not None
    return (
        f"An iteration of CG without preconditioner, {len(cg.groups(name))} look-alikes of real "
        "matrices",
        "the best of NCCL in CUDA graphs and loops in CUDA graphs",
        f"{gain:.2f}×",
        origin(name).machine.partition(",")[0].replace(" × NVIDIA", ""),
        f"`cpufree bench cg suite:paper18 --pes 4`, [record](bench/results/{name})",
    )


def _programs() -> tuple[str, ...]:
    record = GPU_PROGRAMS[0]
    large = programs.programs_of(programs.read(record), programs.CLASSES["large"])
    ratios = [ratio for one in large if (ratio := programs.over_rivals(one))]
    return (
        f"A call of a NumPy-style program on a grid, {len(ratios)} programs at 4096² and 384³",
        "the best of CuPy and JAX",
        f"{geometric_mean(ratios):.2f}× ({min(ratios):.2f} at worst)",
        f"1 {programs.gpus_of(record).rpartition(' ')[2]}",
        f"`python bench/programs.py`, [record](bench/results/{record})",
    )
