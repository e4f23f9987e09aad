"""Ways of doing the sweeps of compiled programs on a GPU, side by side: microseconds a step.

Seconds are those of the kernel with each way (SweepOptions), and of the host-driven variant with
some. Kernels are compiled before, by several processes.
"""

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpu_program_cases import THREE_D, arguments, find

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
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
    *(("heat_3d", 128), ("gray_scott", 256), ("lattice_boltzmann", 1024), ("v_cycles", 2048)),
)
SECONDS_OF_A_RUN = 0.008
_PLAIN = SweepOptions()
WAYS = {
    "plain": _PLAIN,
    "1024 of 1": replace(_PLAIN, threads=1024, resident=1),
    "two rows": replace(_PLAIN, most_rows=2),
    "512 of 1": replace(_PLAIN, resident=1),
    "512 of 1, two rows": replace(_PLAIN, resident=1, most_rows=2),
    "256 of 2": replace(_PLAIN, threads=256),
    "256 of 3": replace(_PLAIN, threads=256, resident=3),
    "256 of 3, two rows": replace(_PLAIN, threads=256, resident=3, most_rows=2),
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
        made = grid_passes(lowered.program, (), 1)
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


def by_kernel(name: str, n: int, label: str, device: int) -> Callable[[], float]:
    """Return what runs a kernel, and the seconds of a step."""
    kernel, call, lowered = kernel_of(name, n, label, multiprocessors_of([device]))
    run = gpu_runner(kernel, [device], ())
    given = [call], lowered.data, lowered.scalars
    return lambda: run.run(*given, 5.0, Watch(None), Laps()).seconds / steps_for(name, n)


def by_host(name: str, n: int, label: str, device: int) -> Callable[[], float]:
    """Return what runs the host-driven variant, and the seconds of a step."""
    steps = steps_for(name, n)
    run = HostedRun(find(name), arguments(name, n, steps), [device], WAYS[label])
    return lambda: float(run.run(20.0)) / steps


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    (name, n), device = case.program, gpus.require_usable()[case.gpu].index
    labels = [label for label in (*WAYS, *ON_CHIP, *ROUNDS) if case.asks(label)]
    with multiprocessing.get_context("spawn").Pool(12) as pool:
        pool.map(compile_one, [(name, n, label, device) for label in labels])
    last: dict[str, Callable[[], float]] = {}  # one at a time: each has memory on the GPU

    def call(make: Any, label: str) -> float:
        key = f"{make.__name__} {label}"
        if key not in last:
            last.clear()
            last[key] = make(name, n, label, device)
        return min(last[key]() for _ in range(3))

    calls = {label: partial(call, by_kernel, label) for label in labels}
    yield calls | {f"by host, {label}": partial(call, by_host, label) for label in HOSTED}


BENCH = Bench(
    name="sweeps",
    set_up=set_up,
    axes={"program": {f"{name} {n}": (name, n) for name, n in CASES}, "gpu": (0,)},
    ours="plain",
    unit="µs",
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
