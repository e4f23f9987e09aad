"""A run of ranks: options checked, progress and interrupts watched, results given back."""

from __future__ import annotations

from typing import Any, TypeAlias

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.ranks.on_cpu import RanksOnCpu, RanksRan
from cpufree.compiler.ranks.on_gpu import RanksOnGpus
from cpufree.engines.choices import valid
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.env import Env
from cpufree.laps import Laps
from cpufree.options import WAIT_LIMIT, WAIT_SECONDS

Progress: TypeAlias = ProgressLike


def launch(
    kernel: RanksOnCpu | RanksOnGpus,
    given: list[Arguments],
    values: tuple[dict[str, Any], dict[str, Any]],
    wait_limit: float | None,
    progress: Progress,
    laps: Laps,
) -> RanksRan:
    """Run a kernel; `values` are the data of constants and the values of scalars.

    Raises
    ------
    InvalidInputError
        `wait_limit` is wrong.
    KeyboardInterrupt
        Ctrl-C. The arrays are as they were.
    """
    limit = Env.read().wait_limit if wait_limit is None else valid(WAIT_LIMIT, wait_limit)
    watch = Watch(progress)
    data, scalars = values
    with watch:
        ran = kernel.run(given, data, scalars, limit or WAIT_SECONDS, watch, laps)
    if watch.error is not None:
        raise watch.error
    if watch.interrupted:
        raise KeyboardInterrupt
    return ran
