"""The table in docs/methods.md: what method="auto" chooses, and how the methods compare in records.

Usage: python -m tools.method_table --write|--check. Exits with 1 where --check finds it stale.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cpufree.engines.method_choice import Solve, choose_method
from tools.results.records import LINKS, ROOT, json_lines, json_record

PAGE = ROOT / "docs/methods.md"
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
    problems: dict[str, dict[str, Any]] = {}
    times: dict[tuple[str, str], list[float]] = {}
    for line in json_lines(record):
        if line["kind"] == "problem":
            problems[line["case"]] = line
        elif line["kind"] == "measurement":
            if (line["contender"], line["variant"]) != ("cpufree", "full"):
                continue
            key = (line["case"], line["method"])
            times.setdefault(key, []).append(line["seconds"] / line["iterations"])
    for name, problem in problems.items():
        found = {m: statistics.median(times[name, m]) for m in METHODS if (name, m) in times}
        if len(found) < len(METHODS):
            continue
        facts = Solve("cuda_p2p", problem["preconditioner"])
        machine = f"{problem['pes']} H200"
        yield Case(record, machine, facts.pc, choose_method("auto", facts)[0], found)


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
    for line in json_record(cpu)["large"]:
        found[cpu, "2 cores", line["name"]] = {
            method: statistics.median(raw["kernel_seconds"])
            for method, raw in line["raw"]["methods"].items()
        }
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
    mean = math.exp(sum(map(math.log, found)) / len(found))
    return f"{mean:.3f} ({min(found):.3f} to {max(found):.3f})"


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
        link = f"[{record}]({LINKS}/{record})"
        lines.append(f"| {machine} | {pc} | `{auto}` | {len(group)} | {ratios} | {link} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the page with the table as it is to be."""
    begin, end = map(re.escape, MARKS)
    text = PAGE.read_text(encoding="utf-8")
    made = f"{MARKS[0]}{table()}{MARKS[1]}"
    return re.sub(f"{begin}.*?{end}", lambda _: made, text, flags=re.DOTALL)


def main() -> int:
    """Write the table, or say that it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.method_table")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--write", action="store_true", help="write the table")
    how.add_argument("--check", action="store_true", help="fail where it is out of date")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print("docs/methods.md is out of date: run python -m tools.method_table --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
