"""Compiled programs on GPUs, against CuPy, JAX and the hand-written Jacobi kernels.

Usage: python bench/gpu_programs.py [--seconds 200] [--out FILE.jsonl] [--parts jacobi,programs]

Every line of the file is a record; the first has machine, versions, date and command. Seconds are
medians of whole calls with arrays on the GPU, warm; ratios compare within one run. CuPy does a
tenth of the steps, for it takes the same time for each, and its seconds are multiplied. What is
left when the time is over is left out, and said.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import program_rivals  # noqa: E402
import records  # noqa: E402
from gpu_first_calls import measure_first_calls  # noqa: E402
from gpu_program_cases import (  # noqa: E402
    PROGRAMS,
    SIZES,
    THREE_D,
    arguments,
    find,
    plain,
    steps_for,
)
from gpu_program_tables import summary  # noqa: E402

import cpufree  # noqa: E402
from cpufree.compiler.hosted import HostedRun  # noqa: E402
from cpufree.engines import gpus  # noqa: E402
from cpufree.extension import load_gpu_core  # noqa: E402

REPEATS = 5
SECONDS_OF_REPEATS = 0.2
LEAST_SECONDS = 3.0  # that are left when another record is begun


class Clock:
    """The time that is left for all."""

    def __init__(self, seconds: float) -> None:
        self.start = time.monotonic()
        self.end = self.start + seconds

    def passed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.start

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.end - time.monotonic()


def median(call: Callable[[], Any], sync: Callable[[], Any]) -> float:
    """Return the median of the seconds of some calls, after one that warms up."""
    call()
    sync()
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        sync()
        seconds.append(time.perf_counter() - begin)
        if sum(seconds) > SECONDS_OF_REPEATS:
            break
    return statistics.median(seconds)


def on_gpu(cupy: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments whose arrays of two dimensions and more, or large ones, are CuPy's."""
    return tuple(cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args)


def ours(program: Any, args: tuple[Any, ...], pes: int) -> dict[str, Any]:
    """Measure a compiled program."""
    begin = time.perf_counter()
    program.run(args, pes=pes, wait_limit=5)
    first = time.perf_counter() - begin
    seconds = median(lambda: program.run(args, pes=pes, wait_limit=5), lambda: None)
    engine = list(program._gpu_runs)[-1].engine
    return {
        "seconds": seconds,
        "first_call": first,
        "timings": dict(program.timings),
        "pes": program.pes,
        "blocks": engine.blocks,
        "barriers": engine.kernel.text.barriers,
        "on_chip": engine.kernel.text.on_chip is not None,
    }


def hosted(program: Any, args: tuple[Any, ...], devices: list[int]) -> dict[str, Any]:
    """Measure the host-driven variant: seconds of a run alone, its graphs are there before."""
    run = HostedRun(program, args, devices)
    run.run(20.0)
    seconds = statistics.median([run.run(20.0) for _ in range(3)])
    return {"kernel": seconds, "gpus": len(run.devices), "kernels": len(run.text.kernels)}


def rivals(
    cupy: Any, jax: Any, name: str, args: tuple[Any, ...], given: tuple[Any, ...]
) -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield names of what others have, and what measures the seconds of a call."""
    if cupy is not None:
        sync = cupy.cuda.get_current_stream().synchronize
        fused = program_rivals.cupy_rivals(cupy).get(name)
        # Fused by cupy.fuse is faster, always, where there is such a text.
        found = {"cupy_fused": fused} if fused is not None else {"cupy": plain(name)}
        few, times = fewer_steps(name, given)
        for label, f in found.items():
            if f is not None:
                yield label, partial(_times, times, partial(f, *few), sync)
    if jax is not None:
        step = program_rivals.jax_steps(jax.numpy).get(name)
        if step is not None:
            yield "jax", partial(_jax_seconds, jax, step, name, args)


def fewer_steps(name: str, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], float]:
    """Return arguments with a tenth of the steps, and how many times more there were."""
    at = -2 if name == "cavity_flow" else -1
    steps = args[at]
    few = max(1, steps // 10)
    changed = list(args)
    changed[at] = few
    return tuple(changed), steps / few


def _times(times: float, call: Callable[[], Any], sync: Callable[[], Any]) -> float:
    return times * median(call, sync)


def _jax_seconds(jax: Any, step: Any, name: str, args: tuple[Any, ...]) -> float:
    counts = {"fdtd_2d": 3, "shallow_water": 3, "life": 1, "points_27": 1, "upwind_in_place": 1}
    count = counts.get(name, 2)
    state = tuple(jax.numpy.asarray(a) for a in args[:count])
    others = tuple(jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in args[count:-1])

    def run(s: Any) -> Any:
        return jax.lax.fori_loop(0, args[-1], lambda t, x: step(t, x, others), s)

    compiled = jax.jit(run)
    last: list[Any] = []

    def call() -> None:
        last[:] = [compiled(state)]

    return median(call, lambda: jax.block_until_ready(last[0]))


def measure_programs(
    cupy: Any,
    jax: Any,
    there: list[int],
    counts: list[int],
    clock: Clock,
    sizes: list[int],
    names: list[str],
) -> Iterator[Any]:
    """Yield a record for each program, size and number of GPUs."""
    for flat in sizes:
        deep = dict(SIZES)[flat]
        for name in names:
            n = deep if name in THREE_D else flat
            if clock.left() < LEAST_SECONDS:
                yield {"kind": "skipped", "program": name, "n": n, "why": "the time is over"}
                continue
            points = n**3 if name in THREE_D else n * n
            steps = steps_for(points) // (10 if name == "cavity_flow" else 1) + 1
            program, args = find(name), arguments(name, n, steps)
            record: dict[str, Any] = {"kind": "program", "program": name, "n": n, "steps": steps}
            given = on_gpu(cupy, args)
            for pes in counts:
                record[f"ours_{pes}"] = tried(ours, program, given, pes)
                record[f"hosted_{pes}"] = tried(hosted, program, given, there[:pes])
            found = record["rivals"] = {}
            for rival, measure in rivals(cupy, jax, name, args, given):
                seconds = tried(measure)
                if isinstance(seconds, float):
                    found[rival] = seconds
                else:
                    record["rivals_error"] = f"{rival}: {seconds['error']}"[:300]
            yield {**record, "at": round(clock.passed(), 1)}


def tried(f: Callable[..., Any], *args: Any) -> Any:
    """Return what a function returns, or its error: the others are to go on."""
    try:
        return f(*args)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:2000]}


def tried_all(f: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield what a function yields; an error ends it, and is a record."""
    try:
        yield from f()
    except Exception as error:
        yield {"kind": "error", "error": f"{type(error).__name__}: {error}"[:1000]}


def measure_jacobi(
    cupy: Any, there: list[int], counts: list[int], clock: Clock, kind: Any
) -> Iterator[Any]:
    """Yield records of compiled Jacobi iterations and of the hand-written kernels."""
    for name, n in (("jacobi", 2048), ("jacobi", 8192), ("jacobi_3d", 256)):
        program = find(name)
        if clock.left() < LEAST_SECONDS:
            return
        steps = steps_for(n**3 if name in THREE_D else n * n)
        u = arguments(name, n, steps)[0].astype(kind, copy=False)
        given = (cupy.asarray(u), cupy.asarray(u), steps)
        record: dict[str, Any] = {
            "kind": "jacobi", "program": name, "n": n, "steps": steps, "type": np.dtype(kind).name,
        }  # fmt: skip
        for pes in counts:
            record[f"ours_{pes}"] = tried(ours, program, given, pes)
            record[f"hosted_{pes}"] = tried(hosted, program, given, there[:pes])
            record[f"hand_{pes}"] = tried(hand_written, u, steps, pes)
        yield {**record, "at": round(clock.passed(), 1)}


def hand_written(u: Any, steps: int, pes: int) -> dict[str, float]:
    """Measure the kernel of cpufree.stencil: seconds of the kernel alone."""
    seconds = [
        cpufree.stencil.jacobi(u, steps, engine="cuda_p2p", pes=pes, wait_limit=5).seconds
        for _ in range(2)
    ]
    return {"kernel": min(seconds)}


def line_of(record: dict[str, Any]) -> str:
    """Return a record as a line of a table: microseconds a step."""
    if record["kind"] not in ("program", "jacobi"):
        return json.dumps(record)[:700]
    steps = record["steps"]
    cells = []
    for key, value in record.items():
        if isinstance(value, dict) and "error" in value:
            cells.append(f"{key} {value['error'][:70]}")
        elif key.startswith("ours"):
            kernel = value["timings"]["kernel"]
            cells.append(
                f"{key} {1e6 * value['seconds'] / steps:.2f} (k {1e6 * kernel / steps:.2f})"
            )
        elif key.startswith(("hand", "hosted")):
            cells.append(f"{key} {1e6 * value['kernel'] / steps:.2f}")
        elif key == "rivals":
            cells += [f"{name} {1e6 * s / steps:.2f}" for name, s in value.items()]
    kind = f" {record['type']}" if "type" in record else ""
    error = f" {record['rivals_error'][:80]}" if "rivals_error" in record else ""
    return f"{record['program']:16s}{record['n']:6d}{kind}  " + "  ".join(cells) + error


def head(there: list[Any], modules: dict[str, Any]) -> dict[str, Any]:
    """Return the record that says where and how."""
    return {
        "kind": "machine",
        "gpus": [gpu.name for gpu in there],
        "versions": {
            "cpufree": cpufree.__version__,
            "kernel compiler": tried(lambda: load_gpu_core().kernel_compiler()),
            "numpy": np.__version__,
            **{k: m.__version__ for k, m in modules.items() if m is not None},
        },
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": records.command_line(),
    }


def module(name: str) -> Any:
    """Return a module, None where it is not installed."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--out", default="gpu-programs.jsonl")
    parser.add_argument("--parts", default="jacobi,programs,first")
    parser.add_argument("--sizes", default="1024,4096,256", help="of programs, points a side")
    parser.add_argument("--gpus", default="1,2", help="numbers of GPUs")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    given = parser.parse_args()
    there = gpus.require_usable()
    cupy, jax = module("cupy"), module("jax")
    if cupy is None:
        print("CuPy is not installed: arrays on GPUs come from it", file=sys.stderr)
        return 1
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
    clock = Clock(given.seconds)
    numbers = [gpu.index for gpu in there]
    counts = [int(n) for n in given.gpus.split(",")]
    counts = [n for n in counts if n <= len(there)]
    found: list[dict[str, Any]] = []
    with open(given.out, "w") as out:
        parts: dict[str, Callable[[], Iterator[Any]]] = {
            "jacobi": lambda: measure_jacobi(cupy, numbers, counts, clock, np.float64),
            "jacobi_float32": lambda: measure_jacobi(cupy, numbers, counts, clock, np.float32),
            "first": lambda: tried_all(measure_first_calls) if clock.left() > 20 else iter(()),
            "programs": lambda: measure_programs(
                *(cupy, jax, numbers, counts, clock),
                [int(n) for n in given.sizes.split(",")],
                given.programs.split(","),
            ),
        }
        start = head(there, {"cupy": cupy, "jax": jax})
        chosen = [parts[name] for name in given.parts.split(",")]
        for record in itertools.chain([start], *(part() for part in chosen)):
            found.append(record)
            print(json.dumps(record), file=out, flush=True)
            print(line_of(record), flush=True)
    for line in summary(found):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
