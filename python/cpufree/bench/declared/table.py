"""The table of a declared benchmark: times, and how each contender compares with ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from cpufree.bench.core.noise import Spread, compare, geometric_mean
from cpufree.bench.core.records import Line
from cpufree.bench.declared.declaration import UNITS, Bench
from cpufree.bench.declared.measure import measurements

Row = tuple[str, ...]
TIMES = ("kernel", "set_up", "setup_seconds")
"""What calls return that is in seconds, and shown in the unit of the benchmark."""


def heads(bench: Bench) -> Row:
    """Return the heads of the columns."""
    beside = (f"over {bench.ours}", f"{bench.ours} is") if bench.ours else ()
    shown = (
        f"{key.removesuffix('_seconds')}, {bench.unit}" if key in TIMES else key
        for key in bench.shown
    )
    return ("case", "contender", bench.unit, "quartiles", *shown, *beside)


def rows(bench: Bench, lines: Sequence[Line]) -> list[Row]:
    """Return a row for each case and contender: the median, the quartiles, and the verdict."""
    scale, found = UNITS[bench.unit], []
    for case, of in measurements(lines):
        ours = [line[bench.value] for line in of.get(bench.ours or "", ())]
        for name, measured in of.items():
            seconds = [line[bench.value] for line in measured]
            s = Spread.of(seconds)
            cells = [case, name, f"{s.median * scale:.4g}"]
            cells.append(f"{s.low * scale:.4g}–{s.high * scale:.4g}")
            cells += [_shown(measured, key, scale) for key in bench.shown]
            if ours and name not in (bench.ours, *bench.apart):
                cells += [f"{s.median / median(ours):.2f}", compare(ours, seconds)]
            elif bench.ours:
                cells += ["", ""]
            found.append(tuple(cells))
    return found


def _shown(measured: Sequence[Line], key: str, scale: float) -> str:
    values = [line[key] for line in measured if line.get(key) is not None]
    if key in TIMES:
        values = [one * scale for one in values]
    if values and all(isinstance(one, (int, float)) for one in values):
        return f"{median(values):.4g}"
    return ", ".join(dict.fromkeys(map(str, values)))


def means(bench: Bench, lines: Sequence[Line]) -> Iterator[str]:
    """Yield, for each of the others, the geometric mean of its times over ours."""
    ratios: dict[str, list[float]] = {}
    for _, of in measurements(lines):
        ours = [line[bench.value] for line in of.get(bench.ours or "", ())]
        for name, measured in of.items():
            if ours and name not in (bench.ours, *bench.apart):
                ratio = median(line[bench.value] for line in measured) / median(ours)
                ratios.setdefault(name, []).append(ratio)
    for name, found in ratios.items():
        if len(found) > 1:
            yield (
                f"{name} over {bench.ours}: {geometric_mean(found):.2f} (geometric mean of "
                f"{len(found)}), {min(found):.2f} to {max(found):.2f}"
            )
