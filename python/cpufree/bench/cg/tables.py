"""The tables of a report, as heads and rows of text; `report` puts them into Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from cpufree.bench.cg.configuration import Group
from cpufree.bench.cg.results import DENOMINATORS, Results, Series, host_driven
from cpufree.bench.core.entry import OURS
from cpufree.bench.core.lines import Problem
from cpufree.bench.core.noise import FASTER, NOISE, SLOWER, geometric_mean
from cpufree.bench.report.collected import Comparison
from cpufree.bench.report.tables import NOTHING, Table, against, micro, milli, spread_text
from cpufree.text import number

Setting = tuple[str, str, int]


def setting_text(setting: Setting) -> str:
    """Return a setting in words: 8 PEs, double precision, Jacobi."""
    precision, preconditioner, pes = setting
    first = "1 PE" if pes == 1 else f"{pes} PEs"
    pc = "no preconditioner" if preconditioner == "none" else "Jacobi"
    return f"{first}, {precision} precision, {pc}"


def time_head(results: Results) -> str:
    """Return what `time_text` gives."""
    fixed = {series.fixed for series in results.series.values()}
    return "µs per iteration" if fixed == {True} else "ms to the tolerance"


def time_text(series: Series) -> str:
    """Return the median of what is compared: of an iteration, or of a solve."""
    return micro(series.median) if series.fixed else milli(series.median)


def verdict_text(verdict: Comparison[Series] | None) -> str:
    """Return a speed-up and its verdict."""
    return NOTHING if verdict is None else f"{verdict.speedup:.2f}× {verdict.word}"


def summary(results: Results) -> Table:
    """Return geometric means of the speed-ups of cpufree over the fastest of each denominator.

    A row with a method compares solves by that method; the row *fastest* gives both sides the
    method that is fastest for it on the matrix.
    """
    rows = []
    for setting in results.settings():
        groups = results.groups_of(setting)
        methods = dict.fromkeys(s.task.method for g in groups for s in results.of(g))
        for method in (None, *methods):
            cells = [
                _mean([results.against(group, those, method) for group in groups])
                for those in DENOMINATORS.values()
            ]
            if set(cells) != {NOTHING}:
                rows.append((setting_text(setting), method or "fastest", *cells))
    return Table(("system", "method", *(f"over {name}" for name in DENOMINATORS)), rows)


def _mean(verdicts: Sequence[Comparison[Series] | None]) -> str:
    there = [verdict for verdict in verdicts if verdict is not None]
    if not there:
        return NOTHING
    mean = geometric_mean([verdict.speedup for verdict in there])
    counts = [(word, sum(v.word == word for v in there)) for word in (FASTER, NOISE, SLOWER)]
    listed = ", ".join(f"{count} {word}" for word, count in counts if count)
    matrices = "1 matrix" if len(there) == 1 else f"{len(there)} matrices"
    return f"{mean:.2f}× ({matrices}{': ' + listed if listed else ''})"


def overview(results: Results, setting: Setting) -> Table:
    """Return a row a matrix: cpufree, the best host-driven contender, who wins."""
    rows = []
    for group in results.groups_of(setting):
        verdict = results.against(group, host_driven)
        mine = [s for s in results.valid(group) if s.family == OURS]
        best = min(mine, key=lambda s: s.median) if mine else None
        won = results.winner(group)
        facts = results.of(group)[0].problem if results.of(group) else {}
        rows.append(
            (
                group.case,
                number(facts["rows"]) if facts else NOTHING,
                nonzeros_text(facts) if facts else NOTHING,
                NOTHING if (count := results.distinct(group)) is None else number(count),
                f"{time_text(best)} {best.task.method}" if best else NOTHING,
                f"{time_text(verdict.theirs)} {verdict.theirs.name}" if verdict else NOTHING,
                verdict_text(verdict),
                winner_text(won),
            )
        )
    unit = time_head(results)
    heads = ("matrix", "rows", "nonzeros", "distinct values", f"cpufree, {unit}")
    return Table((*heads, f"best host-driven, {unit}", "speed-up", "fastest of all"), rows)


def nonzeros_text(problem: Problem) -> str:
    """Return the stored entries of a matrix, and how many of them are 0 where some are."""
    zeros = problem.get("zeros", 0)
    share = f" ({zeros / problem['nnz']:.1%} zeros)" if zeros else ""
    return number(problem["nnz"]) + share


def winner_text(won: tuple[Series, str] | None) -> str:
    """Return who is fastest, and whether that is more than noise."""
    if won is None:
        return NOTHING
    series, word = won
    return {"wins": f"{series.name} wins", "alone": f"{series.name}, alone"}.get(word, word)


def detail(results: Results, group: Group) -> Table:
    """Return a row a contender and method: times, rates, accuracy, and what to know of it."""
    fixed = all(series.fixed for series in results.of(group))
    heads = ["contender", "method", "µs per iteration", "range", "iterations"]
    heads += [] if fixed else ["ms to the tolerance"]
    reference = results.reference()
    heads += ["GFLOP/s", "TB/s", f"over {reference} cg, 1 PE", "over best host-driven"]
    heads += ["true residual", "error", "note"]
    host = [series for series in results.valid(group) if host_driven(series)]
    best = min(host, key=lambda s: s.median) if host else None
    one = results.reference_for(group)
    rows = []
    for series in sorted(results.of(group), key=lambda s: s.median):
        flops, moved = series.rates()
        check, s = series.check, series.spread
        cells = [series.task.contender, series.task.method, spread_text(series)]
        cells += [f"{micro(s.least)}–{micro(s.most)}", str(series.iterations)]
        cells += [] if fixed else [milli(statistics.median(series.times))]
        cells += [f"{flops / 1e9:.4g}", f"{moved / 1e12:.3g}"]
        cells.append(f"{one.median / series.median:.2f}×" if one else NOTHING)
        cells.append(against(series, best))
        accuracy = (check.get("true_residual"), check.get("error")) if check else (None, None)
        for value in accuracy:
            cells.append(NOTHING if value is None else f"{value:.1e}")
        rows.append((*cells, note(series)))
    return Table(tuple(heads), rows)


def note(series: Series) -> str:
    """Return what to know of a series: why it does not count, where it ended early."""
    found = [f"**does not count: {problem}**" for problem in series.problems()]
    if series.fixed and series.limit and series.iterations != series.limit:
        reasons = ", ".join(dict.fromkeys(str(line["reason"]) for line in series.lines))
        found.append(f"{series.iterations} of {series.limit} iterations: {reasons}")
    said = series.check.get("note") if series.check else None
    return "; ".join([*found, *([str(said)] if said else [])])


def splits(results: Results, group: Group) -> Table | None:
    """Return where the time of an iteration goes, None where no contender tells."""
    rows = [
        (series.name, *(micro(seconds) for seconds in (*split.values(), sum(split.values()))))
        for series in sorted(results.valid(group), key=lambda s: s.median)
        if (split := series.split) is not None
    ]
    heads = ("contender", "SpMV", "vectors", "waiting for halos", "waiting for reductions")
    return Table((*heads, "other", "all"), rows) if rows else None


def contenders(results: Results) -> Table:
    """Return what the contenders say of themselves."""
    found: dict[tuple[str, ...], None] = {}
    for series in results.series.values():
        facts = series.facts
        versions = ", ".join(f"{k} {v}" for k, v in (facts.get("versions") or {}).items())
        kind = facts.get("engine") or facts.get("kind") or NOTHING
        cells = (series.task.contender, series.family, str(kind), str(facts.get("spmv", NOTHING)))
        found[(*cells, str(facts.get("staging", NOTHING)), versions or NOTHING)] = None
    heads = ("contender", "kind", "engine", "SpMV", "halos staged", "versions")
    return Table(heads, sorted(found))
