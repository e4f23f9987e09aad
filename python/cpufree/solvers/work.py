"""What is known of a system before it is solved, by which engine and GPUs are chosen for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from cpufree import machine
from cpufree.engines import choices, gpus, system_rule
from cpufree.engines.asked import Asked
from cpufree.engines.gpu_choice import Size, choose, fits, no_room, with_room
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Chosen, Kind, Work, too_few
from cpufree.engines.system_rule import Forecast
from cpufree.env import Env
from cpufree.extension import load_core
from cpufree.model.solve import estimate, iteration_seconds
from cpufree.text import counted, time_text

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
        return too_few(self.size.nnz, "nonzero", machine.least("setup.least_nonzeros"))

    def sooner_on_cpu(self, blocks: int) -> Chosen | None:
        """Return the CPU, if it has the answer before CUDA could have started; None: it may not.

        Any of the machines that are known may be this one: the CPU is that of the slowest, the
        start of CUDA that of the fastest.
        """
        core = load_core()
        # Of larger systems, the CPU is too slow for a look at parts of the matrix to be worth it.
        if self._forecast is None or self.size.nnz > core.most_block_halo_nonzeros:
            return None
        if not core.gpu_vendor() or not gpus.driver_is_ahead():
            return None
        expected, machines = self._forecast().expected, machine.possible()
        start = min(one.table("setup.context", "s")[1] for one in machines)
        takes = max(system_rule.cpu_seconds(self.size, blocks, expected, one) for one in machines)
        if takes >= start:
            return None
        told = f"{time_text(takes)} on {counted(blocks, 'block')} of the CPU"
        why = f"{expected.told}: {told}, where CUDA alone takes {time_text(start)} to start"
        return Chosen([], why, expected=expected)

    def best_gpus(self, there: Sequence[Gpu], blocks: int | None) -> Chosen:
        """Return the GPUs from which the answer comes first, or the CPU."""
        known = machine.of_gpu(there[0].name)
        expected, seconds = None, functools.partial(iteration_on, size=self.size, known=known)
        if self._forecast is None or (len(there) == 1 and blocks is None):
            chosen, why = choose(self.size, there, Gpu.room, seconds)
        else:
            forecast, core = self._forecast(), load_core()
            running = [core.gpu_is_started(gpu.index) for gpu in there]
            given = self.size, running, blocks, forecast, known
            best = system_rule.choose_place(*given, seconds)
            why, expected = best.why, forecast.expected
            chosen = with_room(self.size, there, Gpu.room, best.gpus) if best.gpus else []
            why += no_room(best.gpus, len(chosen), len(there)) if chosen else ""
        if not known.known:
            why += f"; {there[0].name} was not measured: by {known.gpu} (cpufree model calibrate)"
        return Chosen(chosen, why, expected=expected)

    def fits(self, gpu: Gpu) -> bool:
        """Return whether one GPU has the memory."""
        return fits(self.size, 1, gpu.room())

    def cpu_blocks(
        self, asked: Asked, env: Env, pes: int, cores: int | None = None
    ) -> tuple[int, str]:
        """Return a thread for each core, or one where there is little to do."""
        return choices.choose_blocks(asked.blocks, env.blocks, pes, self.size.nnz, cores)


def iteration_on(gpus: int, size: Size, known: machine.Machine) -> float:
    """Return the predicted seconds of an iteration on a number of GPUs, by the size alone."""
    facts = estimate(max(1, size.rows), size.nnz, gpus, size.value_bytes)
    return iteration_seconds(facts, "prcg", known).seconds
