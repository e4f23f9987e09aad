"""Which GPUs work is done on: those that are asked for, or as many as are best for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cpufree.engines import choices, gpus
from cpufree.engines.asked import Asked
from cpufree.engines.gpus import Gpu
from cpufree.engines.placement import Chosen, Work
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, OutOfMemoryError, UnsupportedError
from cpufree.text import counted


def choose_gpus(
    work: Work, asked: Asked, env: Env, input_gpu: int | None, cpu_blocks: int | None
) -> Chosen:
    """Return a GPU for each PE, or the CPU.

    Args:
        work: to be done.
        asked: by the call. env: by the environment, where the call leaves it open.
        input_gpu: on which arrays lie, which is taken first.
        cpu_blocks: of the CPU engine; None: that is not to be chosen.
    """
    there = gpus.find()
    if not isinstance(asked.devices, str):
        return _named(asked.devices, asked.pes, there)
    # "all", or the environment, says which GPUs may be used; a number of PEs takes as many of them.
    if asked.devices == "all":
        pool, by, preset = gpus.usable(there), "asked for", None
    else:
        pool, by, preset = _of_environment(env, there), "asked for by CPUFREE_GPUS", env.pes
    if asked.pes != "auto" or preset is not None:
        pes, why = choices.choose_pes(asked.pes, preset)
        if pes > len(pool):
            of_environment = asked.devices == "auto" and env.gpus != "auto"
            raise NotEnoughGpusError(
                f"{counted(pes, work.kind.pe)} are {why}, but there {are(len(pool))} for them"
                f"{' in CPUFREE_GPUS' if of_environment else ''}: {work.kind.too_many}"
            )
        return Chosen(_reachable(_in_order(_first(pool, input_gpu)[:pes])), why)
    if asked.devices == "all" or env.gpus != "auto":
        return Chosen(_reachable(pool), by)
    pool = _first(pool, input_gpu)
    return _combined(work, work.best_gpus(pool, cpu_blocks), pool)


def _named(numbers: tuple[int, ...], pes: int | str, there: list[Gpu]) -> Chosen:
    """Return the GPUs of these numbers, one for each PE."""
    chosen = gpus.select(numbers, there, "gpus")
    if pes != "auto" and choices.count("pes", pes) != len(chosen):
        raise InvalidInputError(
            f"pes is {pes}, but gpus names {counted(len(chosen), 'device')}: each PE has one GPU, "
            "so leave pes out"
        )
    return Chosen(_reachable(chosen), "asked for", _sharing(numbers))


def _of_environment(env: Env, there: list[Gpu]) -> list[Gpu]:
    """Return the GPUs that the environment lets be used."""
    if isinstance(env.gpus, str):
        return gpus.usable(there)
    gpus.unrepeated(env.gpus, "CPUFREE_GPUS", "it says which GPUs may be used")
    return gpus.select(env.gpus, there, "CPUFREE_GPUS")


def _combined(work: Work, chosen: Chosen, there: Sequence[Gpu]) -> Chosen:
    """Return the chosen GPUs, in order; one, if they cannot be combined."""
    problem = gpus.peer_problem(chosen.gpus)
    if not problem:
        return replace(chosen, gpus=_in_order(chosen.gpus))
    one = next((gpu for gpu in there if work.fits(gpu)), None)
    if one is None:
        raise OutOfMemoryError(
            f"the {work.kind.name} does not fit on one GPU, and more cannot be combined: "
            f"{problem}. Use float32, or engine 'cpu_threads'"
        )
    notes = [f"one GPU is used: {problem}"]
    return replace(chosen, gpus=[one], why="GPUs cannot be combined", warnings=notes)


def _reachable(chosen: list[Gpu]) -> list[Gpu]:
    """Return the GPUs; UnsupportedError where they do not reach one another's memory."""
    problem = gpus.peer_problem(chosen)
    if problem:
        raise UnsupportedError(
            f"these GPUs cannot work together: {problem}. Use one of them, or {gpus.INSTEAD}"
        )
    return chosen


def _sharing(wanted: tuple[int, ...]) -> list[str]:
    """Return what to tell a user who has PEs share a GPU."""
    together = gpus.shared(wanted)
    if not together:
        return []
    each = ", ".join(f"{pes} share GPU {number}" for number, pes in together.items())
    return [
        f"of the PEs, {each}: each has a part of the multiprocessors, which is for tests, models "
        "and simulation, not for speed"
    ]


def _first(there: list[Gpu], input_gpu: int | None) -> list[Gpu]:
    """Return the GPUs in the order in which to take them: that of the input, then by number."""
    return sorted(there, key=lambda gpu: (gpu.index != input_gpu, gpu.index))


def _in_order(chosen: Sequence[Gpu]) -> list[Gpu]:
    return sorted(chosen, key=lambda gpu: gpu.index)


def are(count: int) -> str:
    """Return "is 1 GPU" or "are 3 GPUs"."""
    return "is 1 GPU" if count == 1 else f"are {count} GPUs"
