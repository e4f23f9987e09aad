"""Measures messages, Jacobi iterations and all-reduces: all in each round, in random order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.triggered.extension import load_extension

STUDIES = ("messages", "order", "jacobi", "allreduce")
# Paths of a message, by the names of LeBeane et al. 2017: where a NIC is used, and where not.
PATHS = {
    "host": "HDN: the kernel ends, the host copies",
    "at_end": "GDS: a put triggered by the kernel's end",
    "triggered": "GPU-TN: a put triggered by the kernel",
    "stores": "native: the kernel stores",
}
NIC_PATHS = ("at_end", "triggered")
ORDERS = {
    "ahead": "put posted ahead",
    "post_first": "posted, then launched",
    "launch_first": "launched, then posted",
    "open": "put posted ahead, its place by the trigger",
}
"""When the put of a message is posted, and what it is called."""
NOT_OPEN = ("copy_engine", "libfabric")
"""How the names of back ends begin whose triggers are counted, and supply nothing."""
TIMES = ("begun", "ready", "sent", "ended", "observed", "nic_begun", "nic_ended", "seen")
"""Columns of a message's times, in seconds since the launch."""
OVERLAP_TIMES = ("alone", "beside", "all_seen", "one_copy", "plain_copy")
"""Columns of copies beside a computation, in seconds."""
VALUE_BYTES = 8


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes
    ----------
    studies, back_ends : tuple of str
    sizes : tuple of int
        Bytes of messages and of vectors, multiples of 8.
    grids : tuple of int
        Rows and columns of square grids.
    pes, blocks : int
        Of Jacobi iterations and all-reduces. Messages go from one PE to another.
    repeats : int
        Rounds.
    messages, iterations, sums : int
        How many of each a round measures in a row.
    work : float
        Seconds that the kernel computes before its data are ready, and again after.
    seed : int
        Of the random order.
    """

    studies: tuple[str, ...] = STUDIES
    back_ends: tuple[str, ...] = ("thread",)
    sizes: tuple[int, ...] = (64, 4096, 65536, 1048576)
    grids: tuple[int, ...] = (64, 256)
    pes: int = 2
    blocks: int = 1
    repeats: int = 5
    messages: int = 10
    iterations: int = 50
    sums: int = 10
    work: float = 20e-6
    seed: int = 0
    gpus: None = None


@dataclass
class Series:
    """Samples of one thing: of messages a row of TIMES each, else seconds of one piece of work.

    `detail` says what else was set, and what of the machine belongs to the samples.
    """

    study: str
    name: str
    back_end: str
    size: int
    samples: list[Any] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)

    def array(self) -> npt.NDArray[np.float64]:
        """Return all samples."""
        return np.asarray(self.samples, np.float64)


Task = tuple[Series, Callable[[], Any]]


def measure(plan: Plan, tell: Callable[[str], None] = lambda text: None) -> list[Series]:
    """Measure all that a plan asks for; `tell` hears of each round."""
    return in_rounds(list(_tasks(plan, load_extension())), plan.repeats, plan.seed, tell)


def in_rounds(
    tasks: list[Task], repeats: int, seed: int, tell: Callable[[str], None]
) -> list[Series]:
    """Run all tasks in each round, in random order."""
    order = random.Random(seed)
    for number in range(repeats):
        tell(f"round {number + 1} of {repeats}")
        for series, run in order.sample(tasks, len(tasks)):
            series.samples.extend(run())
    return [series for series, _ in tasks]


def _tasks(plan: Plan, core: ModuleType) -> Iterator[Task]:
    if "messages" in plan.studies:
        yield from _messages(plan, core)
    if "order" in plan.studies:
        yield from _orders(plan, core)
    if "jacobi" in plan.studies:
        yield from _jacobi(plan, core)
    if "allreduce" in plan.studies:
        yield from _allreduce(plan, core)


def _messages(plan: Plan, core: ModuleType) -> Iterator[Task]:
    for size in plan.sizes:
        for path in PATHS:
            for back_end in plan.back_ends if path in NIC_PATHS else ("none",):

                def run(path: str = path, size: int = size, back_end: str = back_end) -> Any:
                    nic = "thread" if back_end == "none" else back_end
                    return core.messages(path, size, plan.messages, plan.work, nic).tolist()

                yield Series("messages", path, back_end, size), run


def orders_of(back_end: str) -> dict[str, str]:
    """Return the orders that a back end has."""
    counts = back_end.startswith(NOT_OPEN)
    return {order: name for order, name in ORDERS.items() if order != "open" or not counts}


def _orders(plan: Plan, core: ModuleType) -> Iterator[Task]:
    size = min(plan.sizes)
    for back_end in plan.back_ends:
        for order, name in orders_of(back_end).items():

            def run(order: str = order, back_end: str = back_end) -> Any:
                rows = core.messages("triggered", size, plan.messages, plan.work, back_end, order)
                return rows[:, TIMES.index("seen")].tolist()

            yield Series("order", name, back_end, size), run


def _jacobi(plan: Plan, core: ModuleType) -> Iterator[Task]:
    for points in plan.grids:
        start = np.random.default_rng(1).random((points, points))
        for by_host, names in ((True, ("none",)), (False, plan.back_ends)):
            for back_end in names:

                def run(
                    u: Any = start, by_host: bool = by_host, back_end: str = back_end
                ) -> list[float]:
                    nic = "thread" if by_host else back_end
                    seconds = core.jacobi(
                        u.copy(), plan.iterations, plan.pes, plan.blocks, by_host, nic, 60.0
                    )
                    return [seconds / plan.iterations]

                name = "host" if by_host else "triggered"
                yield Series("jacobi", name, back_end, points), run


def _allreduce(plan: Plan, core: ModuleType) -> Iterator[Task]:
    for size in plan.sizes:
        for way in ("ring", "direct"):
            for by_triggers, names in ((True, plan.back_ends), (False, ("none",))):
                for back_end in names:

                    def run(
                        way: str = way,
                        size: int = size,
                        by_triggers: bool = by_triggers,
                        back_end: str = back_end,
                    ) -> Any:
                        nic = back_end if by_triggers else "thread"
                        count = max(1, size // VALUE_BYTES)
                        return core.allreduce(
                            way, by_triggers, False, plan.pes, plan.blocks, count, plan.sums, nic
                        ).tolist()

                    name = f"{way}, {'triggered' if by_triggers else 'stores'}"
                    yield Series("allreduce", name, back_end, size), run
