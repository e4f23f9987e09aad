"""What a better partition or order of rows saves on an engine, and what finding one costs."""

from __future__ import annotations

from cpufree import machine
from cpufree.options import PROCESSES_ON_GPUS
from cpufree.partition.cost import Gain


def gain_on(engine: str, solves: int = 1, expected: float | None = None, gpu: str = "") -> Gain:
    """Return the numbers by which a partition for an engine is chosen.

    Args:
        engine: by name.
        solves: that are expected. expected: iterations of each; None: nothing is known of them.
        gpu: name of the GPUs.
    """
    known = machine.of_gpu(gpu)
    where = "gpu" if engine in ("cuda_p2p", *PROCESSES_ON_GPUS) else "cpu"
    return Gain(
        ghost_seconds=known.number(f"partition.{where}_ghost", "s"),
        cut_seconds=known.number(f"partition.{where}_cut", "s"),
        search_seconds=known.number("partition.search", "s"),
        least_iterations=known.number("partition.iterations", "1"),
        solves=solves,
        expected=expected,
        order_seconds=known.number("order.rcm", "s"),
        far_seconds=known.number(f"order.{where}_far", "s"),
    )
