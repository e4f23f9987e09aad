"""Ways of doing the sweeps of compiled programs on a GPU, measured side by side.

Usage: python bench/gpu_sweeps.py [--seconds 120] [--out FILE.jsonl] [--part K --of N]

A record for each program and size: microseconds a step of the kernel with each way (SweepOptions),
and of the host-driven variant with some. Kernels are compiled before, by several processes. With
--of N, part K measures every N-th case, on GPU K.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from gpu_program_cases import THREE_D, arguments, find

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit.tiles import SweepOptions
from cpufree.compiler.gpu_run import gpu_runner, multiprocessors_of
from cpufree.compiler.grid import (
    GridKernel,
    grid_groups,
    grid_kernel,
    grid_passes,
    round_kernel,
    tile_kernel,
)
from cpufree.compiler.hosted import HostedRun
from cpufree.compiler.passes.tiles import NotOnChip
from cpufree.engines import gpus
from cpufree.engines.watch import Watch
from cpufree.extension import load_for_programs
from cpufree.laps import Laps

CASES = (
    *(("jacobi", 8192), ("jacobi_3d", 256), ("acoustic", 4096), ("points_27", 384)),
    *(("heat_3d", 384), ("upwind_in_place", 4096), ("jacobi", 2048), ("points_27", 128)),
    *(("gray_scott", 1024), ("life", 1024), ("jacobi", 1024), ("fdtd_2d", 1024)),
    *(("heat_3d", 128), ("gray_scott", 256)),
)
SECONDS_OF_A_RUN = 0.008
_PLAIN = SweepOptions()
WAYS = {
    "plain": _PLAIN,
    "together": replace(_PLAIN, together=True),
    "1024 of 1": replace(_PLAIN, threads=1024, resident=1),
    "64x2": replace(_PLAIN, rows=2),
    "64x8": replace(_PLAIN, rows=8),
}
ON_CHIP: dict[str, tuple[int, int | None]] = {
    "on chip": (1024, None),
    "on chip, 512": (512, None),
    **{f"on chip, {turns} turns": (1024, turns) for turns in (0, 2, 4)},
}
"""Threads, and turns of a round."""
ROUNDS: dict[str, int | None] = {
    "rounds": None,
    **{f"rounds of {turns}": turns for turns in (4, 6, 8)},
}
"""From memory: turns of a round."""
WAYS |= {
    "queue": replace(_PLAIN, order="queue"),
    "queue 64x2": replace(_PLAIN, order="queue", rows=2),
    "queue, 1024 of 1": replace(_PLAIN, order="queue", threads=1024, resident=1),
    "together 64x2": replace(_PLAIN, together=True, rows=2),
    "queue, 512 of 3": replace(_PLAIN, order="queue", resident=3),
}
HOSTED = ("plain", "64x2")


def steps_for(name: str, n: int) -> int:
    """Return the steps of a run."""
    points = n**3 if name in THREE_D else n * n
    return max(48, min(2000, int(SECONDS_OF_A_RUN / (2e-6 + points * 16 / 2e12))))


def kernel_of(name: str, n: int, label: str, processors: int) -> tuple[GridKernel, Any, Any]:
    """Return a kernel for one GPU, and what its call needs."""
    program = find(name)
    call = Arguments.of(program.signature, program.name, arguments(name, n, steps_for(name, n)), {})
    lowered = program._lowered(call)
    if label in ROUNDS:
        groups = grid_groups(lowered.program, ())
        kernel = round_kernel(groups, 1, (), processors, turns=ROUNDS[label])
    elif label in ON_CHIP:
        threads, turns = ON_CHIP[label]
        groups = grid_groups(lowered.program, ())
        kernel = tile_kernel(groups, 1, (), processors, threads=threads, turns=turns)
    else:
        made = grid_passes(lowered.program, ())
        kernel = grid_kernel(made, 1, (), processors, WAYS[label])
    return kernel, call, lowered


def compile_one(task: tuple[str, int, str, int]) -> None:
    """Compile a kernel, so that it is on disk."""
    name, n, way, device = task
    try:
        kernel, _, _ = kernel_of(name, n, way, multiprocessors_of([device]))
        text = kernel.text
        load_for_programs().make_gpu_program(
            text.on_gpu(), [device], 1 << 20, 0, text.threads, text.thread_bytes, 1
        )
    except NotOnChip:
        pass
    except Exception as error:  # the measurement will say so
        print(f"{task}: {error}"[:300], file=sys.stderr)


def measured(name: str, n: int, device: int) -> dict[str, Any]:
    """Return microseconds a step by way."""
    found: dict[str, Any] = {}
    steps = steps_for(name, n)
    for label in (*WAYS, *ON_CHIP, *ROUNDS):
        try:
            kernel, call, lowered = kernel_of(name, n, label, multiprocessors_of([device]))
            run = gpu_runner(kernel, [device], ())
            given = [call], lowered.data, lowered.scalars
            times = [run.run(*given, 5.0, Watch(None), Laps()).seconds for _ in range(3)]
            found[label] = round(1e6 * min(times) / steps, 3)
            del run  # and its memory
        except Exception as error:
            found[label] = f"{type(error).__name__}: {error}"[:200]
    return found


def measured_hosted(name: str, n: int, device: int) -> dict[str, Any]:
    """Return microseconds a step of the host-driven variant by way."""
    found: dict[str, Any] = {}
    steps = steps_for(name, n)
    for label in HOSTED:
        try:
            run = HostedRun(find(name), arguments(name, n, steps), [device], WAYS[label])
            found[label] = round(1e6 * min(run.run(20.0) for _ in range(3)) / steps, 3)
            del run
        except Exception as error:
            found[label] = f"{type(error).__name__}: {error}"[:200]
    return found


def records(cases: list[tuple[str, int]], device: int, end: float) -> Iterator[dict[str, Any]]:
    """Yield a record for each case for which there is time."""
    for name, n in cases:
        if time.monotonic() > end:
            yield {"kind": "skipped", "program": name, "n": n, "why": "the time is over"}
            continue
        yield {
            "kind": "sweeps",
            "program": name,
            "n": n,
            "steps": steps_for(name, n),
            "us": measured(name, n, device),
            "hosted_us": measured_hosted(name, n, device),
        }


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--out", default="gpu-sweeps.jsonl")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    given = parser.parse_args()
    start = time.monotonic()
    there = gpus.require_usable()
    device = there[given.part % len(there)].index
    cases = list(CASES[given.part :: given.of])
    tasks = [(name, n, way, device) for name, n in cases for way in (*WAYS, *ON_CHIP, *ROUNDS)]
    with multiprocessing.get_context("spawn").Pool(12) as pool:
        pool.map(compile_one, tasks, chunksize=4)
    print(f"compiled {len(tasks)} kernels in {time.monotonic() - start:.1f} s", flush=True)
    with open(given.out, "w") as out:
        for record in records(cases, device, start + given.seconds):
            print(json.dumps(record), file=out, flush=True)
            if record["kind"] == "sweeps":
                print(f"{record['program']} {record['n']}: hosted {record['hosted_us']}")
                ways = {k: v for k, v in record["us"].items() if isinstance(v, float)}
                print(
                    "  "
                    + "  ".join(f"{k}: {v}" for k, v in sorted(ways.items(), key=lambda x: x[1]))
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
