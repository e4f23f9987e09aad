"""Figures of triggered operations in docs/triggered.md, made from records.

Usage: python -m tools.results.triggered --take FOLDER | --show FOLDER. Of the page they are a part
of `python -m tools.results`.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.bench.triggered.measure import ORDERS, OVERLAP_TIMES, TIMES, Series
from tools.results import triggered_goals as goals
from tools.results.page_tables import with_tables
from tools.results.records import FOLDER, LINKS, ROOT, commits, markdown

PAGE = ROOT / "docs/triggered.md"
PICTURE = ROOT / "docs/pictures/triggered-messages.png"
BEGINS = {
    2: "<!-- figures: python -m tools.results.triggered -->\n",
    4: "<!-- figures on 4 GPUs: python -m tools.results.triggered -->\n",
}
END = "<!-- end of figures -->\n"
STUDIES = ("messages", "order", "overlap", "allreduce", "jacobi", "soak", "flood")
HEADS = ("date", "command", "machine", "versions", "plan", "series")
UNITS = ((1 << 20, "MB"), (1 << 10, "kB"), (1, "B"))


def latest(folder: Path = FOLDER, gpus: int = 2) -> dict[str, Path]:
    """Return the newest record of each study on a number of GPUs, by the dates in their names."""
    found = {}
    for study in STUDIES:
        names = sorted(folder.glob(f"triggered-{gpus}x-*-{study}.json"))
        if names:
            found[study] = names[-1]
    return found


def load(path: Path) -> dict[str, Any]:
    """Return a record; throws ValueError where its header lacks something."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    missing = [name for name in HEADS if name not in record]
    if not missing and "gpus" not in record["machine"]:
        missing = ["machine.gpus"]
    if missing:
        raise ValueError(f"{path.name} has no {', '.join(missing)}: measure again, with --json")
    return record


def take(source: Path, folder: Path = FOLDER) -> None:
    """Copy the records of a run, named by GPUs and the day of measuring, and its picture."""
    for study in STUDIES:
        path = source / f"{study}.json"
        if not path.exists():
            continue
        record = load(path)
        record["command"] = re.sub(r"\S*/(\w+\.(json|png))", r"\1", record["command"])
        name = f"triggered-{len(set(record['plan']['gpus']))}x"
        for old in folder.glob(f"{name}-*-{study}.json"):
            old.unlink()
        to = folder / f"{name}-{record['date'][:10]}-{study}.json"
        to.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")
    if (source / "messages.png").exists():
        shutil.copyfile(source / "messages.png", PICTURE)


def series_of(record: dict[str, Any]) -> list[Series]:
    """Return what was measured, without what failed."""
    return [
        Series(
            one["study"], one["name"], one["back_end"], one["size"], one["samples"], one["detail"]
        )
        for one in record["series"]
        if one["samples"]
    ]


def size(count: int) -> str:
    """Return bytes as 64 B, 8 kB, 64 MB."""
    unit, name = next(unit for unit in UNITS if count >= unit[0] and count % unit[0] == 0)
    return f"{count // unit} {name}"


def micros(seconds: float) -> str:
    """Return seconds as microseconds, without the unit."""
    return f"{1e6 * seconds:.0f}" if seconds >= 1e-4 else f"{1e6 * seconds:.1f}"


def _messages(measured: list[Series]) -> Iterable[str]:
    ways = list(dict.fromkeys((one.name, one.back_end) for one in measured))
    for after in dict.fromkeys(one.detail["after"] for one in measured):
        those = {
            (one.size, one.name, one.back_end): one
            for one in measured
            if one.detail["after"] == after
        }
        heads = ["message", *(goals.PATHS[way] for way in ways)]
        rows = [
            [size(count)]
            + [
                micros(float(np.median(goals.to_seen(those[(count, *way)]))))
                if (count, *way) in those
                else "–"
                for way in ways
            ]
            for count in dict.fromkeys(one.size for one in measured)
        ]
        what = "ends with the trigger" if after == 0 else f"goes on for {1e6 * after:.0f} µs"
        yield f"Microseconds from data ready to seen at the target; the kernel {what}:\n"
        yield markdown(heads, rows)
    yield from _where_time_goes(measured)


def _where_time_goes(measured: list[Series]) -> Iterable[str]:
    rows = []
    for one in measured:
        if one.size != 64 or one.detail["after"] == 0 or one.name not in ("triggered", "stores"):
            continue
        stamps = dict(zip(TIMES, one.array().T, strict=True))
        steps = ("ready", "sent", "nic_begun", "nic_ended")
        cells = [
            micros(float(np.median(stamps[s] - stamps["ready"]))) for s in (*steps[1:], "seen")
        ]
        rows.append([goals.PATHS[one.name, one.back_end], *(c.replace("nan", "–") for c in cells)])
    if rows:
        yield "Where the time of 64 B goes: microseconds after data ready, medians:\n"
        yield markdown(["way", "trigger sent", "copy begun", "flags set", "seen"], rows)


def _overlap(measured: list[Series]) -> Iterable[str]:
    rows = []
    for one in measured:
        column = dict(zip(OVERLAP_TIMES, one.array().T, strict=True))
        loss = np.median(column["beside"] / column["alone"]) - 1
        rate = np.median(column["plain_copy"] / column["one_copy"])
        way = one.back_end + (f", {one.name}" if one.detail else "")
        cells = [f"{100 * loss:.2f} %", micros(float(np.median(column["one_copy"])))]
        cells += [micros(float(np.median(column["plain_copy"]))), f"{100 * rate:.1f} %"]
        rows.append([way, size(one.size), *cells])
    yield "Copies beside a kernel that computes on all multiprocessors (microseconds):\n"
    yield markdown(["NIC", "message", "kernel's loss", "a copy", "plain copy", "rate"], rows)


def _orders(measured: list[Series]) -> Iterable[str]:
    rows = []
    names = [name for name in ORDERS.values() if any(one.name == name for one in measured)]
    for back_end in dict.fromkeys(one.back_end for one in measured):
        those = {one.name: one for one in measured if one.back_end == back_end}
        cells = [micros(goals.median(those[n])) if n in those else "–" for n in names]
        rows.append([back_end.replace("_", " "), *cells])
    yield (
        "Microseconds from the host's first step to a message of 64 B seen at the target, where "
        f"the kernel computes for {1e6 * measured[0].detail['before']:.0f} µs before it triggers:\n"
    )
    yield markdown(["NIC", *names], rows)


def _allreduce(measured: list[Series]) -> Iterable[str]:
    rows = []
    for count in dict.fromkeys(one.size for one in measured):
        here = [one for one in measured if one.size == count]
        cells = []
        for those in (
            [one for one in here if one.back_end == "stores"],
            [one for one in here if one.back_end == "packets"],
            [one for one in here if one.back_end not in ("stores", "packets", "NCCL")],
            [one for one in here if one.back_end == "NCCL" and one.name == "stream"],
            [one for one in here if one.back_end == "NCCL" and one.name == "graph"],
        ):
            best = min(those, key=goals.median, default=None)
            told = "" if best is None or best.back_end == "NCCL" else f" ({best.name})"
            cells.append("–" if best is None else micros(goals.median(best)) + told)
        rows.append([size(count), *cells, f"{goals.over_collective(measured, count):.2f}×"])
    ways = ("by stores", "by packets", "by triggers", "NCCL, stream", "NCCL, graph")
    heads = ["vector", *ways, "faster by"]
    yield "Microseconds of an all-reduce of float32, the best way of each:\n"
    yield markdown(heads, rows)


def _jacobi(measured: list[Series]) -> Iterable[str]:
    heads = {"triggered": "one kernel, triggered", "at_end": "GDS form", "host": "HDN form"}
    rows = [
        [f"{n}²", *(micros(goals.best_jacobi(measured, n, way)) for way in heads)]
        for n in dict.fromkeys(one.size for one in measured)
    ]
    yield "Microseconds of a Jacobi iteration of float32, the best number of blocks and NIC:\n"
    yield markdown(["grid", *heads.values()], rows)


_TABLES = {
    "messages": _messages,
    "order": _orders,
    "overlap": _overlap,
    "allreduce": _allreduce,
    "jacobi": _jacobi,
}


def section(paths: dict[str, Path]) -> str:
    """Return the figures: origins, goals, and a table for each study."""
    records = {study: load(path) for study, path in paths.items()}
    measured = {study: series_of(record) for study, record in records.items()}
    first = next(iter(records.values()))
    links = ", ".join(f"[{study}]({LINKS}/{path.name})" for study, path in paths.items())
    known = dict.fromkeys(commits().get(path.name, "") for path in paths.values())
    trees = ", ".join(filter(None, known))
    driver = first["versions"].get("driver")
    lines = [
        f"{first['machine']['gpus']}{f', driver {driver}' if driver else ''}, "
        f"{first['date'][:10]}{f', commit {trees}' if trees else ''}; records: {links}.\n",
        markdown(
            ["what", "target", "reached", "verdict"],
            [g.cells() for g in goals.all_goals(measured)],
        ),
    ]
    if missed := _reasons(goals.all_goals(measured)):
        lines += ["Why targets are missed:\n", "\n".join(missed) + "\n"]
    for study, table in _TABLES.items():
        if measured.get(study):
            lines += table(measured[study])
    return "\n".join(lines)


def _reasons(those: list[goals.Goal]) -> list[str]:
    """Return a line a reason why targets are missed, with all those that it holds for."""
    named: dict[str, list[str]] = {}
    for one in those:
        if one.why:
            named.setdefault(one.why, []).append(one.what)
    return [f"- **{'**, **'.join(whats)}**: {why}" for why, whats in named.items()]


def page(text: str, folder: Path = FOLDER) -> str:
    """Return the page with the figures in their places."""
    tables = {(b, END): f"\n{section(latest(folder, g))}\n" for g, b in BEGINS.items()}
    return with_tables(text, tables)


def main() -> int:
    """Print the figures of a run, or put its records in the place of older ones."""
    parser = argparse.ArgumentParser(prog="python -m tools.results.triggered")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--take", metavar="FOLDER", help="copy records and picture")
    how.add_argument("--show", metavar="FOLDER", help="print the figures of a run's records")
    options = parser.parse_args()
    if options.take:
        take(Path(options.take))
        return 0
    paths = {study: Path(options.show) / f"{study}.json" for study in STUDIES}
    there = {study: path for study, path in paths.items() if path.exists()}
    print(section(there) if there else f"no records in {options.show}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
