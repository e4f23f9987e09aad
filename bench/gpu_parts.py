"""The parts of the GPU benchmark, each in a process of its own. gpu.py starts them:

    python bench/gpu_parts.py '{"part": "latency", "out": "part.json", ...}'

An error of a kernel leaves CUDA unusable for the whole process, and a hang can be ended only with
the process: hence one for each part.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cases import Case
from gpu_machine import describe_gpus
from gpu_peers import PEERS, measure_peer
from gpu_run import Run, Settings, expected_seconds
from gpu_solves import Matrix, measure

from cpufree.bench.device_copy import measure_copy
from cpufree.bench.work import METHODS

FLANGE = "flange_hex?r_out=30,t=5,pipe=20,wall=5"  # 78 120 rows
COPY_BYTES, COPY_BYTES_QUICK = 2 * 2**30, 2**24
LATENCY_ITERATIONS = 4000
ROUNDS_FEW = 5
CHANNEL_EPOCHS = 20_000
CHANNEL_LINE = re.compile(
    r"^(?P<gpus>\d+) GPUs x +(?P<threads>\d+) threads  (?P<what>.*?) +(?P<epochs>\d+) epochs with "
    r"delays (?P<verdict>right|WRONG) +(?P<stressed>-?[\d.]+) us \(without (?P<plain>-?[\d.]+)\)"
)


def poisson2d(m: int) -> Case:
    """Return the five-point Laplacian on m × m points."""
    return Case(f"poisson2d {m}²", f"poisson2d?nx={m},ny={m}")


def poisson3d(m: int) -> Case:
    """Return the seven-point Laplacian on m × m × m points."""
    return Case(f"poisson3d {m}³", f"poisson3d?nx={m},ny={m},nz={m}")


def latency_cases(quick: bool) -> list[Case]:
    """Return what latencies are measured on; the targets are those of the first."""
    return [poisson2d(m) for m in ((32,) if quick else (512, 64, 128))]


def sweep_cases(quick: bool) -> list[Case]:
    """Return the matrices of growing size."""
    if quick:
        return [poisson2d(32), poisson2d(64), poisson3d(16)]
    flat = [poisson2d(m) for m in (64, 128, 256, 512, 1024, 2048, 4096)]
    return flat + [poisson3d(m) for m in (64, 128, 192)]


def large_cases(quick: bool) -> list[Case]:
    """Return the large systems."""
    if quick:
        return [Case("flange_hex", "flange_hex?r_out=12,t=2,pipe=6,wall=2"), poisson3d(20)]
    return [
        Case("flange_hex", "flange_hex?r_out=96,t=12,pipe=58,wall=12"),
        Case("geomodel_hex", "geomodel_hex?ex=112,ey=112,ez=112"),
        poisson3d(256),
    ]


def variant_cases(quick: bool) -> list[Case]:
    """Return the matrices on which choices of the engine are compared."""
    if quick:
        return [poisson2d(32)]
    return [poisson2d(512), poisson2d(1024), Case("flange_hex", FLANGE)]


def made_ahead(part: str, quick: bool) -> list[Case]:
    """Return the matrices of a part that take seconds to make."""
    if part == "large":
        return large_cases(quick)
    slow = {"poisson2d 2048²", "poisson2d 4096²", "poisson3d 192³"}
    return [case for case in sweep_cases(quick) if part == "sweep" and case.name in slow]


def machine(run: Run) -> None:
    """The GPUs, and how fast each copies its own memory."""
    settings = run.settings
    size = COPY_BYTES_QUICK if settings.quick else COPY_BYTES
    run.unit("description", 0.0, lambda: {"gpus": describe_gpus(settings.engine)})
    for device in settings.devices:
        copy = functools.partial(measure_copy, settings.engine, device, size, settings.rounds)
        run.unit(f"copy on GPU {device}", 1.0, copy)


def latency(run: Run) -> None:
    """Microseconds per iteration of systems in which the latency of steps is all."""
    most = 60 if run.settings.quick else LATENCY_ITERATIONS
    for case in latency_cases(run.settings.quick):
        over_counts(run, case, METHODS, run.settings.rounds, most, 1.0)


def sweep(run: Run) -> None:
    """Time per iteration over the size of the system."""
    most = 60 if run.settings.quick else LATENCY_ITERATIONS
    for case in sweep_cases(run.settings.quick):
        over_counts(run, case, ("cg", "prcg"), ROUNDS_FEW, most, 0.03)


def large(run: Run) -> None:
    """Set-up and iterations of large systems. The first set-up of a process warms up."""
    for case in large_cases(run.settings.quick):
        over_counts(run, case, ("cg", "prcg"), ROUNDS_FEW, 200, 0.1, setups=2)


def over_counts(
    run: Run,
    case: Case,
    methods: Sequence[str],
    rounds: int,
    most: int,
    seconds: float,
    setups: int = 1,
) -> None:
    """Measure a matrix on all numbers of GPUs."""
    matrix = run.matrix(case)
    if matrix is None:
        return
    for pes in run.site.counts():
        one = functools.partial(
            measure,
            matrix,
            pes,
            run.site,
            methods,
            rounds=rounds,
            most=most,
            seconds=seconds,
            setups=setups,
        )
        expected = expected_seconds(matrix.csr.nnz, setups)
        run.unit(f"{case.name} on {pes}", 0.0 if run.settings.quick else expected, one)


def variants_of(pes: int, engine: str) -> Iterator[Mapping[str, int]]:
    """Yield the choices that are overridden one at a time, first none."""
    yield {}
    if engine == "cuda_p2p":
        yield from ({"residency": value} for value in (0, 1))
        yield from ({"threads": value} for value in (128, 256, 384))
        yield from ({"halo": value} for value in (1, 2))  # flags or packets among blocks
        yield {"compress": 0}
    if pes > 1:
        yield {"halo": 0}
        yield from ({"boundary_blocks": value} for value in (4, 16) if engine == "cuda_p2p")


def variants(run: Run) -> None:
    """What choices of the engine are worth: prcg with one of them overridden at a time."""
    most = 60 if run.settings.quick else LATENCY_ITERATIONS
    for case in variant_cases(run.settings.quick):
        matrix = run.matrix(case)
        if matrix is not None:
            for pes in run.site.counts():
                compare_variants(run, matrix, pes, most)


def compare_variants(run: Run, matrix: Matrix, pes: int, most: int) -> None:
    """Measure one matrix on one number of GPUs in all variants."""
    for tuning in variants_of(pes, run.settings.engine):
        chosen = ", ".join(f"{key} {value}" for key, value in tuning.items()) or "as chosen"
        one = functools.partial(
            measure,
            matrix,
            pes,
            run.site,
            ("prcg",),
            rounds=ROUNDS_FEW,
            most=most,
            seconds=0.02,
            tuning=tuning,
        )
        expected = 0.0 if run.settings.quick else 0.5
        run.unit(f"{matrix.case.name} on {pes}, {chosen}", expected, one)


def reductions(run: Run) -> None:
    """Reductions and exchanges alone: runs run_channels and reads what it prints."""
    program = Path(run.settings.channels)
    if not program.exists():
        run.skipped.append({"name": "run_channels", "why": f"{program} is not there: make gpu"})
        return
    command = [str(program), str(len(run.settings.devices)), str(CHANNEL_EPOCHS)]
    # Its lines are read as they come, so that those before a hang count.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found = parse_channels(line)
            if found is not None:
                run.found.append(found)
                run.write()
    if not run.found:
        why = f"{program} printed no result; is there a GPU?"
        run.skipped.append({"name": "run_channels", "why": why})
    if process.returncode != 0:
        error = f"exit status {process.returncode}: a result was wrong, or a wait was given up"
        run.failed.append({"name": "run_channels", "error": error})


def parse_channels(line: str) -> dict[str, Any] | None:
    """Return what a line of run_channels says, None for other lines."""
    match = CHANNEL_LINE.match(line)
    if match is None:
        return None
    return {
        "gpus": int(match["gpus"]),
        "threads": int(match["threads"]),
        "what": match["what"],
        "epochs": int(match["epochs"]),
        "right": match["verdict"] == "right",
        "stressed_seconds": float(match["stressed"]) * 1e-6,
        "seconds": float(match["plain"]) * 1e-6,
    }


def peers(run: Run) -> None:
    """Other solvers on one GPU, for scale."""
    settings = run.settings
    cases = variant_cases(settings.quick)
    there = [name for name in PEERS if importlib.util.find_spec(name.split()[0]) is not None]
    for name in PEERS.keys() - there:
        run.skipped.append({"name": name, "why": "it is not installed"})
    for case in [case for case in cases if there and case.name != "poisson2d 1024²"]:
        matrix = run.matrix(case)
        if matrix is None:
            continue
        for name in there:
            one = functools.partial(measure_peer, name, matrix, settings.devices[0], ROUNDS_FEW)
            run.unit(f"{name}, {case.name}", 0.0 if settings.quick else 5.0, one)


# In the order in which they run.
PARTS = {
    part.__name__: part for part in (machine, latency, reductions, sweep, large, variants, peers)
}


def main(text: str) -> None:
    """Run the part that the settings name. What fails is in its result; the rest is an error."""
    given = json.loads(text)
    run = Run(Settings(**{**given, "devices": tuple(given["devices"])}))
    run.write()
    PARTS[run.settings.part](run)
    run.write()


if __name__ == "__main__":
    main(sys.argv[1])
