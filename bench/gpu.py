"""Benchmark of the GPU engine: latency, reductions, sizes, large systems, choices, other solvers.

    python bench/gpu.py [--quick] [--out FILE.json] [--plot FILE.png] [--gpus N] [--parts a,b]

What is measured and how: bench/README.md.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import typer
from gpu_derive import TARGETS, derive
from gpu_parts import PARTS, made_ahead
from gpu_report import show
from gpu_run import Settings, keep_promise, promise_of
from records import RESULTS, ROOT, command_line, unused_name, write
from rich.console import Console

from cpufree.bench.machine import describe_machine, describe_versions, source_state
from cpufree.errors import CpufreeError
from cpufree.run import core, gpus

SCHEMA = 1
ROUNDS, ROUNDS_QUICK = 7, 5
# What a part may take of a run of FULL_BUDGET seconds; more where more is given.
FULL_BUDGET = 420.0
SHARE = {
    "machine": 40.0,
    "latency": 60.0,
    "reductions": 60.0,
    "sweep": 110.0,
    "large": 150.0,
    "variants": 60.0,
    "peers": 40.0,
}
GRACE = 20.0  # after its time is over a part may finish what it has begun
LEAST = 5.0  # seconds for which a part is worth starting
MAKERS = 3  # processes that make matrices ahead; each needs up to 10 GB
tell = Console(stderr=True, highlight=False)


def find_devices(engine: str, wanted: int | None) -> tuple[int, ...]:
    """Return the devices to measure on; CpufreeError where they are not there."""
    if engine != "cuda_p2p":
        return tuple(range(wanted or 2))
    usable = [gpu.index for gpu in gpus.require_usable()]
    if wanted is not None and wanted > len(usable):
        raise CpufreeError(f"--gpus {wanted}: this machine shows {len(usable)} that can be used")
    chosen = tuple(usable[:wanted])
    if problem := core.peer_problem(chosen):
        raise CpufreeError(f"these GPUs cannot work together: {problem}; use --gpus 1")
    return chosen


def new_record(quick: bool, engine: str, devices: tuple[int, ...], budget: float) -> dict[str, Any]:
    """Return a record without results."""
    return {
        "schema": SCHEMA,
        "benchmark": "gpu",
        "quick": quick,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command_line(),
        "source": source_state(),
        "machine": describe_machine(),
        "versions": describe_versions("c++"),
        "engine": engine,
        "devices": list(devices),
        "settings": {"rounds": ROUNDS_QUICK if quick else ROUNDS, "budget": budget},
        "targets": {str(pes): targets for pes, targets in TARGETS.items()},
        "parts": {},
        "derived": {},
    }


@contextlib.contextmanager
def matrices_made_ahead(cache: Path, parts: list[str], quick: bool) -> Iterator[None]:
    """Make the large matrices in other processes, while the GPUs are measured on small ones."""
    wanted = {case.name: case for part in parts for case in made_ahead(part, quick)}
    cache.mkdir(parents=True, exist_ok=True)
    for case in wanted.values():
        promise_of(case, cache).write_text("")
    makers = max(1, min(MAKERS, (os.cpu_count() or 1) - 2))
    pool = ProcessPoolExecutor(makers, mp_context=get_context("spawn"))
    try:
        for case in wanted.values():
            pool.submit(keep_promise, case, cache)
        yield
    finally:
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def run_part(settings: Settings, limit: float) -> dict[str, Any]:
    """Run a part in a process of its own; return what it has found, and what went wrong."""
    text = json.dumps(dataclasses.asdict(settings))
    script = Path(__file__).with_name("gpu_parts.py")
    out = Path(settings.out)
    errors = out.with_suffix(".err")
    with errors.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, str(script), text],
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(limit)
            how = f"ended with status {process.returncode}" if process.returncode else ""
        except subprocess.TimeoutExpired:
            how = f"was ended after {limit:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):  # with all that it has started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    empty: dict[str, Any] = {"found": [], "failed": [], "skipped": [], "seconds": 0.0}
    result: dict[str, Any] = json.loads(out.read_text()) if out.exists() else empty
    if how or not out.exists():
        last = errors.read_text(errors="replace")[-2000:]
        result["failed"].append({"name": "process", "error": f"{how or 'no result'}: {last}"})
    return result


def measure(
    record: dict[str, Any], parts: list[str], budget: float, cache: Path, out: Path | None
) -> None:
    """Measure the parts within `budget` seconds; the record is written after each."""
    begin = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        matrices_made_ahead(cache, parts, record["quick"]),
    ):
        for part in parts:
            left = budget - (time.monotonic() - begin)
            if left < LEAST:
                why = f"the budget of {budget:.0f} s was spent"
                record["parts"][part] = {"found": [], "failed": []}
                record["parts"][part]["skipped"] = [{"name": part, "why": why}]
                continue
            seconds = min(left, SHARE[part] * max(1.0, budget / FULL_BUDGET))
            tell.print(f"{part} ({seconds:.0f} s at most) ...", style="dim")
            settings = Settings(
                part=part,
                out=f"{folder}/{part}.json",
                engine=record["engine"],
                devices=tuple(record["devices"]),
                quick=record["quick"],
                seconds=seconds,
                cache=str(cache),
                rounds=record["settings"]["rounds"],
                channels=str(ROOT / "build/gpu/run_channels"),
            )
            record["parts"][part] = run_part(settings, seconds + GRACE)
            finish(record, out)
    finish(record, out)


def finish(record: dict[str, Any], out: Path | None) -> None:
    """Derive what follows, and write the record."""
    record["derived"] = derive(record)
    if out is not None:
        write(record, out)


def chosen_parts(text: str | None) -> list[str]:
    """Return the parts to run, in the order in which they run."""
    if text is None:
        return list(PARTS)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PARTS:
            raise CpufreeError(f"--parts {name}: choose from {', '.join(PARTS)}")
    return [name for name in PARTS if name in names]


def draw_if_possible(record: dict[str, Any], plot: Path) -> None:
    """Save the picture where there is matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        tell.print("no picture: matplotlib is not installed", style="yellow")
        return
    from gpu_plot import draw

    draw(record, plot)
    tell.print(f"written: {plot}")


def main(
    quick: Annotated[bool, typer.Option(help="Small sizes: does it work? No record.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Result; default bench/results/gpu-<date>.json.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Picture; default beside the result, as .png.")
    ] = None,
    number: Annotated[
        int | None, typer.Option("--gpus", min=1, help="How many GPUs; default all.")
    ] = None,
    parts: Annotated[str | None, typer.Option(help=f"Of {','.join(PARTS)}.")] = None,
    budget: Annotated[float, typer.Option(min=10, help="Seconds in all.")] = FULL_BUDGET,
    cache: Annotated[
        Path | None, typer.Option(help="Folder that keeps generated matrices; default none.")
    ] = None,
    engine: Annotated[str, typer.Option(hidden=True)] = "cuda_p2p",
) -> None:
    """Measure the GPU engine on 1, 2, 4, ... GPUs; print a summary, write all of it.

    With --quick, files are written only where --out and --plot say so.
    """
    try:
        wanted, devices = chosen_parts(parts), find_devices(engine, number)
    except CpufreeError as error:
        tell.print(f"error: {error}", style="red")
        raise typer.Exit(2) from None
    if out is None and not quick:
        out = unused_name(RESULTS, "gpu")
    if plot is None and out is not None and not quick:
        plot = out.with_suffix(".png")
    for path in (out, plot):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    record = new_record(quick, engine, devices, budget)
    with contextlib.ExitStack() as stack:
        folder = cache or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        measure(record, wanted, budget, folder, out)
    show(record, Console())
    if out is not None:
        tell.print(f"written: {out}")
    if plot is not None:
        draw_if_possible(record, plot)


if __name__ == "__main__":
    typer.run(main)
