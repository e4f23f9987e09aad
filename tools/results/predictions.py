"""Predictions beside records: what docs/model.md says of them."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from cpufree.machine import load
from cpufree.multigrid.gain import cycle_seconds
from tools.results.records import json_lines, json_record, markdown, medians, problems, values

PREDICTIONS = "predictions-2026-11-30.jsonl"


def predicted() -> str:
    """Return how far predictions by what is known beforehand are from records."""
    _, *lines = json_lines(PREDICTIONS)
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for one in lines:
        groups.setdefault((one["gpu"].split()[1], one["pes"]), []).append(one)
    held_out = [one for one in lines if "H200" in one["gpu"]]

    def row(name: str, found: Sequence[dict[str, Any]]) -> list[str]:
        errors = [abs(one["predicted"] / one["seconds"] - 1) for one in found]
        inside = statistics.mean(one["inside"] for one in found)
        return [
            *(name, str(len(found)), f"{100 * statistics.median(errors):.1f} %"),
            *(f"{100 * max(errors):.0f} %", f"{100 * inside:.0f} %"),
        ]

    rows = [row(f"{pes} {gpu}", found) for (gpu, pes), found in sorted(groups.items())]
    rows += [row("all on H200, which no wait was fitted to", held_out), row("all", lines)]
    head = ["machine", "systems and methods", "median error", "worst", "in the 95 % interval"]
    return markdown(head, rows)


CYCLES = "amg-cycles-1x-2026-11-30.json"
"""The record that predictions of multigrid are fitted to."""
HELD_OUT = ("preconditioners-1x-2026-11-30.jsonl", "amg-2x-2026-11-30.jsonl")


def _cycles() -> Iterator[tuple[str, str, int, float]]:
    """Yield system, GPUs, nonzeros and seconds of an iteration; `fitted` in the GPUs' words."""
    for row in json_record(CYCLES)["rows"]:
        sides = [int(n) for n in re.findall(r"=(\d+)", row["system"])]
        rows = math.prod(sides)
        nonzeros = rows + 2 * sum(rows - rows // side for side in sides)
        yield row["system"], "1, fitted", nonzeros, row["kernel_per_iteration"]
    for record in HELD_OUT:
        seconds, iterations = values(record), medians(record, "iterations")
        for case, problem in problems(record).items():
            if "amg" in seconds[case] and case.startswith("gen:"):
                one = min(seconds[case]["amg"]) / iterations[case]["amg"]
                yield (
                    case.removeprefix("gen:").partition(", pes")[0],
                    problem["pes"],
                    problem["nnz"],
                    one,
                )


def multigrid() -> str:
    """Return measured and predicted iterations with multigrid on H200."""
    known, rows = load("h200"), []
    for system, gpus, nonzeros, seconds in _cycles():
        found = cycle_seconds(known, nonzeros, int(gpus[0]))
        error = f"{100 * (found / seconds - 1):+.0f} %".replace("-", "−")
        rows.append([f"`{system}`", gpus, f"{1e6 * seconds:.0f}", f"{1e6 * found:.0f}", error])
    return markdown(["system", "H200", "measured, µs", "predicted, µs", "error"], rows)
