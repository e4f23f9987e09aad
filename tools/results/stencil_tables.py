"""Tables about iterations on grids, from records of `cpufree bench stencil` and `run_stencils`."""

from __future__ import annotations

import re
import statistics

from cpufree.bench.core.entry import OURS
from cpufree.bench.report.tables import micro
from cpufree.bench.stencil.plan import Group
from cpufree.bench.stencil.results import StencilResults, StencilSeries, baseline, host_driven
from tools.results.records import json_lines, markdown, stencil_record, table_rows

ONE = "stencil-baselines-1x-2026-11-23.jsonl"
ONE_DOUBLE = "stencil-baselines-1x-double-2026-11-23.jsonl"
TWO = "stencil-baselines-2x-2026-11-23.jsonl"
TWO_3D = "stencil-baselines-3d-2x-2026-11-22.jsonl"
EIGHT = "stencil-baselines-8x-2026-11-22.jsonl"
SOAK = "stencil-soak-2x-2026-11-22.jsonl"
WAYS_ONE, WAYS_FOUR = "stencils-1x-2026-11-22.csv", "stencils-4x-2026-11-22.csv"
BASELINES = ("copy", "overlap", "p2p", "nvshmem", "nccl", "nccl_graph", "flags_graph")


def grid(case: str) -> str:
    """Return the name of a grid as the page writes it: 2048² per GPU, 256³ in all."""
    shape, _, per = case.partition(" per ")
    sides = shape.split("x")
    power = {2: "²", 3: "³"}[len(sides)]
    text = f"{sides[0]}{power}" if len(set(sides)) == 1 else "×".join(sides)
    return f"{text} per GPU" if per else f"{text} in all"


def _size(group: Group) -> tuple[int, int, int]:
    sides = [int(n) for n in group.case.split(" ")[0].split("x")]
    return len(sides), sides[0], group.pes


def groups(name: str, precision: str) -> list[Group]:
    """Return the grids of a record in one precision, by dimension, size and number of GPUs."""
    results = stencil_record(name)
    those = [g for g in results.groups() if g.precision == precision and results.valid(g)]
    return sorted(those, key=_size)


def _cell(results: StencilResults, group: Group, name: str) -> str:
    series = results.find(group, name, "full")
    return micro(series.median) if series else "–"


def speedups(name: str, group: Group) -> tuple[float | None, float | None]:
    """Return the speed-ups over the best host-driven baseline, and over the best of all."""
    results = stencil_record(name)
    found = [results.against(group, those) for those in (host_driven, baseline)]
    return tuple(v.speedup if v else None for v in found)  # type: ignore[return-value]


def find(name: str, case: str, pes: int, precision: str = "single") -> Group:
    """Return one grid of a record."""
    return next(g for g in groups(name, precision) if (g.case, g.pes) == (case, pes))


def time(name: str, group: Group, variant: str = "full") -> float:
    """Return the seconds of an iteration of cpufree."""
    found = stencil_record(name).find(group, OURS, variant)
    assert found
    return found.median


def against_baselines(names: list[str], precision: str = "single") -> str:
    """Return a row for each grid and number of GPUs: cpufree, all baselines, speed-ups."""
    places: dict[Group, str] = {}
    for name in names:
        for group in groups(name, precision):
            places.setdefault(group, name)  # of two records the first one counts
    rows = []
    for group, name in sorted(places.items(), key=lambda place: _size(place[0])):
        results = stencil_record(name)
        cells = [_cell(results, group, one) for one in (OURS, *BASELINES)]
        gains = [f"{gain:.2f}×" if gain else "–" for gain in speedups(name, group)]
        rows.append([grid(group.case), str(group.pes), *cells, *gains])
    heads = ["grid", "GPUs", "cpufree", *(f"`{name}`" for name in BASELINES)]
    return markdown([*heads, "over best host-driven", "over all"], rows)


def _alone(results: StencilResults, group: Group) -> StencilSeries:
    those = [s for s in results.valid(group, "no-compute") if host_driven(s)]
    return min(those, key=lambda s: s.median)


def communication() -> str:
    """Return what communication takes by itself, and how much of it is hidden; two GPUs."""
    results, rows = stencil_record(TWO), []
    for group in groups(TWO, "single"):
        mine = [results.find(group, OURS, v) for v in ("full", "no-comm", "no-compute")]
        saved, hidden = results.saved(group, OURS), results.overlap(group, OURS)
        assert saved is not None and hidden is not None
        theirs = _alone(results, group)
        cells = [micro(s.median) for s in mine if s]
        cells.append(f"{micro(theirs.median)} `{theirs.name}`")
        rows.append([grid(group.case), *cells, f"{saved:.0%}", f"{hidden:.0%}"])
    heads = ["grid", "full", "computing alone", "communication alone"]
    heads += ["the best host-driven baseline's", "less by", "hidden"]
    return markdown(heads, rows)


def saved(case: str) -> float:
    """Return by how much communication alone is less than the best baseline's; two GPUs."""
    found = stencil_record(TWO).saved(find(TWO, case, 2), OURS)
    assert found is not None
    return found


def _name(row: dict[str, str]) -> str:
    text = row["grid"].split(" ", 1)[1].replace("each", "per GPU")
    return text.replace("^2", "²").replace("^3", "³").replace("x", "×")


def ways(name: str, dimensions: str) -> str:
    """Return the fastest way to hold each grid in single precision, by number of GPUs."""
    best: dict[str, dict[str, tuple[float, str]]] = {}
    for row in table_rows(name):
        if row["type"] != "float" or "no computing" in row["grid"]:
            continue
        if row.get("roles", "tiles") != "tiles":  # specialized blocks, which jacobi does not choose
            continue
        if not row["grid"].startswith(dimensions) or not re.fullmatch(NUMBER, row["microseconds"]):
            continue
        one = (float(row["microseconds"]), WORDS[row["sweep"]])
        cell = best.setdefault(_name(row), {})
        cell[row["gpus"]] = min(cell.get(row["gpus"], one), one)
    gpus = sorted({n for cell in best.values() for n in cell}, key=int)
    rows = [
        [where, *(f"{micro(c[n][0] / 1e6)} ({c[n][1]})" if n in c else "–" for n in gpus)]
        for where, c in best.items()
    ]
    return markdown(["grid", *(f"{n} GPU{'s' if n != '1' else ''}, µs" for n in gpus)], rows)


NUMBER = r"[0-9.]+"
# What records call the ways to hold a grid ("bricks" and "streams" until November 2026), and what
# the documentation calls them.
WORDS = {
    "registers": "register tiles",
    "registers_3d": "register tiles",
    "bricks": "register tiles",
    "time_tiles": "time tiles",
    "streams": "time tiles",
    "wavefront": "wavefront",
}


def weak_scaling() -> list[tuple[str, str, float, float]]:
    """Return grid, type, and microseconds of an iteration on one GPU and on two."""
    lines = [line for line in json_lines(SOAK) if "weak" in line]
    found: dict[tuple[str, str], dict[int, float]] = {}
    for line in lines:
        of = found.setdefault((line["weak"], line["dtype"]), {})
        of[line["pes"]] = statistics.median(line["us"])
    return [(case, dtype, t[1], t[2]) for (case, dtype), t in found.items()]


def weak_scaling_table() -> str:
    """Return how an iteration lengthens from one GPU to two with the grid growing along."""
    rows = [
        [
            f"{case.replace('^3', '³')} per GPU",
            dtype,
            f"{one:.1f}",
            f"{two:.1f}",
            f"{one / two:.1%}",
        ]
        for case, dtype, one, two in weak_scaling()
    ]
    return markdown(["grid", "type", "1 GPU, µs", "2 GPUs, µs", "efficiency"], rows)


def soaks() -> list[str]:
    """Return what long runs gave: whether GPUs and the CPU engine end with the same bits."""
    found: dict[tuple[str, int], set[str]] = {}
    for line in json_lines(SOAK):
        if "soak" in line:
            key = ("×".join(map(str, line["soak"])), line["iterations"])
            found.setdefault(key, set()).add(line["sha256"])
    return [
        f"{steps:,} iterations of {shape}: one GPU, two GPUs and the CPU engine end with "
        f"{'the same bits' if len(sums) == 1 else '**different bits**'}."
        for (shape, steps), sums in found.items()
    ]
