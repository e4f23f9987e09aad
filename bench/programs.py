"""Compiled programs against host-driven ones, hand-written kernels, and others' compilers.

Microseconds of a step. On GPUs, whole warm calls with arrays on the GPU, against CuPy and JAX, and
`kernel`, to compare with the host-driven variant and the hand-written Jacobi kernels, whose times
are those of the run alone; `call`: seconds, of which the first one compiles. On the CPU against
NumPy, numba (parallel) and DaCe's own code generator. CuPy does a tenth of the steps, for it takes
the same time for each. `copy` copies the arrays of the answer once: what a step moves at least. In
the end the answers of all are compared.
"""

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from gpu_program_cases import (
    PROGRAMS,
    THREE_D,
    arguments,
    find,
    grids,
    plain,
    side,
    steps_for,
    with_steps,
)
from program_rivals import answer_of, cupy_rivals, dace_rivals, jax_run

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
    kernel = program.timings["kernel"] / steps
    found = {"seconds": seconds / steps, "kernel": kernel, "call": seconds}
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


Answer = Callable[[int], list[Any]]
"""Does N steps from the beginning; returns the arrays that have the answer."""


def on_gpus(
    case: Case, program: Any, args: tuple[Any, ...], steps: int
) -> tuple[dict[str, Call], dict[str, Answer]]:
    """Return the contenders on GPUs, and what gives the answer of each."""
    cupy, jax = module("cupy"), module("jax")

    def given(count: int) -> tuple[Any, ...]:
        there = (cupy.array(a) if isinstance(a, np.ndarray) else a for a in args)
        return with_steps(case.program, tuple(there), count)

    devices = [gpu.index for gpu in gpus.require_usable()][: case.pes]
    where = {"engine": "cuda_p2p", "pes": case.pes, "wait_limit": 5}
    mine = given(steps)

    def hosted() -> Callable[[], float]:
        run = HostedRun(program, mine, devices)
        return lambda: run.run(20.0)

    def by_hand() -> float:
        return float(cpufree.stencil.jacobi(args[0], steps, **where).seconds)

    def copies() -> float:
        begin = time.perf_counter()
        for _ in range(_COPIES):
            for one, other in zip(answer_of(case.program, mine), into, strict=True):
                other[...] = one
        cupy.cuda.get_current_stream().synchronize()
        return (time.perf_counter() - begin) / _COPIES

    into = [cupy.empty_like(a) for a in answer_of(case.program, mine)]
    calls: dict[str, Call] = {
        "cpufree": partial(ours, program, mine, steps, **where),
        "host-driven": run_alone(hosted, steps),
        "copy": copies,
    }
    answers = {"cpufree": answer(case, lambda *a: program.run(a, **where), given)}
    if case.program in ("jacobi", "jacobi_3d"):
        calls["hand-written"] = run_alone(lambda: by_hand, steps)
    elif case.pes == 1:
        # Fused by cupy.fuse is faster, always, where there is such a text.
        f = cupy_rivals(cupy).get(case.program) or plain(case.program)
        few = max(1, steps // 10)
        fewer = given(few)

        def by_cupy() -> dict[str, float]:
            begin = time.perf_counter()
            f(*fewer)
            cupy.cuda.get_current_stream().synchronize()
            seconds = time.perf_counter() - begin
            return {"seconds": seconds / few, "call": seconds}

        calls["cupy"] = by_cupy
        answers["cupy"] = answer(case, f, given)
        run = jax_run(jax, case.program, args) if jax is not None else None
        if run is not None:
            calls["jax"] = lambda: by_jax(run, steps)
            answers["jax"] = lambda count: answer_of(case.program, run(count))
    return calls, answers


def by_jax(run: Callable[[int], Any], steps: int) -> dict[str, float]:
    """Return what a step by JAX takes."""
    begin = time.perf_counter()
    run(steps)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds / steps, "call": seconds}


def answer(
    case: Case, f: Callable[..., Any], given: Callable[[int], tuple[Any, ...]]
) -> Callable[[int], list[Any]]:
    """Return what gives the answer of a program that writes into its arguments."""

    def call(count: int) -> list[Any]:
        values = given(count)
        f(*values)
        return answer_of(case.program, values)

    return call


def check(answers: Mapping[str, Answer], measured: Mapping[str, Call]) -> None:
    """Raise RuntimeError where contenders differ from ours by more than rounding."""
    expected = answers["cpufree"](_CHECKED)
    for name in [n for n in answers if n in measured and n != "cpufree"]:
        for mine, other in zip(expected, answers[name](_CHECKED), strict=True):
            mine, other = (a.get() if hasattr(a, "get") else np.asarray(a) for a in (mine, other))
            near = 1e-4 if mine.dtype == np.float32 else 1e-9
            if not np.allclose(mine, other, rtol=near, atol=near):
                raise RuntimeError(f"{name} has another answer after {_CHECKED} steps")


_COPIES = 100
_CHECKED = 4  # steps; even, for programs whose arrays change places


def on_cpu(
    case: Case, program: Any, args: tuple[Any, ...], steps: int
) -> tuple[dict[str, Call], dict[str, Answer]]:
    """Return the contenders on the CPU, and what gives the answer of each."""
    others: dict[str, Any] = {"numpy": plain(case.program)}
    if (numba := module("numba")) is not None:
        others["numba"] = numba.njit(parallel=True)(plain(case.program))
    if case.program in (dace := dace_rivals()):
        others["dace"] = dace[case.program]

    def timed(f: Any, given: tuple[Any, ...]) -> float:
        begin = time.perf_counter()
        f(*given)
        return (time.perf_counter() - begin) / steps

    def given(count: int) -> tuple[Any, ...]:
        return with_steps(case.program, grids.copies(args), count)

    calls: dict[str, Call] = {n: partial(timed, f, grids.copies(args)) for n, f in others.items()}
    mine = partial(ours, program, grids.copies(args), steps, engine="cpu_threads")
    own = {"cpufree": lambda *a: program.run(a, engine="cpu_threads"), "numpy": others["numpy"]}
    return {"cpufree": mine, **calls}, {n: answer(case, f, given) for n, f in own.items()}


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
    calls, answers = contenders(case, find(case.program), args, steps)
    yield calls
    check(answers, calls)


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
    apart=("copy",),
    unit="µs",
    shown=("kernel", "call"),
    repeats=5,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
