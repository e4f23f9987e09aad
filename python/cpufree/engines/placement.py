"""Where a system is solved: which engine, which GPUs, how many PEs and blocks, and why."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cpufree import machine, options
from cpufree.distributed import Team
from cpufree.engines import answer_time, choices, gpus
from cpufree.engines.answer_time import Candidate, Costs, Forecast
from cpufree.engines.asked import Asked
from cpufree.engines.chosen_gpus import are, choose_gpus, combined, near_first
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import MODEL, Size, model_of, with_room
from cpufree.engines.gpus import Gpu
from cpufree.env import Env
from cpufree.errors import InvalidInputError, OutOfMemoryError
from cpufree.extension import load_core
from cpufree.text import counted

# From so many nonzeros on, "auto" takes GPUs. Below, a solve is over before a GPU has been set up.
GPU_NNZ = int(machine.load().number("setup.least_nonzeros", "1"))


@dataclass(frozen=True)
class Placement:
    """The engine and its PEs; `gpus` has one for each PE, none on the CPU engine."""

    engine: str
    pes: int
    blocks: int
    """Blocks for each PE; 0: the engine decides."""
    why: list[str]
    why_blocks: str
    gpus: list[Gpu] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    team: Team | None = None
    """The processes with a PE each; None: this process has all PEs."""
    own_gpu: Gpu | None = None
    """With a team: the GPU of this process, one of `gpus`."""
    cores: int | None = None
    """Cores for all PEs of this machine; None: those of this process."""
    tuning: Mapping[str, Any] = field(default_factory=dict)
    expected: Expected | None = None
    """The iterations by which engine and GPUs were chosen; None: they were not looked at."""

    @property
    def own_devices(self) -> tuple[int, ...]:
        """Numbers of the GPUs of this process."""
        own = self.gpus if self.own_gpu is None else [self.own_gpu]
        return tuple(gpu.index for gpu in own)


def named_engine(asked: Asked, env: Env, on_gpu: bool = False) -> str:
    """Return the engine that is asked for by name, "auto" where none is, once it can be had.

    Args:
        asked: by the call. env: by the environment, where the call leaves it open.
        on_gpu: b lies on a GPU.

    Raises:
        UnsupportedError: it cannot be had here. InvalidInputError: it contradicts gpus, or b.
    """
    by = "" if asked.engine != "auto" else " (by CPUFREE_ENGINE)"
    engine = env.engine if asked.engine == "auto" else asked.engine
    if engine in options.DISTRIBUTED:
        if on_gpu:
            raise InvalidInputError(
                f"b lies on a GPU, but engine '{engine}'{by} takes vectors on the host: pass a "
                "copy (b.get() in CuPy, b.cpu() in PyTorch)"
            )
        return engine
    if engine == "cpu_threads":
        if asked.devices != "auto":
            raise InvalidInputError(
                f"gpus is {asked.gpus!r}, but engine 'cpu_threads' is asked for{by}, which uses "
                "none: leave one of them out"
            )
        if on_gpu:
            raise InvalidInputError(
                f"b lies on a GPU, but engine 'cpu_threads' is asked for{by}: leave the engine "
                "out, or pass a copy on the host (b.get() in CuPy, b.cpu() in PyTorch)"
            )
    elif engine == "cuda_p2p" or asked.devices != "auto" or on_gpu:
        gpus.require_usable()
        return "cuda_p2p"
    return engine


def choose_engine(
    asked: Asked, env: Env, nnz: int, on_gpu: bool = False
) -> tuple[str, str, list[str]]:
    """Return the engine, why, and what the user should be warned of."""
    engine = named_engine(asked, env, on_gpu)
    if engine == "cpu_threads":
        by = "asked for" if asked.engine != "auto" else "asked for by CPUFREE_ENGINE"
        return engine, by, []
    if engine == "auto" and nnz < GPU_NNZ:
        few = f"{counted(nnz, 'nonzero')}: set-up of a GPU pays from {GPU_NNZ:,} on"
        return "cpu_threads", few.replace(",", " "), []
    there = gpus.find()
    usable = gpus.usable(there)
    if engine == "cuda_p2p":
        return engine, gpus.models(usable), []
    if not usable:
        return "cpu_threads", f"no GPU can be used: {gpus.absence(there)}", []
    pes = asked.pes if asked.pes != "auto" else env.pes
    if isinstance(pes, int) and pes > len(usable):
        why = f"{counted(pes, 'PE')} are asked for, and there {are(len(usable))}"
        note = f"{why}: solved on the CPU; leave pes to 'auto' to use GPUs"
        return "cpu_threads", why, [note]
    return "cuda_p2p", gpus.models(usable), []


def place(
    asked: Asked,
    env: Env,
    size: Size,
    near: int | None = None,
    forecast: Callable[[], Forecast] | None = None,
) -> Placement:
    """Return where a system is to be solved.

    Args:
        asked: by the call. env: by the environment.
        size: of the system.
        near: number of the GPU on which b lies; None: on the host.
        forecast: tells what is known of the system, if there is a choice to be made by the time to
            the answer; None: GPUs are chosen by the time of an iteration.

    Raises:
        InvalidInputError, UnsupportedError, NotEnoughGpusError: what is asked for cannot be had.
        OutOfMemoryError: no number of GPUs has the memory.
    """
    open_to_choice = asked.engine == env.engine == asked.devices == "auto" and near is None
    if open_to_choice and forecast is not None:
        forecast = functools.cache(forecast)
        sooner = _before_cuda(asked, env, size, forecast)
        if sooner is not None:
            return sooner
    engine, why, notes = choose_engine(asked, env, size.nnz, near is not None)
    if engine == "cuda_p2p" and env.node_size is not None:
        raise InvalidInputError(
            "CPUFREE_NODE_SIZE is for PEs that do not reach one another's memory, but engine "
            "'cuda_p2p' needs GPUs that do: unset it, or use engine 'nvshmem' or 'cpu_threads'"
        )
    if engine == "cpu_threads":
        return _on_cpu(asked, env, size, why, notes)
    expected = None
    try:
        found = _by_answer(asked, env, size, near, open_to_choice, forecast)
        if found is None:
            chosen, why_gpus, notes = choose_gpus(asked, env, size, near)
        else:
            chosen, why_gpus, notes, expected = found
    except OutOfMemoryError as error:
        if not open_to_choice or asked.pes != "auto":
            raise
        return _on_cpu(asked, env, size, "GPUs lack the memory", [f"solved on the CPU: {error}"])
    if not chosen:
        return replace(_on_cpu(asked, env, size, why_gpus, notes), expected=expected)
    blocks, why_blocks = 0, "as many as run at once"
    # The environment's number of blocks is meant for the engine that it names, threads by default.
    if asked.blocks != "auto" or (not open_to_choice and env.blocks is not None):
        blocks, why_blocks = choices.choose_blocks(asked.blocks, env.blocks, 1, size.nnz)
    names = gpus.spell([gpu.index for gpu in chosen])
    reasons = [f"{engine}: {why}", f"{counted(len(chosen), 'PE')} on {names}: {why_gpus}"]
    return Placement(
        engine, len(chosen), blocks, reasons, why_blocks, chosen, notes, tuning=asked.tuning,
        expected=expected,
    )  # fmt: skip


def _before_cuda(
    asked: Asked, env: Env, size: Size, forecast: Callable[[], Forecast]
) -> Placement | None:
    """Return the CPU, if it has the answer before CUDA could have started; None: it is not sure.

    So a small system does not wait for the driver, which is not even asked which GPUs there are.
    Any of the machines that are known may be this one: the CPU is that of the slowest, the start of
    CUDA that of the fastest.
    """
    if _says_how_many(asked, env) or env.node_size is not None:
        return None
    # Below, no GPU is asked for anyway; above, none is worth a look at parts of the matrix.
    core = load_core()
    if not GPU_NNZ <= size.nnz <= core.most_nonzeros_by_host:
        return None
    if not core.cuda_built() or not gpus.driver_is_ahead():
        return None
    known, blocks, cores = forecast(), _blocks(asked, env, size), choices.available_cores()
    start = min(one.table("setup.context", "s")[1] for one in machine.every())
    ways = [answer_time.on_cpu(size, blocks, Costs.of(one, cores)) for one in machine.every()]
    way = max(ways, key=lambda one: one.seconds(known.expected))
    if way.seconds(known.expected) >= start:
        return None
    told = answer_time.comparison([way], way, known.expected)
    why = f"{told}, where CUDA alone takes {answer_time.told_time(start)} to start"
    return replace(_on_cpu(asked, env, size, why, []), expected=known.expected)


def _says_how_many(asked: Asked, env: Env) -> bool:
    """Return whether the call or the environment says how many PEs, or which GPUs, there are."""
    named = asked.pes != "auto" or asked.devices != "auto"
    return named or env.pes is not None or env.gpus != "auto"


def _blocks(asked: Asked, env: Env, size: Size) -> int:
    """Return the blocks of all PEs of the CPU engine."""
    pes = choices.choose_pes(asked.pes, env.pes)[0]
    return pes * choices.choose_blocks(asked.blocks, env.blocks, pes, size.nnz)[0]


def _by_answer(
    asked: Asked,
    env: Env,
    size: Size,
    near: int | None,
    cpu_too: bool,
    forecast: Callable[[], Forecast] | None,
) -> tuple[list[Gpu], str, list[str], Expected] | None:
    """Return the GPUs (none: the CPU) from which the answer comes first, and by which iterations.

    None: there is nothing to choose, or nothing is known to choose by. `cpu_too`: the CPU is one of
    the choices; else a GPU that is the only one is taken.
    """
    if forecast is None or _says_how_many(asked, env):
        return None
    there = near_first(gpus.usable(gpus.find()), near)
    if len(there) == 1 and not cpu_too:
        return None
    known = forecast()
    blocks = _blocks(asked, env, size) if cpu_too else None
    running = [load_core().gpu_is_started(gpu.index) for gpu in there]
    name = there[0].name if there else ""
    costs = Costs.of(machine.of_gpu(name), choices.available_cores())
    ways = answer_time.all_candidates(size, running, blocks, known, costs, model_of(name))
    best = answer_time.best(ways, known.expected)
    why = answer_time.comparison(ways, best, known.expected)
    return *_taken(best, there, size, why), known.expected


def _taken(
    best: Candidate, there: list[Gpu], size: Size, why: str
) -> tuple[list[Gpu], str, list[str]]:
    """Return the GPUs of a candidate, or more of them where these have no room."""
    if not best.gpus:
        return [], why, []
    chosen = with_room(size, there, Gpu.room, best.gpus)
    if len(chosen) > best.gpus:
        why += f", no room on {best.gpus}"
    return combined(chosen, there, size, why, MODEL)


def _on_cpu(asked: Asked, env: Env, size: Size, why: str, notes: list[str]) -> Placement:
    pes, why_pes = choices.choose_pes(asked.pes, env.pes)
    blocks, why_blocks = choices.choose_blocks(asked.blocks, env.blocks, pes, size.nnz)
    reasons = [f"cpu_threads: {why}", f"{counted(pes, 'PE')}: {why_pes}"]
    tuning, why_nodes = in_nodes(env, pes)
    return Placement(
        "cpu_threads", pes, blocks, [*reasons, *why_nodes], why_blocks, warnings=notes,
        tuning={**tuning, **asked.tuning},
    )  # fmt: skip


def in_nodes(env: Env, pes: int) -> tuple[dict[str, Any], list[str]]:
    """Return what has the core treat PEs as several nodes, and why, where the environment asks."""
    if env.node_size is None:
        return {}, []
    nodes = -(-pes // env.node_size)
    return {"node_size": env.node_size}, [f"{counted(nodes, 'node')}: CPUFREE_NODE_SIZE"]
