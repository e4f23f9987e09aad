"""Compiled programs against host-driven ones, hand-written kernels, and others' compilers.

Microseconds of a step. On GPUs, whole warm calls with arrays on the GPU, against CuPy and JAX, and
`kernel`, to compare with the host-driven variant and the hand-written Jacobi kernels, whose times
are those of the run alone. On the CPU against NumPy, numba (parallel) and DaCe's own code
generator. CuPy does a tenth of the steps, for it takes the same time for each.
"""

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from gpu_program_cases import PROGRAMS, THREE_D, arguments, find, grids, plain, side, steps_for
from program_rivals import cupy_rivals, dace_rivals, jax_seconds

import cpufree
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.compiler.hosted import HostedRun
from cpufree.engines import gpus


def module(name: str) -> Any:
    """Return a module, None where it is not installed."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def ours(program: Any, args: tuple[Any, ...], steps: int, **where: Any) -> dict[str, Any]:
    """Return what a step of a compiled program takes."""
    begin = time.perf_counter()
    program.run(args, **where)
    seconds = time.perf_counter() - begin
    found = {"seconds": seconds / steps, "kernel": program.timings["kernel"] / steps}
    if program.engine == "cuda_p2p":
        engine = list(program._gpu_runs)[-1].engine
        on_chip = engine.kernel.text.on_chip is not None
        found |= {"blocks": engine.blocks, "barriers": engine.kernel.text.barriers}
        found["on_chip"] = on_chip
    return found


def run_alone(make: Callable[[], Callable[[], float]], steps: int) -> Call:
    """Return a contender of whom only the run is timed; it is made by its first call."""
    made: list[Callable[[], float]] = []

    def call() -> dict[str, float]:
        made[:] = made or [make()]
        seconds = made[0]() / steps
        return {"seconds": seconds, "kernel": seconds}

    return call


def on_gpus(case: Case, program: Any, args: tuple[Any, ...], steps: int) -> dict[str, Call]:
    """Return the contenders on GPUs."""
    cupy, jax = module("cupy"), module("jax")
    given = tuple(cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args)
    devices = [gpu.index for gpu in gpus.require_usable()][: case.pes]
    where = {"engine": "cuda_p2p", "pes": case.pes, "wait_limit": 5}

    def hosted() -> Callable[[], float]:
        run = HostedRun(program, given, devices)
        return lambda: run.run(20.0)

    def by_hand() -> float:
        return float(cpufree.stencil.jacobi(args[0], steps, **where).seconds)

    calls: dict[str, Call] = {
        "cpufree": partial(ours, program, given, steps, **where),
        "host-driven": run_alone(hosted, steps),
    }
    if case.program in ("jacobi", "jacobi_3d"):
        calls["hand-written"] = run_alone(lambda: by_hand, steps)
    elif case.pes == 1:
        # Fused by cupy.fuse is faster, always, where there is such a text.
        f = cupy_rivals(cupy).get(case.program) or plain(case.program)
        at = -2 if case.program == "cavity_flow" else -1
        few: int = max(1, given[at] // 10)
        fewer = (*given[:at], few, *(given[at + 1 :] if at < -1 else ()))

        def by_cupy() -> float:
            begin = time.perf_counter()
            f(*fewer)
            cupy.cuda.get_current_stream().synchronize()
            return (time.perf_counter() - begin) / few

        calls["cupy"] = by_cupy
        if jax is not None and (run := jax_seconds(jax, case.program, args)) is not None:
            calls["jax"] = lambda: run() / steps
    return calls


def on_cpu(case: Case, program: Any, args: tuple[Any, ...], steps: int) -> dict[str, Call]:
    """Return the contenders on the CPU."""
    others: dict[str, Any] = {"numpy": plain(case.program)}
    if (numba := module("numba")) is not None:
        others["numba"] = numba.njit(parallel=True)(plain(case.program))
    if case.program in (dace := dace_rivals()):
        others["dace"] = dace[case.program]

    def timed(f: Any, given: tuple[Any, ...]) -> float:
        begin = time.perf_counter()
        f(*given)
        return (time.perf_counter() - begin) / steps

    calls: dict[str, Call] = {n: partial(timed, f, grids.copies(args)) for n, f in others.items()}
    mine = partial(ours, program, grids.copies(args), steps, engine="cpu_threads")
    return {"cpufree": mine, **calls}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    n = side(case.program, case.n)
    points = n**3 if case.program in THREE_D else n * n
    usual = steps_for(points) // (10 if case.program == "cavity_flow" else 1) + 1
    steps = case.steps or usual
    args = tuple(
        a.astype(case.type) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a
        for a in arguments(case.program, n, steps)
    )
    case.facts.update(points=n, step_count=steps)
    contenders = on_cpu if case.engine == "cpu_threads" else on_gpus
    yield contenders(case, find(case.program), args, steps)


BENCH = Bench(
    name="programs",
    set_up=set_up,
    axes={
        "program": ("jacobi", "jacobi_3d", *PROGRAMS),
        "n": (1024, 4096, 256),
        "pes": (1, 2),
        "steps": (0,),
        "type": ("float64",),
        "engine": ("cuda_p2p",),
    },
    cpu={"program": PROGRAMS, "n": (1024,), "pes": (1,), "steps": (20,)}
    | {"engine": ("cpu_threads",)},
    quick={"program": ("jacobi_2d", "life"), "n": (64,), "steps": (4,)},
    ours="cpufree",
    unit="µs",
    shown=("kernel",),
    repeats=5,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
