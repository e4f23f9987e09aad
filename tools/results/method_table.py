"""The table in docs/solving/methods.md: what "auto" chooses, how methods compare in records."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from cpufree.bench.core.entry import OURS
from cpufree.bench.core.noise import geometric_mean
from cpufree.engines.method_choice import Solve, choose_method
from tools.results.records import LINKS, json_lines, json_record, medians, solver_record

MARKS = ("<!-- methods compared -->\n", "<!-- end of methods compared -->")
SUITES = (
    *("cg-1x-2026-11-24.jsonl", "cg-2x-sorted-2026-11-23.jsonl"),
    *("cg-4x-2026-11-22.jsonl", "cg-8x-2026-11-22.jsonl"),
)
METHODS = ("cg", "prcg", "pipecg")


@dataclass(frozen=True)
class Case:
    """A system that has been solved by several methods."""

    record: str
    machine: str
    pc: str
    auto: str
    """The method that auto chooses now."""
    seconds: dict[str, float]
    """Of an iteration, by method."""


def of_suite(record: str) -> Iterator[Case]:
    """Yield the systems of a record of `cpufree bench cg`."""
    results = solver_record(record)
    for group in results.groups():
        ours = [one for one in results.of(group) if one.family == OURS]
        found = {one.task.method: statistics.median(one.per_iteration) for one in ours}
        if len(found) < len(METHODS):
            continue
        facts = Solve("cuda_p2p", group.preconditioner)
        chosen = choose_method("auto", facts)[0]
        yield Case(record, f"{group.pes} H200", facts.pc, chosen, found)


def with_jacobi() -> Iterator[Case]:
    """Yield what other records have with Jacobi, where auto is prcg throughout."""
    one, eight = "loop-1x-2026-11-24.jsonl", "nvshmem-8x-2026-11-22.json"
    cpu = "cpu-2026-11-21.json"
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for line in json_lines(one)[1:]:
        if line["pc"] == "jacobi":
            found.setdefault((one, "1 H100", line["matrix"]), {})[line["method"]] = line["new"]
    for line in json_record(eight)["iterations"]:
        if line["engine"] == "cuda_p2p":
            key = (eight, "8 H200", line["matrix"])
            found.setdefault(key, {})[line["method"]] = line["microseconds_median"]
    for case, seconds in medians(cpu, "kernel").items():
        found[cpu, "2 cores", case] = seconds
    for (record, machine, _), seconds in found.items():
        yield Case(record, machine, "jacobi", "prcg", seconds)


def cases() -> list[Case]:
    """Return all systems of the records."""
    return [*(case for record in SUITES for case in of_suite(record)), *with_jacobi()]


def ratio(group: list[Case], method: str) -> str:
    """Return how a method compares with prcg: geometric mean, least and largest."""
    found = [c.seconds[method] / c.seconds["prcg"] for c in group if method in c.seconds]
    if not found:
        return "–"
    return f"{geometric_mean(found):.3f} ({min(found):.3f} to {max(found):.3f})"


def table() -> str:
    """Return the table in Markdown."""
    groups: dict[tuple[str, str, str, str], list[Case]] = {}
    for case in cases():
        groups.setdefault((case.machine, case.pc, case.auto, case.record), []).append(case)
    lines = [
        "| machine | preconditioner | auto is | systems | `cg` over `prcg` | `pipecg` over `prcg` "
        "| record |",
        "| --- | --- | --- | --: | --- | --- | --- |",
    ]
    for (machine, pc, auto, record), group in groups.items():
        ratios = f"{ratio(group, 'cg')} | {ratio(group, 'pipecg')}"
        link = f"[{record}](../{LINKS}/{record})"
        lines.append(f"| {machine} | {pc} | `{auto}` | {len(group)} | {ratios} | {link} |")
    return "\n".join(lines) + "\n"


def tables() -> dict[tuple[str, str], str]:
    """Return the table by the marks between which it stands."""
    return {MARKS: table()}
