"""The tables of docs/simulate.md: scaling of Trotter et al., and records of this project."""

from __future__ import annotations

from functools import cache

from cpufree.machine.clusters import load_cluster
from cpufree.simulate.measured import compare, errors_of, read_cases
from cpufree.simulate.scaling import EXPERIMENTS, STYLES, TOLERANCE, Curve, Experiment, best, curves
from cpufree.simulate.sweep import Coarse, Problem
from tools.results.page_tables import markdown
from tools.results.records import ROOT, json_record

RINGS = {
    "2 H100": ("h100", 2, "triggered-2x-2026-11-25-allreduce.json"),
    "4 H200": ("h200", 4, "triggered-4x-2026-11-26-allreduce.json"),
}
RING_WAYS = {"ring": "native", "stream": "nccl"}
"""The beginning of a series' name -> the way that it is simulated with."""


def percent(share: float) -> str:
    """Return a share as a whole number of percent."""
    return f"{100 * share:.0f} %"


def _of(found: list[Curve], method: str, way: str) -> str:
    there = [one for one in found if (one.method, one.way) == (method, way)]
    return percent(there[0].efficiency[-1]) if there else "–"


def scaling() -> str:
    """Return the efficiencies on most GPUs, printed and simulated."""

    def row(one: Experiment) -> tuple[str, ...]:
        found = curves(one, tuple(one.bandwidth))
        chosen = best(found)
        within = abs(chosen.efficiency[-1] - one.printed) <= TOLERANCE
        return (
            f"{one.pes[-1]} GPUs, {one.machine}",
            one.mesh.name,
            percent(one.printed),
            f"{percent(chosen.efficiency[-1])} ({chosen.method}, {STYLES[chosen.way]}), "
            + ("met" if within else "missed"),
            *(_of(found, "cg", way) for way in ("hdn", "nccl", "proxy")),
            _of(found, "pipecg", "hdn"),
        )

    head = ("cluster", "matrix", "printed", "fastest", "`cg`, MPI", "`cg`, NCCL",
            "`cg`, NVSHMEM (IBRC)", "`pipecg`, MPI")  # fmt: skip
    return markdown(head, [row(one) for one in EXPERIMENTS])


def measured() -> str:
    """Return the errors of simulated records."""
    found = errors_of(compare(load_cluster("h200"), read_cases(ROOT / "bench/results")))
    rows = [
        (one.name, f"{one.count}", f"{100 * one.median:.1f} %", f"{100 * one.mean:+.1f} %",
         percent(one.largest))
        for one in found
    ]  # fmt: skip
    head = ("contender", "times", "median error", "mean, with sign", "largest")
    return markdown(head, [tuple(cell.replace("-", "−") for cell in row) for row in rows])


def all_reduces() -> str:
    """Return all-reduces around a ring, simulated over measured, by vector and contender."""
    ratios: dict[int, dict[str, float]] = {}
    for gpus, (name, pes, record) in RINGS.items():
        cluster = load_cluster(name)
        for one in json_record(record)["series"]:
            way = next((w for start, w in RING_WAYS.items() if one["name"].startswith(start)), "")
            if way:
                problem = Problem("allreduce", bytes=(one["size"],))
                found = problem.seconds(cluster, way, pes)[0] / min(one["samples"])
                ratios.setdefault(one["size"], {})[f"{gpus}, {way}"] = found
    columns = [f"{gpus}, {way}" for gpus in RINGS for way in RING_WAYS.values()]
    rows = [
        (f"{size:,}", *(f"{of[c]:.2f}" if c in of else "–" for c in columns))
        for size, of in sorted(ratios.items())
    ]
    return markdown(("bytes", *columns), rows)


def shared_cards() -> str:
    """Return what 64 GPUs take whose nodes have fewer network cards, in microseconds."""
    mesh = Coarse(1e7, 7e7, 3)
    problems = {
        "`cg`, 10 M rows": Problem("cg", coarse=mesh),
        "`pipecg`": Problem("pipecg", coarse=mesh),
        "Jacobi, 16 384²": Problem("jacobi", points=16384),
        "all-reduce, 8 MB": Problem("allreduce", bytes=(8e6,)),
    }
    cluster = load_cluster("h200")
    rows = [
        (str(cards), *(
            f"{1e6 * p.seconds(cluster.with_values(node__nics=cards), way, 64)[0]:.1f}"
            for p in problems.values() for way in ("native", "nccl")
        ))
        for cards in (8, 4, 2, 1)
    ]  # fmt: skip
    heads = [f"{name}, `{way}`" for name in problems for way in ("native", "nccl")]
    return markdown(("cards of 8 GPUs", *heads), rows)


@cache
def tables() -> dict[str, str]:
    """Return all tables by name."""
    return {
        **{"scaling": scaling(), "measured": measured()},
        **{"all-reduces": all_reduces(), "shared cards": shared_cards()},
    }
