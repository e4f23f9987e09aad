"""Tables of `bench/gpu_time.sh`: time to solution, from the files of a run.

Usage: python -m tools.results.time --show FOLDER
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from cpufree.bench.time import tables


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file; those of a process that was ended may be cut."""
    found = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def set_ups(folder: Path) -> str:
    """Return the table of set-ups: the least and the median of those after the first."""
    rows = []
    for path in sorted(folder.glob("setup-*.jsonl")):
        by_place: dict[str, list[dict[str, Any]]] = {}
        for line in lines_of(path):
            if line["kind"] == "set-up":
                by_place.setdefault(line["from"], []).append(line)
            else:
                rows.append((path.stem, "", "", "failed", "", "", line["error"][:80]))
        for place, lines in by_place.items():
            seconds = [line["seconds"] for line in lines]
            last = lines[-1]["timings"]
            parts = sorted(last.items(), key=lambda one: -one[1])
            shown = ", ".join(
                f"{name.removeprefix('setup_')} {value:.3f}"
                for name, value in parts
                if value >= 0.004 and name != "setup"
            )
            one = lines[-1]
            first, later = f"{seconds[0]:.3f}", f"{median(seconds[1:] or seconds):.3f}"
            bits = one.get("residual", "")[-8:]
            rows.append((one["case"], str(one["pes"]), place, first, later, bits, shown))
    heads = ("matrix", "GPUs", "from", "first, s", "later, s", "bits", "parts of the last, s")
    return table(heads, rows)


def programs(folder: Path, name: str) -> str:
    """Return the table of programs of a step."""
    path = folder / f"{name}.jsonl"
    if not path.exists():
        return "not measured"
    lines = lines_of(path)
    failed = [line for line in lines if line["kind"] == "failure"]
    told = [f"failed: {one['case']}, {one['contender']}: {one['error']}" for one in failed]
    rows = [(Path(row[0]).name, *row[1:]) for row in tables.rows(lines)]
    return "\n".join([table(tables.HEADS, rows), *told])


def choices(folder: Path) -> str:
    """Return what `auto` took over the best of what it could have chosen, by matrix."""
    path = folder / "auto.jsonl"
    if not path.exists():
        return ""
    found: dict[str, dict[str, float]] = {}
    for (case, _, contender), lines in tables.collect(lines_of(path)).items():
        found.setdefault(case, {})[contender] = median(line["seconds"] for line in lines)
    rows = []
    for case, seconds in sorted(found.items()):
        others = {name: value for name, value in seconds.items() if " on " in name}
        if "cpufree" in seconds and others:
            best = min(others, key=lambda name: others[name])
            ratio = seconds["cpufree"] / others[best]
            rows.append((Path(case).name, best, f"{others[best]:.2f}", f"{ratio:.2f}"))
    return table(("matrix", "best choice", "its wall s", "auto over it"), rows)


def suite_choices(folder: Path) -> str:
    """Return what `auto` took over the best of all choices, for matrices of suites."""
    path = folder / "suite.jsonl"
    if not path.exists():
        return "not measured"
    found: dict[str, dict[str, list[float]]] = {}
    took: dict[str, str] = {}
    for line in lines_of(path):
        if line["kind"] == "choice" and line["round"] > 0 and line["converged"]:
            found.setdefault(line["case"], {}).setdefault(line["choice"], []).append(
                line["seconds"]
            )
            if line["choice"] == "auto":
                where = f"{line['pes']} GPUs" if line["engine"] == "cuda_p2p" else "the CPU"
                took[line["case"]] = f"{where}, {line['method']}"
    rows, ratios = [], []
    for case, choices in sorted(found.items()):
        seconds = {choice: median(times) for choice, times in choices.items()}
        if "auto" not in seconds or len(seconds) < 3:
            continue
        best = min((choice for choice in seconds if choice != "auto"), key=seconds.__getitem__)
        ratios.append(seconds["auto"] / seconds[best])
        others = ", ".join(f"{name} {value:.3f}" for name, value in sorted(seconds.items()))
        rows.append((case, took[case], best, others, f"{ratios[-1]:.2f}"))
    if not ratios:
        return "not measured"
    heads = ("matrix", "auto takes", "best", "seconds", "auto over the best")
    mean = f"geometric mean {geometric_mean(ratios):.3f}, worst {max(ratios):.2f}"
    return f"{table(heads, rows)}\n\n{len(ratios)} matrices: {mean}"


def methods(folder: Path) -> str:
    """Return microseconds an iteration of each method, by GPUs."""
    path = folder / "pipelined.jsonl"
    if not path.exists():
        return "not measured"
    found: dict[tuple[int, str], list[float]] = {}
    for line in lines_of(path):
        if line.get("kind") == "measurement" and line.get("variant", "full") == "full":
            key = (line["pes"], line["method"])
            found.setdefault(key, []).append(1e6 * line["seconds"] / line["iterations"])
    rows = [(str(pes), name, f"{median(us):.1f}") for (pes, name), us in sorted(found.items())]
    return table(("GPUs", "method", "µs an iteration"), rows)


def show(folder: Path) -> str:
    """Return all tables of a run."""
    parts = [
        ("Set-up, CUDA running", set_ups(folder)),
        ("auto against what it could choose", choices(folder)),
        ("auto on suites, CUDA running", suite_choices(folder)),
        ("Commands from files", programs(folder, "auto")),
        ("Script, generated", programs(folder, "script")),
        ("Script, from Matrix Market", programs(folder, "text")),
        ("Methods on poisson3d 128³", methods(folder)),
    ]
    return "\n\n".join(f"## {head}\n\n{body}" for head, body in parts)


def main() -> int:
    """Print the tables of a folder."""
    parser = argparse.ArgumentParser(prog="python -m tools.results.time")
    parser.add_argument("--show", type=Path, required=True, metavar="FOLDER")
    print(show(parser.parse_args().show))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
