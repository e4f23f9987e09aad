"""Tables of what bench/gpu_programs.py has measured, as docs/compiler.md has them.

Usage: python bench/gpu_program_tables.py FILE.jsonl
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
CLASSES = {"small": (1024, 128), "least": (256, 64), "large": (4096, 384)}
TEN = (
    *("jacobi_2d", "heat_3d", "fdtd_2d", "shallow_water", "gray_scott", "acoustic", "life"),
    *("points_27", "jacobi_1d", "upwind_in_place"),
)
_HEAD = (
    "| program | one GPU | host-driven | two GPUs | host-driven | CuPy | JAX | over the best |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
)


def microseconds(record: Record, key: str, what: str) -> float | None:
    """Return microseconds a step of a measurement; None: there is none."""
    found = record.get(key, {})
    value = found.get("timings", {}).get("kernel") if what == "kernel of a call" else None
    value = found.get(what) if value is None else value
    return None if value is None else 1e6 * value / record["steps"]


def programs_of(found: Iterable[Record], sizes: tuple[int, ...]) -> list[Record]:
    """Return the records of the ten programs at some sizes."""
    return [r for r in found if r["kind"] == "program" and r["n"] in sizes and r["program"] in TEN]


def over_rivals(record: Record) -> float | None:
    """Return the time of the best of the others over ours on one GPU, of whole calls."""
    mine = record.get("ours_1", {}).get("seconds")
    rivals = record.get("rivals")
    return min(rivals.values()) / mine if mine and rivals else None


def over_hosted(record: Record, pes: int) -> float | None:
    """Return the time of the host-driven variant over ours, without the copies of arrays."""
    mine = microseconds(record, f"ours_{pes}", "kernel of a call")
    other = microseconds(record, f"hosted_{pes}", "kernel")
    return other / mine if mine and other else None


def over_hand(record: Record, pes: int) -> float | None:
    """Return our time over that of the hand-written kernel."""
    mine = microseconds(record, f"ours_{pes}", "kernel of a call")
    other = microseconds(record, f"hand_{pes}", "kernel")
    return mine / other if mine and other else None


def summary(found: list[Record]) -> Iterator[str]:
    """Yield what the targets are about: geometric means, and the worst."""
    groups = {"small and least": (*CLASSES["small"], *CLASSES["least"]), **CLASSES}
    for name, sizes in groups.items():
        records = programs_of(found, sizes)
        yield from _mean(f"{name}: best of CuPy and JAX / ours", map(over_rivals, records))
        for pes in (1, 2):
            ratios = (over_hosted(r, pes) for r in records)
            yield from _mean(f"{name}, {pes} GPU: host-driven / ours", ratios)
    for r in found:
        if r["kind"] == "jacobi":
            for pes in (1, 2):
                ratio, hosted = over_hand(r, pes), over_hosted(r, pes)
                if ratio is not None:
                    what = f"{r['program']} {r['n']} {r['type']}, {pes} GPU"
                    beside = "" if hosted is None else f", host-driven / ours {hosted:.2f}"
                    yield f"{what}: {ratio:.2f} x the hand-written's time{beside}"


def _mean(what: str, ratios: Iterable[float | None]) -> Iterator[str]:
    known = [r for r in ratios if r is not None]
    if known:
        mean = math.exp(statistics.fmean(map(math.log, known)))
        yield f"{what}: {mean:.2f} (geometric mean of {len(known)}), least {min(known):.2f}"


def table(records: list[Record]) -> Iterator[str]:
    """Yield a table of programs: microseconds a step, of whole calls but the host-driven."""
    yield from _HEAD
    for r in records:
        side = f"{r['n']}³" if r["n"] in (128, 64, 384) else f"{r['n']}²"
        cells = [f"{r['program']} {side}"]
        for pes in (1, 2):
            chip = " *" if r.get(f"ours_{pes}", {}).get("on_chip") else ""
            cells.append(_cell(microseconds(r, f"ours_{pes}", "seconds")) + chip)
            cells.append(_cell(microseconds(r, f"hosted_{pes}", "kernel")))
        rivals = r.get("rivals", {})
        cupy = [s for name, s in rivals.items() if name.startswith("cupy")]
        jax = [s for name, s in rivals.items() if name == "jax"]
        for seconds in (cupy, jax):
            cells.append(_cell(1e6 * min(seconds) / r["steps"] if seconds else None))
        ratio = over_rivals(r)
        cells.append("" if ratio is None else f"{ratio:.2f}")
        yield f"| {' | '.join(cells)} |"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def jacobi_table(found: list[Record]) -> Iterator[str]:
    """Yield a table of Jacobi iterations: microseconds a step of the kernels alone."""
    yield "| | one GPU | host-driven | hand-written | two GPUs | host-driven | hand-written |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for r in found:
        if r["kind"] == "jacobi":
            cells = [f"{r['program']} {r['n']}, {r['type']}"]
            for pes in (1, 2):
                cells.append(_cell(microseconds(r, f"ours_{pes}", "kernel of a call")))
                cells.append(_cell(microseconds(r, f"hosted_{pes}", "kernel")))
                cells.append(_cell(microseconds(r, f"hand_{pes}", "kernel")))
            yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Print the tables of a record; return the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    for sizes in CLASSES.values():
        records = programs_of(found, sizes)
        if records:
            print("\n".join(table(records)), end="\n\n")
    if any(r["kind"] == "jacobi" for r in found):
        print("\n".join(jacobi_table(found)), end="\n\n")
    for line in summary(found):
        print(f"- {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
