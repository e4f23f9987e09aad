"""Where a program runs: threads of the CPU, or GPUs, and how many."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from cpufree.compiler import ir
from cpufree.engines import choices, gpus
from cpufree.engines.asked import Asked
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import named_engine
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, UnsupportedError

LEAST_POINTS = 1 << 16
"""Of an array, from which on "auto" takes GPUs: with fewer, starting one takes longer."""
POINTS_OF_GPU = 1 << 21
"""With fewer for each GPU, waiting for another one costs more than its help saves."""


@dataclass(frozen=True)
class Place:
    """The engine of a run; `gpus` has one for each PE, none on the CPU engine."""

    engine: str
    gpus: list[Gpu] = field(default_factory=list)
    why: str = ""

    @property
    def devices(self) -> list[int]:
        """Numbers of the GPUs."""
        return [gpu.index for gpu in self.gpus]


def place(asked: Asked, env: Env, program: ir.Program, near: int | None) -> Place:
    """Return where a program runs.

    Parameters
    ----------
    asked : Asked
        By the call.
    env : Env
        By the environment.
    program : ir.Program
        What is to be run.
    near : int, optional
        Number of a GPU on which an array lies; None: all are on the host.

    Raises
    ------
    InvalidInputError, UnsupportedError, NotEnoughGpusError
        What is asked for cannot be had.
    """
    named = env.engine if asked.engine == "auto" else asked.engine
    if named == "nvshmem":
        raise UnsupportedError(
            "programs do not run on engine 'nvshmem', as their kernels are compiled in the call, "
            "without its device library: choose cuda_p2p for the GPUs of a machine, or "
            "cpu_processes"
        )
    if named == "cpu_processes":
        if asked.devices != "auto":
            raise InvalidInputError("engine 'cpu_processes' uses no GPUs: leave gpus out")
        return Place("cpu_processes", why="asked for; arrays on a GPU are copied")
    if named == "cpu_threads" and near is not None:
        return Place("cpu_threads", why="asked for; arrays on a GPU are copied")
    engine = named_engine(asked, env, near is not None)
    points = max((math.prod(f.shape) for f in program.fields), default=1)
    if engine == "cpu_threads":
        return Place(engine, why="asked for")
    usable = gpus.usable(gpus.find())
    if engine == "auto" and (not usable or points < LEAST_POINTS):
        few = f"{points} points are few" if usable else gpus.absence(gpus.find())
        return Place("cpu_threads", why=few)
    if engine == "auto" and isinstance(asked.pes, int) and asked.pes > len(usable):
        return Place("cpu_threads", why=f"{asked.pes} PEs are asked for")
    chosen, why = _choose(asked, env, usable, points, near)
    problem = gpus.peer_problem(chosen)
    if problem and (asked.pes != "auto" or asked.devices != "auto"):
        raise UnsupportedError(
            f"these GPUs cannot work together: {problem}. Use one of them, or {gpus.INSTEAD}"
        )
    return Place("cuda_p2p", chosen[:1] if problem else chosen, problem or why)


def _choose(
    asked: Asked, env: Env, usable: list[Gpu], points: int, near: int | None
) -> tuple[list[Gpu], str]:
    """Return a GPU for each PE, and why these."""
    if asked.devices not in ("auto", "all"):
        chosen = gpus.select(asked.devices, usable, "gpus")  # type: ignore[arg-type]
        if asked.pes != "auto" and choices.count("pes", asked.pes) != len(chosen):
            raise InvalidInputError(
                f"pes is {asked.pes}, but gpus names {len(chosen)}: each PE has one, leave pes out"
            )
        return chosen, "asked for"
    pool = usable
    if not isinstance(env.gpus, str):
        pool = gpus.select(env.gpus, usable, "CPUFREE_GPUS")
    pool = sorted(pool, key=lambda gpu: gpu.index != near)
    preset = asked.pes if asked.pes != "auto" else env.pes
    if preset is not None:
        count = choices.count("pes", preset)
        if count > len(pool):
            raise NotEnoughGpusError(
                f"{count} PEs are asked for, and there are {len(pool)} GPUs for them: ask for "
                "fewer, or leave pes to 'auto'"
            )
        return pool[:count], "asked for"
    if "all" in (asked.devices, env.gpus):
        return pool, "asked for"
    count = max(1, min(len(pool), points // POINTS_OF_GPU))
    return pool[:count], f"{points} points, {POINTS_OF_GPU} or more for each"
