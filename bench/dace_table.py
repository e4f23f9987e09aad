"""The table of docs/dace.md from records of bench/gpu_dace.sh.

Usage: python bench/dace_table.py gpu-dace.jsonl [gpu-dace-mpi.jsonl]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COLUMNS = ("us", "without_roles_us", "own_us", "hosted_us", "mpi_us")


def records(files: list[Path]) -> list[dict[str, Any]]:
    """Return the records of cases; what MPI takes is put to that of the same name."""
    lines = [json.loads(x) for file in files for x in file.read_text().splitlines()]
    mpi = {r["case"]: r["us"] for r in lines if r["kind"] == "mpi"}
    return [{**r, "mpi_us": mpi.get(r["case"])} for r in lines if r["kind"] == "dace"]


def cell(value: float | None) -> str:
    """Return microseconds with three digits."""
    return "–" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def main() -> None:
    """Print the table."""
    found = sorted(records([Path(x) for x in sys.argv[1:]]), key=lambda r: str(r["case"]))
    names = ["ours", "without roles", "`cpufree.program`", "host-driven", "MPI"]
    columns = list(COLUMNS if any(r["mpi_us"] for r in found) else COLUMNS[:-1])
    print(f"| case | ranks on GPUs | {' | '.join(names[: len(columns)])} |")
    print("| --- " * (2 + len(columns)) + "|")
    for r in found:
        name, ranks, points = r["case"].split("-")
        gpus = f"{ranks} on {len(set(r['gpus']))}"
        size = points.replace("x", " × ")
        cells = " | ".join(cell(r.get(column)) for column in columns)
        print(f"| {name}, {size} each | {gpus} | {cells} |")


if __name__ == "__main__":
    main()
