"""The constants of iterations on grids (docs/model.md), from records of `cpufree bench stencil`.

    cpufree bench stencil --grid 96^2,640x480,1792x1536,64^3,128x112x96,208x192x160 --pes 1,2 \\
        --contenders cpufree --precision single,double --out small.jsonl
    python bench/machine/stencil_constants.py small.jsonl large.jsonl

Prints the entries of a machine file. From the small grids: exchanges on chip, where the line
through two grids on one GPU begins (the mean of both precisions), what an exchange between GPUs
takes more, the rate of points in two dimensions, and the ratio of the rates of both precisions in
three. From the large ones, of one GPU in single precision: the rate of points in three dimensions,
and of passes over values in memory the line through two grids, of which bytes take the slope.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Annotated

import typer

from cpufree.model.records import read_record
from cpufree.model.stencils import LAYERS, PRECISIONS, StencilFacts

Grid = tuple[StencilFacts, float]


class Grids:
    """The grids of a record, by what they are."""

    def __init__(self, record: Path) -> None:
        found = read_record(record)
        self._all = [(x.facts, x.seconds) for x in found if isinstance(x.facts, StencilFacts)]

    def on_one(self, dims: int, precision: str, on_chip: bool) -> list[Grid]:
        """Return those on one GPU, the smallest first."""
        found = [
            one
            for one in self._all
            if one[0].pes == 1
            and (len(one[0].shape), PRECISIONS[one[0].value_bytes], one[0].on_chip)
            == (dims, precision, on_chip)
        ]
        return sorted(found, key=lambda one: one[0].points)

    def between(self) -> float:
        """Return by how much the smallest grid takes longer on two GPUs than on one."""
        size = min(facts.points * facts.pes for facts, _ in self._all)
        seconds = {
            facts.pes: taken
            for facts, taken in self._all
            if facts.points * facts.pes == size and facts.value_bytes == 4
        }
        return seconds[2] - seconds[1]


def line(small: tuple[float, float], large: tuple[float, float]) -> tuple[float, float]:
    """Return slope and beginning of the line through two points.

    >>> line((1.0, 3.0), (3.0, 7.0))
    (2.0, 1.0)
    """
    slope = (large[1] - small[1]) / (large[0] - small[0])
    return slope, small[1] - slope * small[0]


def chip_exchange(grids: Grids, dims: int) -> float:
    """Return the seconds of an iteration on chip without points."""
    ends = []
    for precision in PRECISIONS.values():
        small, *_, large = grids.on_one(dims, precision, True)
        ends.append(line((small[0].points, small[1]), (large[0].points, large[1]))[1])
    return statistics.fmean(ends)


def point_rate(grids: Grids, dims: int, precision: str, exchange: float) -> float:
    """Return the points a second of the largest grid on chip."""
    facts, seconds = grids.on_one(dims, precision, True)[-1]
    return facts.points / (seconds - exchange)


def main(
    small: Annotated[Path, typer.Argument(help="The record of small grids.")],
    large: Annotated[Path, typer.Argument(help="The record of large grids.")],
) -> None:
    """Print the entries that follow from two records, as JSON."""
    few, many = Grids(small), Grids(large)
    exchange = {dims: chip_exchange(few, dims) for dims in LAYERS}
    of = {
        (dims, precision): point_rate(few, dims, precision, exchange[dims])
        for dims in LAYERS
        for precision in PRECISIONS.values()
    }
    ratio = of[3, "double"] / of[3, "single"]
    of[3, "single"] = point_rate(many, 3, "single", exchange[3])
    of[3, "double"] = ratio * of[3, "single"]
    entries: dict[str, dict[int, float]] = {
        "stencil.exchange_between": {2: few.between()},
        "stencil.chip_exchange": exchange,
        "stencil.chip_points_single": {dims: of[dims, "single"] for dims in LAYERS},
        "stencil.chip_points_double": {dims: of[dims, "double"] for dims in LAYERS},
    }
    for dims, layers in LAYERS.items():
        first, *_, last = many.on_one(dims, "single", False)
        a, b = ((8.0 * facts.points, layers * seconds) for facts, seconds in (first, last))
        slope, beginning = line(a, b)
        entries.setdefault("stencil.memory_rate", {})[dims] = 1.0 / slope
        entries.setdefault("stencil.memory_exchange", {})[dims] = beginning
    rounded = {
        name: {str(key): float(f"{value:.3g}") for key, value in table.items()}
        for name, table in entries.items()
    }
    print(json.dumps(rounded, indent=2))


if __name__ == "__main__":
    typer.run(main)
