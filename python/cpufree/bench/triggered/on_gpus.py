"""Measures triggered operations on GPUs, next to what they replace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree import stencil
from cpufree.bench import nccl
from cpufree.bench.triggered.measure import PATHS, TIMES, Series, Task, in_rounds, orders_of
from cpufree.errors import CpufreeError, UnsupportedError
from cpufree.triggered.extension import load_gpu_extension

STUDIES = ("messages", "order", "overlap", "allreduce", "jacobi", "soak", "flood")
BACK_ENDS = ("copy_engine", "block", "proxy")
FLOAT_BYTES = 4
_CHANNELS = 8  # of the long run: two operations each, a block at either end
_ALL = 132  # multiprocessors of an H100 or H200
_PACKET_BLOCK = 1024  # bytes that a block sends by packets, at least
_ONE_BLOCK = 65536  # bytes of the largest message that one block prepares


@dataclass(frozen=True)
class GpuPlan:
    """What is measured.

    Attributes
    ----------
    gpus : tuple of int
        GPUs of the PEs, two at least; the same one twice: both PEs on it, copies stay inside.
        Messages, their order and their overlap are those of the first two PEs.
    studies, back_ends : tuple of str
    sizes, vector_sizes : tuple of int
        Bytes of messages, and of vectors of float32.
    grids : tuple of int
        Rows and columns of square grids of float32.
    after : tuple of float
        Seconds that the initiator's kernel goes on computing once its data are ready.
    work : float
        Seconds that it computes before.
    repeats : int
        Rounds, each of everything in random order.
    messages, iterations : int
        How many a round measures in a row.
    epochs, triggers : int
        Of the long run, and of the flood.
    library : str
        The collective library; "": pip's, or where the system looks.
    time_limit : float
        Seconds after which nothing more is measured; what there is, is reported.
    seed : int
    """

    gpus: tuple[int, ...]
    studies: tuple[str, ...] = STUDIES
    back_ends: tuple[str, ...] = BACK_ENDS
    sizes: tuple[int, ...] = (64, 4096, 65536, 1048576, 8388608)
    vector_sizes: tuple[int, ...] = (8192, 32768, 131072, 262144, 1048576, 8388608, 67108864)
    grids: tuple[int, ...] = (256, 512, 1024, 2048, 4096)
    after: tuple[float, ...] = (0.0, 20e-6)
    work: float = 20e-6
    repeats: int = 3
    messages: int = 20
    iterations: int = 300
    epochs: int = 100_000
    triggers: int = 1_000_000
    library: str = ""
    time_limit: float = 3600.0
    seed: int = 0

    @property
    def apart(self) -> bool:
        """Whether the GPUs are different ones."""
        return len(set(self.gpus)) == len(self.gpus)

    @property
    def pair(self) -> list[int]:
        """The GPUs of the PE that sends messages and of the one that receives them."""
        return list(self.gpus[:2])


def measure(plan: GpuPlan, tell: Callable[[str], None] = lambda text: None) -> list[Series]:
    """Measure all that a plan asks for; `tell` hears of each round, and of what fails.

    What fails has its error under "error" in the detail, and is not tried again.
    """
    core = load_gpu_extension()
    end = time.monotonic() + plan.time_limit
    tasks = [
        (series, _guarded(series, run, tell, end))
        for name in plan.studies
        for series, run in _STUDIES[name](plan, core)
    ]
    return in_rounds(tasks, plan.repeats, plan.seed, tell)


def _guarded(
    series: Series, run: Callable[[], Any], tell: Callable[[str], None], end: float
) -> Callable[[], Any]:
    def guarded() -> Any:
        if "error" in series.detail or time.monotonic() > end:
            return []
        try:
            return run()
        except CpufreeError as error:
            series.detail["error"] = str(error)
            tell(f"{series.study}, {series.name}, {series.back_end}, {series.size}: {error}")
            return []

    return guarded


def _messages(plan: GpuPlan, core: ModuleType) -> Iterator[Task]:
    for size in plan.sizes:
        for path in PATHS:
            for back_end in plan.back_ends if path == "triggered" else ("none",):
                for after in plan.after:
                    yield _message_task(plan, core, (path, back_end), size, after)


def _message_task(
    plan: GpuPlan, core: ModuleType, way: tuple[str, str], size: int, after: float
) -> Task:
    path, back_end = way
    blocks = 1 if size <= _ONE_BLOCK else 32
    detail = {
        "before": plan.work,
        "after": after,
        "blocks": blocks,
        "same_gpu": len(set(plan.pair)) == 1,
    }
    series = Series("messages", path, back_end, size, detail=detail)

    def run() -> Any:
        rows, host_error, pair_error = core.messages(
            plan.pair, path, back_end, size, plan.messages, blocks, plan.work, after
        )
        errors = series.detail.setdefault("clock_errors", [])
        errors.append({"host": host_error, "pair": pair_error})
        return rows.tolist()

    return series, run


def _orders(plan: GpuPlan, core: ModuleType) -> Iterator[Task]:
    size = min(plan.sizes)
    for back_end in plan.back_ends:
        for order, name in orders_of(back_end).items():

            def run(what: tuple[str, int] = (back_end, size), order: str = order) -> Any:
                rows, *_ = core.messages(
                    plan.pair, "triggered", *what, plan.messages, 1, plan.work, 0.0, order
                )
                return rows[:, TIMES.index("seen")].tolist()

            yield Series("order", name, back_end, size, detail={"before": plan.work}), run


def _overlap(plan: GpuPlan, core: ModuleType) -> Iterator[Task]:
    for back_end in plan.back_ends if len(set(plan.pair)) == 2 else ():
        if back_end == "proxy":
            continue
        size = max(plan.sizes)
        # A block carries one operation out at a time; copy engines, as many as there are tags.
        for copies, tags in ((4, 1),) if back_end == "block" else ((4, 1), (16, 4)):
            name = f"{copies} copies of {tags} tag{'s' if tags > 1 else ''}"
            detail = {"copies": copies, "tags": tags}

            def run(
                what: tuple[str, int, int, int] = (back_end, size, copies, tags),
            ) -> Any:
                return core.overlap(plan.pair, *what, 4, 1e-3).tolist()

            yield Series("overlap", name, back_end, size, detail=detail), run


def reduce_shapes(size: int) -> list[tuple[str, int, int]]:
    """Return (way, blocks, threads) worth trying for a vector of `size` bytes."""
    shapes = [("direct", blocks, 512) for blocks in (2, 8, 32) if size <= 1 << 20]
    if size >= 1 << 18:
        shapes += [("direct", _ALL, 1024), ("ring", _ALL, 1024)]
    return shapes


def _allreduce(plan: GpuPlan, core: ModuleType) -> Iterator[Task]:
    for size in plan.vector_sizes:
        repeats = max(10, min(500, (1 << 28) // size))
        shapes = [("stores", *shape) for shape in reduce_shapes(size)]
        if size <= 1 << 20:  # three values of four bytes in sixteen: not for long vectors
            numbers = [b for b in (1, 4, 16, 64, _ALL) if b * _PACKET_BLOCK <= size or b == 1]
            shapes += [("packets", "packets", blocks, 512) for blocks in numbers[-3:]]
        for back_end in plan.back_ends:
            if back_end != "proxy" and size <= 1 << 20:
                shapes.append((back_end, "direct", 2, 512))
        for by, way, blocks, threads in shapes:
            yield _reduce_task(plan, core, (by, way, blocks, threads), size, repeats)
        for graph in (False, True):
            if plan.apart:
                yield _collective_task(plan, core, graph, size, repeats)


def _reduce_task(
    plan: GpuPlan, core: ModuleType, shape: tuple[str, str, int, int], size: int, repeats: int
) -> Task:
    by, way, blocks, threads = shape
    detail = {"blocks": blocks, "threads": threads, "repeats": repeats}
    series = Series("allreduce", f"{way}, {blocks} blocks", by, size, detail=detail)

    def run() -> list[float]:
        count = size // FLOAT_BYTES
        gpus = list(plan.gpus)
        return [core.allreduce(gpus, way, by, True, blocks, threads, count, repeats)]

    return series, run


def _collective_task(plan: GpuPlan, core: ModuleType, graph: bool, size: int, repeats: int) -> Task:
    series = Series("allreduce", "graph" if graph else "stream", "NCCL", size)
    series.detail["repeats"] = repeats

    def run() -> list[float]:
        count = size // FLOAT_BYTES
        gpus = list(plan.gpus)
        library = plan.library or nccl.find()
        return [core.collective_allreduce(gpus, library, graph, True, count, repeats)]

    return series, run


class _Expected:
    """What all ways of one grid are to give, by the CPU: no way on GPUs vouches for others.

    Computed when it is first asked for: grids that the time limit leaves out cost nothing.
    """

    def __init__(self, start: npt.NDArray[np.float32], iterations: int) -> None:
        self.start = start
        self._iterations = iterations
        self._values: npt.NDArray[np.float32] | None = None

    def values(self) -> npt.NDArray[np.float32]:
        if self._values is None:
            self._values = stencil.jacobi(self.start, self._iterations, engine="cpu_threads").u
        return self._values


def _jacobi(plan: GpuPlan, core: ModuleType) -> Iterator[Task]:
    for points in plan.grids:
        start = np.random.default_rng(1).random((points, points)).astype(np.float32)
        expected = _Expected(start, plan.iterations)
        ways = [("triggered", back_end) for back_end in plan.back_ends]
        for way, back_end in [*ways, ("at_end", "none"), ("host", "none")]:
            for blocks in (16, 64, 128 if plan.apart else 32):
                if 2 * blocks <= points - 2:
                    yield _jacobi_task(plan, core, (way, back_end, blocks), expected)


def _jacobi_task(
    plan: GpuPlan,
    core: ModuleType,
    shape: tuple[str, str, int],
    expected: _Expected,
) -> Task:
    way, back_end, blocks = shape
    start = expected.start
    detail = {"blocks": blocks, "threads": 512, "iterations": plan.iterations}
    series = Series("jacobi", f"{way}, {blocks} blocks", back_end, len(start), detail=detail)

    def run() -> list[float]:
        u = start.copy()
        gpus = list(plan.gpus)
        seconds = core.jacobi(u, plan.iterations, gpus, blocks, 512, way, back_end, 10.0)
        wrong = int(np.count_nonzero(expected.values() != u))
        if wrong:
            raise UnsupportedError(
                f"the bits differ from those of the CPU at {wrong} of {u.size} points; "
                "please report this"
            )
        return [seconds / plan.iterations]

    return series, run


def _soak(plan: GpuPlan, core: ModuleType) -> Iterator[Task]:
    for back_end in plan.back_ends:
        each = -(-plan.epochs // _CHANNELS)
        epochs = each * _CHANNELS
        detail = {"channels": _CHANNELS, "epochs_of_each": each}
        series = Series("soak", f"{epochs} epochs", back_end, 64, detail=detail)

        def run(back_end: str = back_end, series: Series = series) -> list[float]:
            each = series.detail["epochs_of_each"]
            seconds, wrong, found, expected = core.soak(
                list(plan.gpus), back_end, 8, 1, each, _CHANNELS
            )
            series.detail.update(wrong=wrong, checksum=found, expected=expected)
            if wrong or found != expected:
                raise UnsupportedError(f"{wrong} words are wrong; please report this")
            return [seconds / (each * _CHANNELS)]

        yield series, run


def _flood(plan: GpuPlan, core: ModuleType) -> Iterator[Task]:
    blocks, threads = 32, 128
    items = -(-plan.triggers // (blocks * threads)) * threads
    for back_end in plan.back_ends:
        series = Series("flood", f"{items * blocks} triggers", back_end, blocks * threads)

        def run(back_end: str = back_end) -> list[float]:
            return [core.flood(plan.gpus[0], back_end, blocks, threads, items)]

        yield series, run


_STUDIES: dict[str, Callable[[GpuPlan, ModuleType], Iterator[Task]]] = {
    "messages": _messages,
    "order": _orders,
    "overlap": _overlap,
    "allreduce": _allreduce,
    "jacobi": _jacobi,
    "soak": _soak,
    "flood": _flood,
}
