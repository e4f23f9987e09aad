"""Tables as heads and rows of text, and those that all reports have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cpufree.bench.core import noise
from cpufree.bench.core.plan import VARIANTS
from cpufree.bench.report.collected import AnyResults, Measured

NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """A table: its heads, and rows of as many cells."""

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def micro(seconds: float) -> str:
    """Return microseconds with three digits or more: 9.87, 98.7, 987, 9870."""
    value = seconds * 1e6
    if value < 1:
        return f"{value:.3g}"
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def milli(seconds: float) -> str:
    """Return milliseconds with three digits or more."""
    return micro(seconds / 1e3)


def spread_text(series: Measured) -> str:
    """Return median and quartiles of the time per iteration, in microseconds."""
    s = series.spread
    return f"{micro(s.median)} ({micro(s.low)}–{micro(s.high)})"


def against(series: Measured, best: Measured | None) -> str:
    """Return by how much a series is faster than the best one, and whether that is noise."""
    if best is None:
        return NOTHING
    if series is best:
        return "it is"
    speedup = best.median / series.median
    return f"{speedup:.2f}× {noise.compare(series.times, best.times)}"


def overheads(results: AnyResults, group: Any) -> Table | None:
    """Return what communication takes alone, and how much of it is hidden; None: not measured."""
    rows = []
    for name in results.names(group):
        found = [results.find(group, name, variant) for variant in VARIANTS]
        alone = next((series for series in found[1:] if series is not None), None)
        if alone is None:
            continue
        shares = [results.overlap(group, name), None]
        if not results.host_driven(alone):
            shares[1] = results.saved(group, name)
        texts = (NOTHING if share is None else f"{share:.0%}" for share in shares)
        rows.append((name, *(spread_text(s) if s else NOTHING for s in found), *texts))
    heads = ("contender", "full, µs", "communication alone, µs", "computing alone, µs")
    more = ("communication hidden", "communication less than best host-driven")
    return Table((*heads, *more), rows) if rows else None


def failures(results: AnyResults) -> Table:
    """Return what could not be measured, and why; a line for each reason."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for line in results.failures:
        what = " ".join(filter(None, (line["method"], line["variant"])))
        key = (line["contender"], what.removesuffix(" full"), " ".join(line["error"].split()))
        pes = "1 PE" if line["pes"] == 1 else f"{line['pes']} PEs"
        places.setdefault(key, []).append(f"{line['case']} ({pes})")
    rows = []
    for (who, what, why), where in places.items():
        some = ", ".join(where[:2]) + (f" and {len(where) - 2} more" if len(where) > 2 else "")
        rows.append(
            (who, what or "all", some, why if len(why) <= 300 else f"{why[:140]} … {why[-140:]}")
        )
    return Table(("contender", "what", "where", "why"), rows)
