"""Benchmark of several processes, one GPU each (engine nvshmem), against one process for all GPUs.

    python bench/nvshmem.py [--pes N] [--out FILE.json] [--quick] [--engine cpu_processes]

For each matrix and method the time of an iteration, by
- one process: engine cuda_p2p, all GPUs;
- processes: engine nvshmem under `cpufree run -n N`;
- nodes: the same with CPUFREE_NODE_SIZE of half the processes;
and what passes from the launch to the first iteration. With engine cpu_processes the same on cores,
to see that it runs. Each contender is a command of its own; they are run in
turn, in an order that changes from round to round.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from gpu_machine import describe_gpus
from records import RESULTS, command_line, unused_name, write
from rich.console import Console
from timing import paired, spread

from cpufree.bench.core.machine import describe_machine, describe_versions, source_state
from cpufree.engines import gpus, nvshmem
from cpufree.errors import CpufreeError

SCHEMA = 1
METHODS = ("cg", "prcg", "pipecg")
MATRICES = ("gen:poisson2d?nx=512,ny=512", "gen:poisson3d?nx=128,ny=128,nz=128")
MATRICES_QUICK = ("gen:poisson2d?nx=48,ny=48",)
ITERATIONS, ITERATIONS_QUICK = 2000, 40
SOLVES = 9  # of each method in a round, after one to warm up
ROUNDS, ROUNDS_QUICK = 5, 2
LIMIT = 300.0  # seconds for one contender's round
SEED = 1
WORKER = Path(__file__).with_name("nvshmem_worker.py")
tell = Console(stderr=True, highlight=False, soft_wrap=True)


def contenders(engine: str, pes: int) -> dict[str, dict[str, Any]]:
    """Return by name the engine, the number of processes, and what their environment says."""
    one = "cuda_p2p" if engine == "nvshmem" else "cpu_threads"
    found: dict[str, dict[str, Any]] = {
        "one process": {"engine": one, "ranks": 1, "environment": {}},
        "processes": {"engine": engine, "ranks": pes, "environment": {}},
    }
    if pes > 1:
        half = str(-(-pes // 2))
        environment = {"CPUFREE_NODE_SIZE": half}
        found["nodes"] = {"engine": engine, "ranks": pes, "environment": environment}
    if not nvshmem.find_kernels() and engine == "nvshmem":
        raise CpufreeError(
            "nodes need _nvshmem.fatbin: pip install nvidia-nvshmem-cu13, then tools/build_gpu.sh"
        )
    return found


def run_round(who: dict[str, Any], work: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run one contender once; return what its rank 0 has found, or "error"."""
    out = folder / "found.json"
    out.unlink(missing_ok=True)
    asked = {**work, "engine": who["engine"], "out": str(out), "launched": time.time()}
    command = [sys.executable, str(WORKER), json.dumps(asked)]
    if who["ranks"] > 1 or who["engine"] not in ("cuda_p2p", "cpu_threads"):
        command = [sys.executable, "-m", "cpufree", "run", "-n", str(who["ranks"]), *command]
    environment = {**os.environ, **who["environment"]}
    try:
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"error": f"has not ended within {LIMIT:g} s"}
    if ended.returncode != 0 or not out.exists():
        return {"error": f"exit status {ended.returncode}: {ended.stderr.strip()[-1000:]}"}
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def measure(record: dict[str, Any], out: Path | None) -> None:
    """Run all contenders in turn; the record is written after each round."""
    settings = record["settings"]
    work = {
        "pes": record["pes"],
        "matrices": settings["matrices"],
        "methods": METHODS,
        "iterations": settings["iterations"],
        "solves": settings["solves"],
    }
    rng = random.Random(SEED)
    names = list(record["contenders"])
    with tempfile.TemporaryDirectory() as folder:
        for number in range(settings["rounds"]):
            for name in rng.sample(names, len(names)):
                tell.print(f"round {number + 1}: {name} ...", style="dim")
                found = run_round(record["contenders"][name], work, Path(folder))
                record["rounds"].append({"contender": name, "round": number, **found})
            record["derived"] = derive(record)
            if out is not None:
                write(record, out)


def derive(record: dict[str, Any]) -> dict[str, Any]:
    """Return times per iteration by matrix, method and contender, ratios, and start-up."""
    derived: dict[str, Any] = {"iterations": [], "ratios": [], "start": {}, "failed": []}
    for one in record["rounds"]:
        if "error" in one:
            derived["failed"].append({key: one[key] for key in ("contender", "round", "error")})
    done = [one for one in record["rounds"] if "error" not in one]
    for matrix in record["settings"]["matrices"]:
        for method in METHODS:
            times: dict[str, dict[int, list[float]]] = {}
            for one in done:
                for solve in one["solves"]:
                    if (solve["matrix"], solve["method"]) == (matrix, method):
                        rounds = times.setdefault(one["contender"], {})
                        rounds[one["round"]] = solve["seconds_per_iteration"]
            for name, rounds in times.items():
                every = [seconds for of_round in rounds.values() for seconds in of_round]
                row: dict[str, Any] = {"matrix": matrix, "method": method, "contender": name}
                derived["iterations"].append({**row, "seconds_per_iteration": spread(every)})
            derived["ratios"] += ratios(matrix, method, times)
    for name in record["contenders"]:
        starts = [one["start"] for one in done if one["contender"] == name]
        if starts:
            parts = dict.fromkeys(part for start in starts for part in start)
            derived["start"][name] = {
                part: spread([start[part] for start in starts if part in start]) for part in parts
            }
    return derived


def ratios(
    matrix: str, method: str, times: dict[str, dict[int, list[float]]]
) -> list[dict[str, Any]]:
    """Return how many times longer each contender's iterations take than those of `processes`.

    Of the least times of each round.
    """
    rows = []
    for name, rounds in times.items():
        common = sorted(rounds.keys() & times.get("processes", {}).keys())
        if name == "processes" or not common:
            continue
        both = [[min(times[who][k]) for k in common] for who in (name, "processes")]
        ratio = paired(*both)
        row: dict[str, Any] = {"matrix": matrix, "method": method}
        row |= {"contender": name, "ratio": spread(ratio)}
        rows.append(row)
    return rows


def new_record(engine: str, pes: int, quick: bool) -> dict[str, Any]:
    """Return a record without results."""
    return {
        "schema": SCHEMA,
        "benchmark": "nvshmem",
        "quick": quick,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command_line(),
        "source": source_state(),
        "machine": describe_machine(),
        "versions": describe_versions("c++"),
        "nvshmem": nvshmem.version(nvshmem.find()) if engine == "nvshmem" else None,
        "gpus": describe_gpus("cuda_p2p" if engine == "nvshmem" else engine),
        "engine": engine,
        "pes": pes,
        "settings": {
            "matrices": MATRICES_QUICK if quick else MATRICES,
            "iterations": ITERATIONS_QUICK if quick else ITERATIONS,
            "solves": SOLVES,
            "rounds": ROUNDS_QUICK if quick else ROUNDS,
        },
        "contenders": contenders(engine, pes),
        "rounds": [],
        "derived": {},
    }


def show(record: dict[str, Any]) -> None:
    """Print the summary."""
    paper = Console(highlight=False, soft_wrap=True)
    for row in record["derived"]["iterations"]:
        times = row["seconds_per_iteration"]
        paper.print(
            f"{row['matrix']:38} {row['method']:7} {row['contender']:12} "
            f"{times['min'] * 1e6:9.3f} us least {times['median'] * 1e6:9.3f} median"
        )
    for row in record["derived"]["ratios"]:
        paper.print(
            f"{row['matrix']:38} {row['method']:7} {row['contender']:12} "
            f"{row['ratio']['median']:.2f} times the time of processes"
        )
    for name, parts in record["derived"]["start"].items():
        listed = ", ".join(f"{part} {times['median']:.2f}" for part, times in parts.items())
        paper.print(f"start of {name}: {listed} s")
    for one in record["derived"]["failed"]:
        paper.print(f"failed: {one['contender']}, round {one['round'] + 1}: {one['error']}")


def main(
    pes: Annotated[int | None, typer.Option(min=1, help="Processes; default: GPUs, or 2.")] = None,
    engine: Annotated[str, typer.Option(help="nvshmem, or cpu_processes to try it.")] = "nvshmem",
    out: Annotated[str | None, typer.Option(help="Where to write; - is nowhere.")] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes: does it work?")] = False,
    rounds: Annotated[int | None, typer.Option(min=1, help="Runs of each; default 5.")] = None,
) -> None:
    """Measure iterations and start-up of several processes; see the head of this file."""
    if engine not in ("nvshmem", "cpu_processes"):
        raise typer.BadParameter("choose nvshmem or cpu_processes", param_hint="--engine")
    if pes is None:
        pes = len(gpus.require_usable(engine)) if engine == "nvshmem" else 2
    record = new_record(engine, pes, quick)
    record["settings"]["rounds"] = rounds or record["settings"]["rounds"]
    path = None if out == "-" else Path(out) if out else unused_name(RESULTS, f"nvshmem-{pes}x")
    measure(record, path)
    show(record)
    if path is not None:
        tell.print(f"written: {path}")
    if record["derived"]["failed"]:
        raise typer.Exit(1)


if __name__ == "__main__":
    try:
        with contextlib.suppress(KeyboardInterrupt):
            typer.run(main)
    except CpufreeError as error:
        sys.exit(f"nvshmem.py: error: {error}")
