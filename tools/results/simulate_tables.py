"""The tables of docs/simulate.md: scaling of Trotter et al., and records of this project."""

from __future__ import annotations

from functools import cache

from cpufree.machine.clusters import load_cluster
from cpufree.simulate.measured import compare, errors_of, read_cases
from cpufree.simulate.scaling import EXPERIMENTS, STYLES, TOLERANCE, Curve, Experiment, best, curves
from tools.results.page_tables import markdown
from tools.results.records import ROOT


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


@cache
def tables() -> dict[str, str]:
    """Return all tables by name."""
    return {"scaling": scaling(), "measured": measured()}
