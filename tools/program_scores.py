"""How far the times by which kernels of programs are chosen are from records.

Usage: python -m tools.program_scores OUT.jsonl

Programs without loops inside their loop, in the records whose plans are those that are chosen
today: on chip or not, and as many blocks. Streams on several of four GPUs are left out: since that
record (d15fa217) their rows no longer ask what other GPUs keep, which nearly halves their times.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit.rates import Rates
from cpufree.compiler.emit.stream_plan import StreamPlan
from cpufree.compiler.emit.times import sweep_time, time_of
from cpufree.compiler.grid import chosen_kernel, grid_groups, returned_fields, swept_groups
from cpufree.compiler.layout import most_pes
from cpufree.machine import Machine, of_gpu
from tools.results.records import FOLDER, ROOT, write_scores

sys.path.insert(0, str(ROOT / "bench"))
import gpu_program_cases as cases

EARLIER = "programs-4x-2026-11-26"
RECORDS = ("programs-2x-2026-11-26-later", EARLIER)
NESTED = ("cavity_flow",)
MULTIPROCESSORS = 132


@dataclass(frozen=True)
class Told:
    """What is predicted of a program on a number of GPUs."""

    us: float
    """Of a step."""
    kind: str
    """Of its kernel: sweep, tiles or streams."""
    blocks: int


def predicted(name: str, n: int, pes: int, known: Machine) -> Told | None:
    """Return what is predicted of a program with n points a side; None: it has too few rows."""
    program = cases.find(name)
    given = cases.arguments(name, n, 40)
    lowered = program._lowered(Arguments.of(program.signature, program.name, given, {}))
    kept = returned_fields(lowered.result)
    groups, swept = (make(lowered.program, kept) for make in (grid_groups, swept_groups))
    if most_pes(groups, pes) != pes:
        return None
    where = groups, pes, kept, MULTIPROCESSORS
    text = chosen_kernel(*where, known=known, swept=swept).text
    rates = Rates.of(known, pes)
    if text.on_chip is None:
        return Told(sweep_time(swept, *where[1:], rates), "sweep", text.most_blocks)
    kind = "streams" if isinstance(text.on_chip, StreamPlan) else "tiles"
    return Told(time_of(groups, text.on_chip, *where[1:], rates), kind, text.most_blocks)


def is_comparable(found: Told, ours: dict[str, Any], record: str, pes: int) -> bool:
    """Return whether the kernel of a record is the one that is chosen today, as it is today."""
    if found.kind == "streams" and record == EARLIER and pes > 1:
        return False
    return (found.kind != "sweep", found.blocks) == (ours["on_chip"], ours["blocks"])


def scores() -> Iterator[dict[str, Any]]:
    """Yield a line for each program of the records on a number of GPUs."""
    for record in RECORDS:
        lines = [json.loads(x) for x in (FOLDER / f"{record}.jsonl").read_text().splitlines()]
        known = of_gpu(lines[0]["gpus"][0])
        for line in lines:
            if "steps" not in line or line["program"] in NESTED or "type" in line:
                continue
            for pes in (1, 2, 4):
                ours = line.get(f"ours_{pes}")
                found = predicted(line["program"], line["n"], pes, known) if ours else None
                if found and is_comparable(found, ours, record, pes):
                    taken = 1e6 * ours["timings"]["kernel"] / line["steps"]
                    yield {
                        **{"record": record, "program": line["program"], "n": line["n"]},
                        **{"gpus": pes, "kernel": found.kind, "us": taken, "predicted": found.us},
                    }


def main(out: str) -> None:
    """Write the record."""
    cases.grid = lambda *shape: np.empty(shape)
    command = "python -m tools.program_scores OUT"
    write_scores(out, {"benchmark": "program predictions", "command": command}, [*scores()], "us")


if __name__ == "__main__":
    typer.run(main)
