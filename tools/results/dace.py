"""The tables of docs/dace.md, from records of bench/gpu_dace.py."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from cpufree.bench.declared.measure import measurements
from tools.results.records import json_lines

RECORD = "dace-4x-2026-11-26.jsonl"
# What records of the time before there were declarations call the contenders.
KEYS = {
    "ours": "us",
    "without roles": "without_roles_us",
    "by host, copies": "discrete_copies_us",
    "by host, stores": "discrete_stores_us",
    "DaCe's GPU code": "dace_us",
    "MPI by hand": "mpi_us",
    "`cpufree.program`": "own_us",
    "by host": "hosted_us",
}
Times = dict[str, dict[str, float]]
"""Microseconds by case and contender."""


def read(name: str) -> tuple[Times, dict[str, int]]:
    """Return the times of a record, and how many GPUs each case ran on."""
    lines = json_lines(name)
    places = {x["case"]: len(set(x["places"])) for x in lines if x["kind"] == "problem"}
    found: Times = {}
    for case, of in measurements(lines):
        found[case] = {n: 1e6 * median(x["seconds"] for x in those) for n, those in of.items()}
    for line in lines:
        if line["kind"] == "dace":
            found[line["case"]] = {n: line[key] for n, key in KEYS.items() if line.get(key)}
            places[line["case"]] = len(set(line["gpus"]))
    for line in lines:
        other = {"dace_gpu": "DaCe's GPU code", "mpi": "MPI by hand", "puts": line.get("puts")}
        if (who := other.get(line["kind"])) and (who == line.get("puts") or line["case"] in found):
            found.setdefault(line["case"], {})[who] = line["us"]
    return found, places


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines) + "\n"


def programs(name: str = RECORD) -> str:
    """Return what a step of each program takes, by contender."""
    found, places = read(name)
    cases = {case: times for case, times in found.items() if not case.startswith("halo")}
    who = [one for one in KEYS if any(one in times for times in cases.values())]
    rows = []
    for case in sorted(cases):
        program, ranks, points = case.split("-")
        cells = [f"{program}, {points.replace('x', ' × ')} each", f"{ranks} on {places[case]}"]
        rows.append([*cells, *_cells(cases[case], who)])
    return _table(["case", "ranks on GPUs", *who], rows)


def puts(name: str = RECORD) -> str:
    """Return what an exchange of columns takes, by points and by who puts."""
    found, _ = read(name)
    cases = {
        int(case.split("-")[2].split("x")[0]): times
        for case, times in found.items()
        if case.startswith("halo")
    }
    who = list(next(iter(cases.values())))
    return _table(["points", *who], [[str(n), *_cells(cases[n], who)] for n in sorted(cases)])


def _cells(times: Mapping[str, float], who: list[str]) -> list[str]:
    return [_cell(times.get(one)) for one in who]
