"""Tables of wall times: medians, phases, and ratios to the others of the same run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from cpufree.bench.core.noise import compare

HEADS = ("matrix", "what", "who", "wall s", "iterations", "against cpufree", "verdict", "phases, s")


def collect(lines: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], list[Any]]:
    """Return the measurements of a file by matrix, kind of program and contender."""
    found: dict[tuple[str, str, str], list[Any]] = {}
    for line in lines:
        if line["kind"] == "measurement":
            key = (line.get("matrix", line["case"]), line["method"], line["contender"])
            found.setdefault(key, []).append(line)
    return found


def seconds_of(kind: str, line: Mapping[str, Any]) -> float:
    """Return the seconds that count: of the process; of many solves, the median after the first."""
    if kind != "repeat":
        return float(line["seconds"])
    solves = [float(s) for name, s in line["phases"].items() if name.startswith("solve ")]
    return median(solves[1:] or solves)


def rows(lines: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the rows of the table, one for each program."""
    found = collect(lines)
    table: list[tuple[str, ...]] = []
    for (case, kind, contender), measured in sorted(found.items()):
        own = [seconds_of(kind, line) for line in measured]
        choice = " on " in contender  # of PEs, against the command that chooses by itself
        script = "script" if kind == "command" and not choice else kind
        ours = [seconds_of(script, line) for line in found.get((case, script, "cpufree"), ())]
        against = f"{median(own) / median(ours):.2f}×" if ours else ""
        other = contender != "cpufree" and bool(ours)
        verdict = compare(ours, own) if other else ""
        phases = {
            name: median(line["phases"].get(name, 0.0) for line in measured)
            for name in measured[0]["phases"]
        }
        shown = ", ".join(f"{name} {value:.3g}" for name, value in phases.items() if value >= 1e-3)
        iterations = str(round(median(line["iterations"] for line in measured)))
        numbers = (f"{median(own):.3g}", iterations, against, verdict)
        table.append((case, kind, contender, *numbers, shown))
    return table
