"""The tables of docs/dace.md from records of bench/gpu_dace.sh.

Usage: python bench/dace_table.py RECORD.jsonl ...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COLUMNS = {
    "ours": "us",
    "without roles": "without_roles_us",
    "by host, copies": "discrete_copies_us",
    "by host, stores": "discrete_stores_us",
    "DaCe's GPU code": "dace_us",
    "MPI by hand": "mpi_us",
    "`cpufree.program`": "own_us",
    "by host": "hosted_us",
}


def records(files: list[Path]) -> list[dict[str, Any]]:
    """Return the lines of all files."""
    return [json.loads(x) for file in files for x in file.read_text().splitlines() if x]


def cell(value: float | None) -> str:
    """Return microseconds with three digits."""
    return "–" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def cases(lines: list[dict[str, Any]]) -> list[str]:
    """Return the table of programs: what took how long, of each case."""
    found = {r["case"]: dict(r) for r in lines if r["kind"] == "dace"}
    for r in lines:
        key = {"dace_gpu": "dace_us", "mpi": "mpi_us"}.get(r["kind"])
        if key and r["case"] in found:
            found[r["case"]][key] = r["us"]
    columns = {n: k for n, k in COLUMNS.items() if any(r.get(k) for r in found.values())}
    table = [f"| case | ranks on GPUs | {' | '.join(columns)} |"]
    table.append("| --- " * (2 + len(columns)) + "|")
    for case in sorted(found):
        r = found[case]
        name, ranks, points = case.split("-")
        cells = " | ".join(cell(r.get(key)) for key in columns.values())
        size = points.replace("x", " × ")
        table.append(f"| {name}, {size} each | {ranks} on {len(set(r['gpus']))} | {cells} |")
    return table


def puts(lines: list[dict[str, Any]]) -> list[str]:
    """Return the table of ways to put: an exchange, by points of a column."""
    found: dict[int, dict[str, float]] = {}
    for r in lines:
        if r["kind"] == "puts":
            points = int(r["case"].split("-")[2].split("x")[0])
            found.setdefault(points, {})[r["puts"]] = r["us"]
    if not found:
        return []
    ways = list(next(iter(found.values())))
    table = [f"| points | {' | '.join(ways)} |", "| --- " * (1 + len(ways)) + "|"]
    for points in sorted(found):
        cells = " | ".join(cell(found[points].get(w)) for w in ways)
        table.append(f"| {points} | {cells} |")
    return table


def main() -> None:
    """Print the tables."""
    lines = records([Path(x) for x in sys.argv[1:]])
    print("\n".join([*cases(lines), "", *puts(lines)]))


if __name__ == "__main__":
    main()
