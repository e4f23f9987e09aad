"""Benchmark of the CPU engine: against SciPy's cg with Jacobi, and against the memory's speed.

    python bench/cpu.py [--quick] [--out FILE.json] [--plot FILE.png] [--data DIR]

What is measured and how: bench/README.md.
"""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path
from typing import Annotated, Any

import cases
import typer
from cpu_large import LEAST_OF_TRIAD, MOST_OF_SCIPY, ROWS_OF_TARGET, measure_large
from cpu_plot import draw
from cpu_report import show
from cpu_small import RTOL, measure_small
from records import RESULTS, command_line, unused_name
from rich.console import Console
from timing import FEWEST_ROUNDS, spread

from cpufree.bench.core.machine import (
    CpuUse,
    describe_machine,
    describe_versions,
    last_level_bytes,
    source_state,
)
from cpufree.bench.core.triad import BYTES_PER_ELEMENT, Triad, TriadError, array_elements

SCHEMA = 1
QUICK_ELEMENTS = 2_000_000
# Threads of a BLAS keep spinning for some 20 ms after a call, at the cost of whoever comes next.
PAUSE, PAUSE_QUICK = 0.06, 0.02
DISTURBED = 0.02  # share of the processor that other programs may take
tell = Console(stderr=True, highlight=False)


def default_out(folder: Path = RESULTS) -> Path:
    """Return folder/cpu-<date>.json, or cpu-<date>-2.json, ...: never a file that exists."""
    return unused_name(folder, "cpu")


def measure(quick: bool, rounds: int, seed: int, cache: Path, data: Path | None) -> dict[str, Any]:
    """Measure everything; return what is to be written."""
    rng = random.Random(seed)
    machine = describe_machine()
    pause = PAUSE_QUICK if quick else PAUSE
    use = CpuUse()
    elements = QUICK_ELEMENTS if quick else array_elements(last_level_bytes(machine["caches"]))
    large = []
    with Triad(elements, machine["cores"]) as triad:
        for case in cases.LARGE_QUICK if quick else cases.LARGE:
            tell.print(f"{case.name} ...", style="dim")
            A = cases.load_large(case, cache)
            large.append(measure_large(case, A, triad, rounds, rng, pause))
        if triad.wrong():
            raise TriadError(f"the triad computed {triad.wrong()} wrong elements")
    small = []
    for name, A in cases.load_small(data, quick).items():
        tell.print(f"{name} ...", style="dim")
        small.append(measure_small(name, A, rounds, 0.005 if quick else 0.02, rng, pause))
    others = use.others()
    bandwidths = [
        BYTES_PER_ELEMENT * elements / s for r in large for s in r["raw"]["triad_pass_seconds"]
    ]
    return {
        "schema": SCHEMA,
        "benchmark": "cpu",
        "quick": quick,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command_line(),
        "source": source_state(),
        "machine": machine,
        "versions": describe_versions("c++"),
        "others_share_of_cpu": others,
        "disturbed": others is None or others > DISTURBED,
        "settings": {"rounds": rounds, "seed": seed, "small_rtol": RTOL},
        "targets": {
            "rows_from": ROWS_OF_TARGET,
            "most_of_scipy": MOST_OF_SCIPY,
            "least_of_triad": LEAST_OF_TRIAD,
        },
        "triad": {
            "elements": elements,
            "threads": machine["cores"],
            "bytes_per_element": BYTES_PER_ELEMENT,
            "bytes_per_second": spread(bandwidths),
        },
        "large": large,
        "small": small,
    }


def main(
    quick: Annotated[bool, typer.Option(help="Small sizes: does it work? No record.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Result; default bench/results/cpu-<date>.json.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture; default beside the result, as .png.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=FEWEST_ROUNDS, help="Repeats of everything.")] = 7,
    seed: Annotated[int, typer.Option(help="Of right-hand sides and of the order.")] = 1,
    cache: Annotated[
        Path | None, typer.Option(help="Folder that keeps generated matrices.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="CPUFREE_DATA", help="Folder of SuiteSparse matrices (.mtx.gz)."),
    ] = None,
) -> None:
    """Compare the CPU engine with SciPy's cg and with a STREAM-like triad.

    With --quick, files are written only where --out and --plot say so.
    """
    if out is None and not quick:
        out = default_out()
    if plot is None and out is not None and not quick:
        plot = out.with_suffix(".png")
    for path in (out, plot):
        if path is not None:  # found out now rather than after minutes of measuring
            path.parent.mkdir(parents=True, exist_ok=True)
    try:
        record = measure(quick, rounds, seed, cache or cases.default_cache(), data)
    except TriadError as error:
        tell.print(f"error: {error}", style="red")
        raise typer.Exit(1) from None
    if out is not None:
        out.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    show(record, Console())
    if plot is not None:
        draw(record, plot)
    for path in (out, plot):
        if path is not None:
            tell.print(f"written: {path}")


if __name__ == "__main__":
    typer.run(main)
