"""What is known of a system before it is solved, by which engine and GPUs are chosen for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from cpufree import machine
from cpufree.engines import answer_time, choices, gpus
from cpufree.engines.answer_time import Costs, Forecast
from cpufree.engines.asked import Asked
from cpufree.engines.gpu_choice import Size, choose, fits, model_of, with_room
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Chosen, Kind, Work, too_few
from cpufree.env import Env
from cpufree.extension import load_core

LEAST_NONZEROS = int(machine.load().number("setup.least_nonzeros", "1"))
"""From which on "auto" takes GPUs: below, a solve is over before a GPU has been set up."""

SYSTEM = Kind("system", array="b", arrays="vectors", done="solved", in_nodes=True)


class SystemWork(Work):
    """A system that is to be solved.

    Args:
        size: of the system.
        forecast: tells what is known of it, if GPUs are to be chosen by the time to the answer; it
            is called once at most. None: they are chosen by the time of an iteration.
    """

    kind = SYSTEM

    def __init__(self, size: Size, forecast: Callable[[], Forecast] | None = None) -> None:
        self.size = size
        self._forecast = None if forecast is None else functools.cache(forecast)

    def too_small(self) -> str:
        """Return why a GPU does not pay, "" where one may."""
        return too_few(self.size.nnz, "nonzero", LEAST_NONZEROS)

    def sooner_on_cpu(self, blocks: int) -> Chosen | None:
        """Return the CPU, if it has the answer before CUDA could have started; None: it may not.

        Any of the machines that are known may be this one: the CPU is that of the slowest, the
        start of CUDA that of the fastest.
        """
        core = load_core()
        # Of larger systems, the CPU is too slow for a look at parts of the matrix to be worth it.
        if self._forecast is None or self.size.nnz > core.most_block_halo_nonzeros:
            return None
        if not core.cuda_built() or not gpus.driver_is_ahead():
            return None
        known, cores = self._forecast(), choices.available_cores()
        start = min(one.table("setup.context", "s")[1] for one in machine.every())
        ways = [
            answer_time.on_cpu(self.size, blocks, Costs.of(one, cores)) for one in machine.every()
        ]
        way = max(ways, key=lambda one: one.seconds(known.expected))
        if way.seconds(known.expected) >= start:
            return None
        told = answer_time.comparison([way], way, known.expected)
        why = f"{told}, where CUDA alone takes {answer_time.told_time(start)} to start"
        return Chosen([], why, expected=known.expected)

    def best_gpus(self, there: Sequence[Gpu], blocks: int | None) -> Chosen:
        """Return the GPUs from which the answer comes first, or the CPU."""
        if self._forecast is None or (len(there) == 1 and blocks is None):
            return Chosen(*choose(self.size, there, Gpu.room))
        known, name = self._forecast(), there[0].name
        running = [load_core().gpu_is_started(gpu.index) for gpu in there]
        costs = Costs.of(machine.of_gpu(name), choices.available_cores())
        ways = answer_time.all_candidates(self.size, running, blocks, known, costs, model_of(name))
        best = answer_time.best(ways, known.expected)
        why = answer_time.comparison(ways, best, known.expected)
        chosen = with_room(self.size, there, Gpu.room, best.gpus) if best.gpus else []
        if len(chosen) > best.gpus:
            why += f", no room on {best.gpus}"
        return Chosen(chosen, why, expected=known.expected)

    def fits(self, gpu: Gpu) -> bool:
        """Return whether one GPU has the memory."""
        return fits(self.size, 1, gpu.room())

    def cpu_blocks(
        self, asked: Asked, env: Env, pes: int, cores: int | None = None
    ) -> tuple[int, str]:
        """Return a thread for each core, or one where there is little to do."""
        return choices.choose_blocks(asked.blocks, env.blocks, pes, self.size.nnz, cores)
