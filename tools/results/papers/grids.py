"""Stencils and DaCe's programs: what Baydamirli 2023 reports, beside records."""

from __future__ import annotations

from cpufree.bench.core.entry import OURS
from cpufree.bench.stencil.results import host_driven
from tools.results import dace
from tools.results import stencil_tables as grids
from tools.results.records import markdown, medians, stencil_record

# Pairs of cases with the same points for each GPU: what grows, one GPU, several.
WEAK = (
    ("512 × 1024 each, two GPUs", "1-512x1024", "2-512x1024"),
    ("1024 × 1024 each, four GPUs", "1-1024x1024", "4-1024x1024"),
)
WHO = ("ours", "`cpufree.program`", "DaCe's GPU code")


def less_than_baselines() -> str:
    """Return by how much iterations are shorter than baselines', and efficiency from one GPU."""
    alone = {
        group.case: grids.time(grids.ONE, group) for group in grids.groups(grids.ONE, "single")
    }
    rows = []
    for name in (grids.TWO, grids.EIGHT):
        results = stencil_record(name)
        for group in grids.groups(name, "single"):
            mine = grids.time(name, group)
            best = min(s.median for s in results.valid(group, "full") if host_driven(s))
            cells = [f"{1 - mine / best:.1%}"]
            for one in ("overlap", "nvshmem"):
                series = results.find(group, one, "full")
                cells.append(f"{1 - mine / series.median:.1%}" if series else "–")
            first = alone.get(group.case)
            cells.append(f"{first / mine:.0%}" if first else "–")
            rows.append([grids.grid(group.case), str(group.pes), *cells])
    heads = ["less than the best host-driven", "than `overlap`", "than `nvshmem`"]
    return markdown(["grid", "GPUs", *heads, "efficiency from one GPU"], rows)


def strong_3d() -> str:
    """Return 256³ in all on one and two GPUs: time, and what each further GPU saves."""
    results, rows = stencil_record(grids.TWO_3D), []
    both = [g for g in grids.groups(grids.TWO_3D, "single") if g.case == "256x256x256"]
    for who in (OURS, *grids.BASELINES):
        times = [found.median if (found := results.find(g, who, "full")) else None for g in both]
        if all(times):
            one, two = (1e6 * t for t in times if t)
            rows.append([f"`{who}`", f"{one:.1f}", f"{two:.1f}", f"{one / two / 2:.0%}"])
    return markdown(["256³ in all", "1 GPU, µs", "2 GPUs, µs", "efficiency"], rows)


def weak_2d() -> str:
    """Return how steps of DaCe's jacobi_2d lengthen with the GPUs, points for each GPU kept."""
    found, rows = medians(dace.RECORD), []
    for name, *cases in WEAK:
        for who in WHO:
            one, several = (found[f"jacobi_2d-{case}"].get(who) for case in cases)
            if one and several:
                cells = [f"{1e6 * one:.3g}", f"{1e6 * several:.3g}", f"{one / several:.0%}"]
                rows.append([name, who, *cells])
    return markdown(["points", "by", "1 GPU, µs", "several, µs", "efficiency"], rows)
