"""The tables of a report on stencils, as heads and rows of text."""

from __future__ import annotations

from cpufree.bench.core.lines import Header
from cpufree.bench.report.collected import Comparison
from cpufree.bench.report.tables import NOTHING, Table, against, micro, spread_text
from cpufree.bench.stencil.context import Context
from cpufree.bench.stencil.plan import Group, shape_text
from cpufree.bench.stencil.results import (
    Setting,
    StencilResults,
    StencilSeries,
    baseline,
    host_driven,
    weak,
)


def setting_text(setting: Setting) -> str:
    """Return a setting in words: single precision, periodic."""
    return f"{setting[0]} precision, {setting[1]}"


def case_text(case: str) -> str:
    """Return what is scaled: 512x512x512 (strong scaling)."""
    return f"{case} ({'weak' if weak(case) else 'strong'} scaling)"


def pes_text(pes: int) -> str:
    """Return 1 PE, 2 PEs."""
    return "1 PE" if pes == 1 else f"{pes} PEs"


def order(results: StencilResults) -> list[str]:
    """Return the contenders in the order in which they were asked for."""
    return list(dict.fromkeys(name for h in results.headers for name in _contenders(h)))


def _contenders(header: Header) -> list[str]:
    return list(header["configuration"]["contenders"])


def scaling(
    results: StencilResults, setting: Setting, case: str, variant: str = "full"
) -> Table | None:
    """Return the time per iteration of each contender over PEs; None where there is none."""
    groups = results.groups_of(setting, case)
    rows = []
    for name in order(results):
        found = [results.find(group, name, variant) for group in groups]
        if any(found):
            rows.append((name, *(spread_text(s) if s else NOTHING for s in found)))
    heads = ("µs per iteration", *(pes_text(group.pes) for group in groups))
    return Table(heads, rows) if rows else None


def added(results: StencilResults, setting: Setting, case: str) -> Table | None:
    """Return the time by which an iteration is longer than on one PE, of a grid for each PE.

    That is what communication costs, where each PE has as much to compute. None for other grids.
    """
    groups = results.groups_of(setting, case)
    if not weak(case) or len(groups) < 2 or groups[0].pes != 1:
        return None
    rows = []
    for name in order(results):
        one = results.find(groups[0], name, "full")
        more = [results.find(group, name, "full") for group in groups[1:]]
        if one is None or not any(more):
            continue
        rows.append((name, *(_signed(s.median - one.median) if s else NOTHING for s in more)))
    heads = ("µs more than on 1 PE", *(pes_text(group.pes) for group in groups[1:]))
    return Table(heads, rows) if rows else None


def _signed(seconds: float) -> str:
    return micro(seconds) if seconds >= 0 else f"−{micro(-seconds)}"


def summary(results: StencilResults, setting: Setting) -> Table:
    """Return a row a grid and number of PEs: cpufree, the best of others, who wins."""
    rows = []
    for case in results.cases(setting):
        for group in results.groups_of(setting, case):
            mine = next((s for s in results.valid(group) if s.family == "cpufree"), None)
            won = results.winner(group)
            rows.append(
                (
                    case,
                    str(group.pes),
                    micro(mine.median) if mine else NOTHING,
                    f"{mine.bytes_per_second / 1e9:.4g}" if mine else NOTHING,
                    *_verdict(results.against(group, host_driven)),
                    *_verdict(results.against(group, baseline)),
                    _winner(won),
                )
            )
    heads = ("grid", "PEs", "cpufree, µs", "GB/s", "best host-driven, µs", "speed-up")
    return Table((*heads, "best baseline, µs", "speed-up", "fastest of all"), rows)


def _verdict(verdict: Comparison[StencilSeries] | None) -> tuple[str, str]:
    if verdict is None:
        return NOTHING, NOTHING
    theirs = f"{micro(verdict.theirs.median)} {verdict.theirs.name}"
    return theirs, f"{verdict.speedup:.2f}× {verdict.word}"


def _winner(won: tuple[StencilSeries, str] | None) -> str:
    if won is None:
        return NOTHING
    series, word = won
    return {"wins": f"{series.name} wins", "alone": f"{series.name}, alone"}.get(word, word)


def detail(results: StencilResults, group: Group) -> Table:
    """Return a row a contender: times, rates, check, and what to know of it."""
    best = min(filter(host_driven, results.valid(group)), key=lambda s: s.median, default=None)
    rate = results.memory_rate()
    rows = []
    for series in sorted(results.of(group), key=lambda s: s.median):
        s = series.spread
        cells = [series.name, spread_text(series), f"{micro(s.least)}–{micro(s.most)}"]
        cells += [f"{series.updates_per_second / 1e9:.4g}", f"{series.bytes_per_second / 1e9:.4g}"]
        cells.append(_share(series, rate, group.pes))
        cells.append(against(series, best))
        cells.append(_note(series))
        rows.append(tuple(cells))
    heads = ("contender", "µs per iteration", "range", "GLUP/s", "GB/s", "share of memory's rate")
    return Table((*heads, "over best host-driven", "values"), rows)


def _share(series: StencilSeries, rate: tuple[str, float] | None, pes: int) -> str:
    """Return the bytes per second over what memory gives; above 1, values stay on chip."""
    if rate is None or (rate[0] == "copy" and series.facts.get("device") == "cpu"):
        return NOTHING
    available = rate[1] * (pes if rate[0] == "copy" else 1)
    return f"{series.bytes_per_second / available:.2f}"


def _note(series: StencilSeries) -> str:
    if problems := series.problems():
        return f"**does not count: {'; '.join(problems)}**"
    assert series.reference is not None
    by, iterations = series.reference["by"], series.reference["iterations"]
    plan = series.facts.get("plan") or {}
    how = f"; {plan['sweep']}, halos every {plan['halo_steps']}" if "sweep" in plan else ""
    if "depth" in series.facts:
        how = f"; chunks of {series.facts['depth']} planes"
    if "exchange" in series.facts:
        how += f", {series.facts['exchange']}"
    return f"those of {by} after {iterations} iterations{how}"


def shape_of(results: StencilResults, group: Group) -> str:
    """Return the points of the whole grid of a group."""
    return shape_text(results.of(group)[0].problem["shape"]) if results.of(group) else group.case


def contenders(results: StencilResults) -> Table:
    """Return what the contenders say of themselves."""
    found: dict[tuple[str, ...], None] = {}
    for series in results.series.values():
        facts = series.facts
        versions = ", ".join(f"{k} {v}" for k, v in (facts.get("versions") or {}).items())
        kind = str(facts.get("engine") or facts.get("kind") or NOTHING)
        notes = "; ".join(facts.get("notes") or ()) or NOTHING
        found[series.name, series.family, kind, versions or NOTHING, notes] = None
    return Table(("contender", "kind", "engine", "versions", "notes"), sorted(found))


def context(published: Context) -> Table:
    """Return figures that others have published, of other machines."""
    return Table(("µs per iteration", *published.columns), published.rows)
