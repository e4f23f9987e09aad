"""Compiled programs on CPUs against NumPy, numba and DaCe: medians, ratios in one run.

Usage: python bench/programs.py [N] [STEPS] [--out FILE.jsonl]. N: points a side, of grids of three
dimensions an eighth of it. Prints seconds and ratios; what is not installed, and programs that a
rival does not take, are left out and told. NumPy and numba (parallel) run the same text, DaCe (its
own code generator, where the program is one of NPBench's) the same arithmetic. Rounds interleave
all contenders.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python/support"))
sys.path.insert(0, str(Path(__file__).parent))

import records
from dace_rival import dace_rivals
from gpu_program_cases import THREE_D, arguments, find, plain
from gpu_program_tables import TEN

import cpufree

grids: Any = importlib.import_module("grid_programs")

REPEATS = 5


def rivals_of(name: str, from_dace: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return who else runs a program."""
    found: dict[str, Callable[..., Any]] = {"numpy": plain(name)}
    if importlib.util.find_spec("numba") is not None:
        numba: Any = importlib.import_module("numba")
        found["numba"] = numba.njit(parallel=True)(plain(name))
    if name in from_dace:
        found["dace"] = from_dace[name]
    return found


def warmed(f: Callable[[], Any]) -> str:
    """Call once; return why that does not work, "" where it does."""
    try:
        f()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"[:160]
    return ""


def seconds_of(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the medians of the seconds of warm calls, a round after the other."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(found) for name, found in seconds.items()}


def measure(name: str, n: int, steps: int, from_dace: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a program."""
    program, given = find(name), arguments(name, n // 8 if name in THREE_D else n, steps)
    arrays = grids.copies(given)
    calls: dict[str, Callable[[], Any]] = {
        "cpufree": lambda: program.run(arrays, engine="cpu_threads")
    }
    for rival, f in rivals_of(name, from_dace).items():
        calls[rival] = partial(f, *grids.copies(given))
    refused = {who: why for who, call in calls.items() if (why := warmed(call))}
    seconds = seconds_of({who: call for who, call in calls.items() if who not in refused})
    return {
        "kind": "program", "program": name, "n": n, "steps": steps, "pes": program.pes,
        "seconds": seconds, "refused": refused,
    }  # fmt: skip


def line_of(record: dict[str, Any]) -> str:
    """Return a record as a line of the table."""
    seconds = record["seconds"]
    ours = seconds.get("cpufree", math.nan)
    line = f"{record['program']:16s} {record['pes']} PEs {ours:8.4f} s"
    for who, found in seconds.items():
        line += "" if who == "cpufree" else f"   {who} {found:8.4f} s, {found / ours:5.2f} ×"
    return line + "".join(f"   {who}: {why}" for who, why in record["refused"].items())


def means(found: list[dict[str, Any]]) -> list[str]:
    """Return the geometric means against each rival."""
    lines = []
    for rival in ("numpy", "numba", "dace"):
        ratios = [
            r["seconds"][rival] / r["seconds"]["cpufree"] for r in found if rival in r["seconds"]
        ]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            lines.append(
                f"against {rival}: {mean:.2f} × (geometric mean of {len(ratios)} programs), "
                f"{min(ratios):.2f} × at worst"
            )
    return lines


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", nargs="?", type=int, default=1024)
    parser.add_argument("steps", nargs="?", type=int, default=20)
    parser.add_argument("--programs", default=",".join(TEN))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    from_dace = dace_rivals()
    versions = {"cpufree": cpufree.__version__, "numpy": np.__version__}
    for name in ("numba", "dace"):
        if importlib.util.find_spec(name) is not None:
            versions[name] = importlib.import_module(name).__version__
    found: list[dict[str, Any]] = []
    head = {
        "kind": "machine", "machine": f"{os.cpu_count()} cores", "versions": versions,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": records.command_line(), "load": os.getloadavg()[0],
    }  # fmt: skip
    for name in given.programs.split(","):
        found.append(measure(name, given.n, given.steps, from_dace))
        print(line_of(found[-1]), flush=True)
    print("\n".join(means(found)))
    if given.out is not None:
        lines = [json.dumps(one) for one in (head, *found)]
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
