"""Which GPUs a system is solved on: those that are asked for, or as many as the model predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cpufree.engines import choices, gpus
from cpufree.engines.asked import Asked
from cpufree.engines.gpu_choice import MODEL, Model, Size, choose, fits
from cpufree.engines.gpus import Gpu
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, OutOfMemoryError, UnsupportedError
from cpufree.text import counted


def choose_gpus(
    asked: Asked,
    env: Env,
    size: Size,
    near: int | None = None,
    model: Model = MODEL,
    seconds: Callable[[int], float] | None = None,
) -> tuple[list[Gpu], str, list[str]]:
    """Return a GPU for each PE, why these, and what the user should be warned of.

    `seconds` tells those of an iteration on so many GPUs; None: as the model predicts.
    """
    there = gpus.find()
    if asked.devices != "auto":
        chosen = _devices(asked.devices, there, "gpus")
        if asked.pes != "auto" and choices.count("pes", asked.pes) != len(chosen):
            raise InvalidInputError(
                f"pes is {asked.pes}, but gpus names {counted(len(chosen), 'device')}: each PE "
                "has one GPU, so leave pes out"
            )
        return _reachable(chosen), "asked for", _sharing(asked.devices)
    # The environment says which GPUs may be used; a number of PEs takes as many of them.
    if not isinstance(env.gpus, str):
        gpus.unrepeated(env.gpus, "CPUFREE_GPUS", "it says which GPUs may be used")
    pool = _devices(env.gpus, there, "CPUFREE_GPUS")
    if asked.pes != "auto" or env.pes is not None:
        pes, why = choices.choose_pes(asked.pes, env.pes)
        if pes > len(pool):
            raise NotEnoughGpusError(
                f"{counted(pes, 'PE')} are {why}, but there {are(len(pool))} for them"
                f"{'' if env.gpus == 'auto' else ' in CPUFREE_GPUS'}: ask for fewer, or leave pes "
                "to 'auto'"
            )
        return _reachable(_in_order(near_first(pool, near)[:pes])), why, []
    if env.gpus != "auto":
        return _reachable(pool), "asked for by CPUFREE_GPUS", []
    return _best(near_first(pool, near), size, model, seconds)


def _best(
    there: list[Gpu], size: Size, model: Model, seconds: Callable[[int], float] | None
) -> tuple[list[Gpu], str, list[str]]:
    """Return as many of the GPUs as the model finds best; one, if those cannot be combined."""
    chosen, why = choose(size, there, Gpu.room, model, seconds)
    return combined(chosen, there, size, why, model)


def combined(
    chosen: list[Gpu], there: list[Gpu], size: Size, why: str, model: Model
) -> tuple[list[Gpu], str, list[str]]:
    """Return the chosen GPUs, in order; one, if they cannot be combined."""
    problem = gpus.peer_problem(chosen)
    if not problem:
        return _in_order(chosen), why, []
    one = next((gpu for gpu in there if fits(size, 1, gpu.room(), model)), None)
    if one is None:
        raise OutOfMemoryError(
            f"the {size.what} does not fit on one GPU, and more cannot be combined: {problem}. Use "
            "float32, or engine 'cpu_threads'"
        )
    return [one], "GPUs cannot be combined", [f"one GPU is used: {problem}"]


def _reachable(chosen: list[Gpu]) -> list[Gpu]:
    """Return the GPUs; UnsupportedError where they do not reach one another's memory."""
    problem = gpus.peer_problem(chosen)
    if problem:
        raise UnsupportedError(
            f"these GPUs cannot work together: {problem}. Use one of them, or {gpus.INSTEAD}"
        )
    return chosen


def _devices(wanted: str | tuple[int, ...], there: list[Gpu], name: str) -> list[Gpu]:
    """Return the GPUs of these numbers; all that can be used for "auto" and "all"."""
    if isinstance(wanted, str):
        return gpus.usable(there)
    return gpus.select(wanted, there, name)


def _sharing(wanted: str | tuple[int, ...]) -> list[str]:
    """Return what to tell whoever has PEs share a GPU."""
    together = {} if isinstance(wanted, str) else gpus.shared(wanted)
    if not together:
        return []
    each = ", ".join(f"{pes} share GPU {number}" for number, pes in together.items())
    return [
        f"of the PEs, {each}: each has a part of the multiprocessors, which is for tests, models "
        "and simulation, not for speed"
    ]


def near_first(there: list[Gpu], near: int | None) -> list[Gpu]:
    """Return the GPUs in the order in which to take them: that of b, then by number."""
    return sorted(there, key=lambda gpu: (gpu.index != near, gpu.index))


def _in_order(chosen: Sequence[Gpu]) -> list[Gpu]:
    return sorted(chosen, key=lambda gpu: gpu.index)


def are(count: int) -> str:
    """Return "is 1 GPU" or "are 3 GPUs"."""
    return "is 1 GPU" if count == 1 else f"are {count} GPUs"
