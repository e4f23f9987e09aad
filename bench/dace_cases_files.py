"""The names of files of bench/dace_cases.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def points_of(file: Path) -> tuple[str, int, Any]:
    """Return the program, the ranks and the points of each that a file's name says."""
    name, ranks, text = file.stem.split("-")
    points = tuple(map(int, text.split("x")))
    return name, int(ranks), points if len(points) > 1 else points[0]
