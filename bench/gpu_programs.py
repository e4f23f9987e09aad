"""Compiled programs on GPUs, against CuPy, JAX and the hand-written Jacobi kernels.

Usage: python bench/gpu_programs.py [--seconds 200] [--out FILE.jsonl] [--parts jacobi,programs]

Every line of the file is a record; the first has machine, versions, date and command. Seconds are
medians of whole calls with arrays on the GPU, warm, for one step; ratios compare within one run. What
is left when the time is over is left out, and said.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests/python/support")]

import program_rivals  # noqa: E402
import records  # noqa: E402

import cpufree  # noqa: E402
from cpufree import env  # noqa: E402
from cpufree.compiler.arguments import Arguments  # noqa: E402
from cpufree.compiler.emit.tiles import THREADS, Tile, choose_tile  # noqa: E402
from cpufree.compiler.gpu_run import GpuRun, multiprocessors_of  # noqa: E402
from cpufree.compiler.grid import grid_kernel, grid_passes  # noqa: E402
from cpufree.compiler.hosted import HostedRun  # noqa: E402
from cpufree.engines import gpus  # noqa: E402
from cpufree.engines.watch import Watch  # noqa: E402
from cpufree.laps import Laps  # noqa: E402

grids: Any = importlib.import_module("grid_programs")
REPEATS = 5
SECONDS_OF_A_CALL = 0.03


@cpufree.program
def jacobi(u, new, steps):
    for _ in range(steps):
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, new = new, u


@cpufree.program
def jacobi_3d(u, new, steps):
    for _ in range(steps):
        new[1:-1, 1:-1, 1:-1] = (
            u[:-2, 1:-1, 1:-1]
            + u[2:, 1:-1, 1:-1]
            + u[1:-1, :-2, 1:-1]
            + u[1:-1, 2:, 1:-1]
            + u[1:-1, 1:-1, :-2]
            + u[1:-1, 1:-1, 2:]
        ) * (1 / 6)
        u, new = new, u


def arguments(name: str, n: int, steps: int) -> tuple[Any, ...]:
    """Return the arguments of a program for grids of n points a side."""
    rng = np.random.default_rng(1)

    def grid(*shape: int) -> Any:
        return rng.random(shape)

    made: dict[str, Callable[[], tuple[Any, ...]]] = {
        "jacobi_1d": lambda: (grid(n * n), grid(n * n), steps),
        "jacobi_2d": lambda: (grid(n, n), grid(n, n), steps),
        "heat_3d": lambda: (grid(n, n, n), grid(n, n, n), steps),
        "fdtd_2d": lambda: (grid(n, n), grid(n, n), grid(n, n), grid(steps), steps),
        "shallow_water": lambda: (
            *(1 + 0.1 * grid(n, n), np.zeros((n + 1, n)), np.zeros((n, n + 1))),
            *(9.81, 1e-4, steps),
        ),
        "gray_scott": lambda: (grid(n, n), 0.3 * grid(n, n), 0.06, 0.062, steps),
        "life": lambda: (rng.integers(0, 2, (n, n)).astype(np.int32), steps),
        "points_27": lambda: (grid(n, n, n).astype(np.float32), 1 / 27, steps),
        "acoustic": lambda: (
            *(grid(n, n), grid(n, n), 0.01 * grid(n, n)),
            *(grids._second_derivative(8), steps),
        ),
        "upwind_in_place": lambda: (grid(n, n), 0.3, steps),
        "cavity_flow": lambda: (
            *(0.1 * grid(n, n) for _ in range(3)),
            *(1e-5, 0.1, 0.1, 1.0, 0.1, steps, 10),
        ),
        "jacobi": lambda: (grid(n, n), grid(n, n), steps),
        "jacobi_3d": lambda: (grid(n, n, n), grid(n, n, n), steps),
    }
    return made[name]()


THREE_D = ("heat_3d", "points_27", "jacobi_3d")
PROGRAMS = (
    *("jacobi_2d", "heat_3d", "fdtd_2d", "shallow_water", "gray_scott", "acoustic", "life"),
    *("points_27", "jacobi_1d", "upwind_in_place", "cavity_flow"),
)
SIZES = ((1024, 128), (256, 64), (4096, 384))


class Clock:
    """The time that is left for all."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.end - time.monotonic()


def median(call: Callable[[], Any], sync: Callable[[], Any]) -> float:
    """Return the median of the seconds of a call, after one that warms up."""
    call()
    sync()
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        sync()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def steps_for(points: int) -> int:
    """Return the steps of a call: enough that a call of the fastest takes a while."""
    step = 3e-6 + points * 16 / 2e12
    return max(20, min(4000, int(SECONDS_OF_A_CALL / step)))


def on_gpu(cupy: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments whose arrays of two dimensions and more, or large ones, are CuPy's."""
    return tuple(cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args)


def ours(cupy: Any, program: Any, args: tuple[Any, ...], pes: int) -> dict[str, Any]:
    """Measure a compiled program."""
    given = on_gpu(cupy, args)
    begin = time.perf_counter()
    program.run(given, pes=pes, wait_limit=5)
    first = time.perf_counter() - begin
    seconds = median(lambda: program.run(given, pes=pes, wait_limit=5), lambda: None)
    run = next(reversed(program._gpu_runs.values()))
    return {
        "seconds": seconds,
        "first_call": first,
        "timings": dict(program.timings),
        "pes": program.pes,
        "blocks": run.blocks,
        "barriers": run.kernel.text.barriers,
    }


def hosted(cupy: Any, program: Any, args: tuple[Any, ...], devices: list[int]) -> dict[str, Any]:
    """Measure the host-driven variant of a program: seconds of a run alone, graphs recorded before."""
    run = HostedRun(program, on_gpu(cupy, args), devices)
    run.run(20.0)
    seconds = statistics.median([run.run(20.0) for _ in range(REPEATS)])
    return {"kernel": seconds, "gpus": len(run.devices), "kernels": len(run.text.groups)}


def rivals(cupy: Any, jax: Any, name: str, args: tuple[Any, ...]) -> Iterator[tuple[str, float]]:
    """Yield names and seconds of a call of what others have."""
    if cupy is not None:
        given = on_gpu(cupy, args)
        sync = cupy.cuda.get_current_stream().synchronize
        plain = getattr(grids, name).function if name != "cavity_flow" else None
        if plain is not None:
            yield "cupy", median(lambda: plain(*given), sync)
        fused = program_rivals.cupy_rivals(cupy).get(name)
        if fused is not None:
            yield "cupy_fused", median(lambda: fused(*given), sync)
    if jax is not None:
        step = program_rivals.jax_steps(jax.numpy).get(name)
        if step is not None:
            yield "jax", _jax_seconds(jax, step, name, args)


def _jax_seconds(jax: Any, step: Any, name: str, args: tuple[Any, ...]) -> float:
    counts = {"fdtd_2d": 3, "shallow_water": 3, "life": 1, "points_27": 1, "upwind_in_place": 1}
    count = counts.get(name, 2)
    state = tuple(jax.numpy.asarray(a) for a in args[:count])
    others = tuple(
        jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a for a in args[count:-1]
    )

    def run(s: Any) -> Any:
        return jax.lax.fori_loop(0, args[-1], lambda t, x: step(t, x, others), s)

    compiled = jax.jit(run)
    last: list[Any] = []

    def call() -> None:
        last[:] = [compiled(state)]

    return median(call, lambda: jax.block_until_ready(last[0]))


def measure_programs(
    cupy: Any, jax: Any, there: list[int], counts: list[int], clock: Clock
) -> Iterator[Any]:
    """Yield a record for each program, size and number of GPUs."""
    for flat, deep in SIZES:
        for name in PROGRAMS:
            n = deep if name in THREE_D else flat
            if clock.left() < 8:
                yield {"kind": "skipped", "program": name, "n": n, "why": "the time is over"}
                continue
            points = n**3 if name in THREE_D else n * n
            steps = steps_for(points) // (10 if name == "cavity_flow" else 1) + 1
            args = arguments(name, n, steps)
            record: dict[str, Any] = {"kind": "program", "program": name, "n": n, "steps": steps}
            for pes in counts:
                program, devices = getattr(grids, name), there[:pes]
                record[f"ours_{pes}"] = tried(lambda p=pes: ours(cupy, program, args, p))
                record[f"hosted_{pes}"] = tried(lambda: hosted(cupy, program, args, devices))
            found = record["rivals"] = {}
            try:
                for rival, seconds in rivals(cupy, jax, name, args):
                    found[rival] = seconds
            except Exception as error:
                record["rivals_error"] = f"{type(error).__name__}: {error}"[:300]
            yield record


def tried(f: Callable[[], Any]) -> Any:
    """Return what a function returns, or its error: the others are to go on."""
    try:
        return f()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:2000]}


def tried_all(f: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield what a function yields; an error ends it, and is a record."""
    try:
        yield from f()
    except Exception as error:
        yield {"kind": "error", "error": f"{type(error).__name__}: {error}"[:1000]}


def measure_jacobi(
    cupy: Any, there: list[int], counts: list[int], clock: Clock
) -> Iterator[Any]:
    """Yield records of compiled Jacobi iterations and of the hand-written kernels."""
    for program, n in ((jacobi, 2048), (jacobi, 8192), (jacobi_3d, 256)):
        for kind in (np.float64, np.float32):
            if clock.left() < 8:
                return
            points = n**3 if program is jacobi_3d else n * n
            steps = steps_for(points)
            args = arguments(program.name, n, steps)
            args = tuple(a.astype(kind) if isinstance(a, np.ndarray) else a for a in args)
            record: dict[str, Any] = {
                "kind": "jacobi", "program": program.name, "n": n, "steps": steps,
                "type": np.dtype(kind).name,
            }  # fmt: skip
            for pes in counts:
                record[f"ours_{pes}"] = tried(lambda p=pes: ours(cupy, program, args, p))
                devices = there[:pes]
                record[f"hosted_{pes}"] = tried(lambda: hosted(cupy, program, args, devices))
                record[f"hand_{pes}"] = tried(lambda p=pes: hand_written(args[0], steps, p))
            yield record


TUNED = (("jacobi_2d", 1024), ("jacobi", 8192), ("jacobi_3d", 256), ("points_27", 128))
SHAPES = tuple((lanes, rows) for lanes in (32, 64, 128) for rows in (1, 2, 4, 8))


def measure_tiles(cupy: Any, there: list[int], counts: list[int], clock: Clock) -> Iterator[Any]:
    """Yield the seconds of kernels with other tiles, and other numbers of blocks, on one GPU."""
    for name, n in TUNED:
        if clock.left() < 8:
            return
        program = {"jacobi": jacobi, "jacobi_3d": jacobi_3d}.get(name) or getattr(grids, name)
        steps = steps_for(n**3 if name in THREE_D else n * n)
        given = on_gpu(cupy, arguments(name, n, steps))
        found = {}
        for lanes, rows in SHAPES:
            tile = Tile(lanes, THREADS // lanes, rows)
            found[f"{lanes}x{rows}"] = tried(lambda t=tile: tuned(program, given, there[0], t, 4))
        for most in (1, 2, 3):
            found[f"blocks {most}"] = tried(lambda m=most: tuned(program, given, there[0], None, m))
        yield {"kind": "tiles", "program": name, "n": n, "steps": steps, "kernel": found}


def tuned(program: Any, args: tuple[Any, ...], device: int, tile: Tile | None, most: int) -> Any:
    """Return the median seconds of a kernel with a tile, and at most so many blocks a processor."""
    call = Arguments.of(program.signature, program.name, args, {})
    lowered = program._lowered(call)
    processors = multiprocessors_of([device])
    choose = choose_tile if tile is None else lambda counts, rows, m: tile
    kernel = grid_kernel(grid_passes(lowered.program, ()), 1, (), processors, choose)
    tiles = min(kernel.text.most_tiles, most * processors)
    run = GpuRun(replace(kernel, text=replace(kernel.text, most_tiles=tiles)), [device])
    seconds = [run.run(call, lowered, 5.0, Watch(None), Laps()).seconds for _ in range(4)]
    return statistics.median(seconds[1:])


FIRST = """
import sys, time, json, numpy as np
sys.path[:0] = json.loads(sys.argv[1])
import grid_programs as grids
a, b = np.ones((1000, 1000)), np.ones((1000, 1000))
calls = []
for _ in range(3):
    begin = time.perf_counter()
    grids.jacobi_2d.run((a, b, 10), engine="cuda_p2p", pes=1)
    calls.append({"seconds": time.perf_counter() - begin, **grids.jacobi_2d.timings})
print(json.dumps(calls))
"""


def measure_first_calls() -> Iterator[Any]:
    """Yield the seconds of first and later calls: with an empty cache of kernels, and a full one."""
    with tempfile.TemporaryDirectory() as cache:
        environment = env.with_kernel_cache(cache)
        for what in ("empty cache", "cache of another process"):
            command = [sys.executable, "-c", FIRST, json.dumps(sys.path)]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=60
            )
            calls = json.loads(done.stdout) if done.returncode == 0 else done.stderr[-500:]
            yield {"kind": "first calls", "what": what, "calls": calls}


def hand_written(u: Any, steps: int, pes: int) -> dict[str, float]:
    """Measure the kernel of cpufree.stencil: seconds of the kernel alone."""
    seconds = [
        cpufree.stencil.jacobi(u, steps, engine="cuda_p2p", pes=pes, wait_limit=5).seconds
        for _ in range(3)
    ]
    return {"kernel": statistics.median(seconds)}


def line_of(record: dict[str, Any]) -> str:
    """Return a record as a line of a table: microseconds a step."""
    if record["kind"] == "tiles":
        steps = record["steps"]
        times = {
            k: f"{1e6 * v / steps:.2f}" if isinstance(v, float) else v
            for k, v in record["kernel"].items()
        }
        return f"tiles {record['program']} {record['n']}: {times}"
    if record["kind"] not in ("program", "jacobi"):
        return json.dumps(record)[:700]
    steps = record["steps"]
    cells = []
    for key, value in record.items():
        if isinstance(value, dict) and "error" in value:
            cells.append(f"{key} {value['error'][:70]}")
        elif key.startswith("ours"):
            kernel = value["timings"]["kernel"]
            cells.append(f"{key} {1e6 * value['seconds'] / steps:.2f} (k {1e6 * kernel / steps:.2f})")
        elif key.startswith(("hand", "hosted")):
            cells.append(f"{key} {1e6 * value['kernel'] / steps:.2f}")
        elif key == "rivals":
            cells += [f"{name} {1e6 * s / steps:.2f}" for name, s in value.items()]
    kind = f" {record['type']}" if "type" in record else ""
    error = f" {record['rivals_error'][:80]}" if "rivals_error" in record else ""
    return f"{record['program']:16s}{record['n']:6d}{kind}  " + "  ".join(cells) + error


def summary(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the geometric means of ratios, best of the others over ours on one GPU."""
    for name, chosen in (("small", (64, 128, 256, 1024)), ("large", (384, 4096))):
        ratios = [
            min(r["rivals"].values()) / r["ours_1"]["seconds"]
            for r in found
            if r["kind"] == "program" and r["n"] in chosen
            and r.get("rivals") and "seconds" in r.get("ours_1", {})
        ]  # fmt: skip
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            yield f"{name}: {len(ratios)} cases, geometric mean {mean:.2f} x, least {min(ratios):.2f}"
    for name, chosen in (("small", (64, 128, 256, 1024)), ("large", (384, 4096))):
        ratios = [
            r["hosted_2"]["kernel"] / r["ours_2"]["timings"]["kernel"]
            for r in found
            if r["kind"] == "program" and r["n"] in chosen
            and "kernel" in r.get("hosted_2", {}) and "timings" in r.get("ours_2", {})
        ]  # fmt: skip
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            yield f"two GPUs, {name}: host-driven / ours {mean:.2f} x, least {min(ratios):.2f}"
    for r in found:
        if r["kind"] == "jacobi":
            for pes in (1, 2):
                mine, hand = r.get(f"ours_{pes}", {}), r.get(f"hand_{pes}", {})
                if "timings" in mine and "kernel" in hand:
                    ratio = mine["timings"]["kernel"] / hand["kernel"]
                    yield f"{r['program']} {r['n']} {r['type']} {pes} GPU: {ratio:.2f} x the hand-written"


def head(there: list[Any], modules: dict[str, Any]) -> dict[str, Any]:
    """Return the record that says where and how."""
    return {
        "kind": "machine",
        "gpus": [gpu.name for gpu in there],
        "versions": {
            "cpufree": cpufree.__version__,
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
    parser.add_argument("--parts", default="first,jacobi,tiles,programs")
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
    counts = [n for n in (1, 2) if n <= len(there)]
    found: list[dict[str, Any]] = []
    with open(given.out, "w") as out:
        parts = {
            "jacobi": lambda: measure_jacobi(cupy, numbers, counts, clock),
            "tiles": lambda: measure_tiles(cupy, numbers, counts, clock),
            "first": lambda: tried_all(measure_first_calls),
            "programs": lambda: measure_programs(cupy, jax, numbers, counts, clock),
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
