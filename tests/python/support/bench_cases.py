"""What tests of `cpufree bench cg` and of its reports share: small cases, lines of records."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paths import SUPPORT

from cpufree.bench.cg import tables
from cpufree.bench.cg.configuration import Group

FAKE = SUPPORT / "fake_worker.py"
SMALL = "gen:poisson2d?nx=12,ny=10"
Lines = list[dict[str, Any]]
Run = Callable[..., tuple[int, Lines]]
FILE = SUPPORT / "bench_synthetic.jsonl"
FOUR = Group("small", "double", "none", 4)
ONE = Group("small", "double", "none", 1)


def read(path: Path) -> Lines:
    """Return the lines of a file of results."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def of_kind(lines: Lines, kind: str) -> Lines:
    """Return the lines of a kind."""
    return [line for line in lines if line["kind"] == kind]


def fake(kind: str, *more: object) -> str:
    """Return the --peer of a fake worker."""
    return f"{kind}={{python}} {FAKE} {' '.join([kind, *map(str, more)])}"


def median_of(lines: Lines, case: str, pes: int, contender: str, method: str) -> float:
    """Return the median seconds per iteration, straight from the lines."""
    key = {"kind": "measurement", "case": case, "pes": pes, "contender": contender}
    key |= {"method": method, "variant": "full"}
    found = [x for x in lines if key.items() <= x.items()]
    assert len(found) == 5
    return statistics.median(x["seconds"] / x["iterations"] for x in found)


def cells(table: tables.Table, *first: str) -> dict[str, str]:
    """Return the row that begins with these cells, by head."""
    (row,) = (row for row in table.rows if row[: len(first)] == first)
    return dict(zip(table.heads, row, strict=True))
