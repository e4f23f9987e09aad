"""Where a system is solved: which engine, which GPUs, how many PEs and blocks, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cpufree import machine, options
from cpufree.distributed import Team
from cpufree.engines import answer_time, choices, core, gpus
from cpufree.engines.answer_time import Candidate, Costs, Forecast
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import MODEL, Model, Size, choose, fits, model_of, with_room
from cpufree.engines.gpus import Gpu
from cpufree.env import Env, preset_shared_gpus
from cpufree.errors import InvalidInputError, NotEnoughGpusError, OutOfMemoryError, UnsupportedError
from cpufree.partition.part_vector import PartitionLike, count_of
from cpufree.text import counted

# From so many nonzeros on, "auto" takes GPUs. Below, a solve is over before a GPU has been set up.
GPU_NNZ = int(machine.load().number("setup.least_nonzeros", "1"))


@dataclass(frozen=True)
class Asked:
    """What a call asks for. Names and syntax are checked here, the machine is not looked at.

    Raises:
        InvalidInputError: an engine that is not known, or gpus that are no device numbers.
    """

    engine: str = "auto"
    gpus: Any = "auto"
    """As the user gives them; `devices` has them parsed."""
    pes: int | str = "auto"
    blocks: int | str = "auto"
    tuning: Mapping[str, Any] = field(default_factory=dict)
    """What the core is to set up besides the matrix."""
    devices: str | tuple[int, ...] = field(init=False, default="auto")
    """"auto", "all", or device numbers."""

    def __post_init__(self) -> None:
        choices.valid(options.ENGINE, self.engine)
        object.__setattr__(self, "devices", gpus.parse(self.gpus))
        if not isinstance(self.devices, str) and gpus.shared(self.devices):
            preset_shared_gpus()
        if self.pes != "auto":
            choices.count("pes", self.pes)
        if self.blocks != "auto":
            choices.count("blocks", self.blocks)

    def for_partition(self, partition: PartitionLike, env: Env) -> Asked:
        """Return the same with a PE for each part that is given, if nothing else says how many."""
        open_to_choice = self.pes == self.devices == "auto" and env.pes is None
        if isinstance(partition, str) or not open_to_choice:
            return self
        return replace(self, pes=count_of(partition))


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
        why = f"{counted(pes, 'PE')} are asked for, and there {_are(len(usable))}"
        note = f"{why}: solved on the CPU; leave pes to 'auto' to use GPUs"
        return "cpu_threads", why, [note]
    return "cuda_p2p", gpus.models(usable), []


def place(
    asked: Asked,
    env: Env,
    size: Size,
    near: int | None = None,
    forecast: Callable[[], Forecast] | None = None,
    made_there: bool = False,
) -> Placement:
    """Return where a system is to be solved.

    Args:
        asked: by the call. env: by the environment.
        size: of the system.
        near: number of the GPU on which b lies; None: on the host.
        forecast: tells what is known of the system, if there is a choice to be made by the time to
            the answer; None: GPUs are chosen by the time of an iteration.
        made_there: GPUs make the matrix, much sooner than the host would: one that is alone is
            taken, and nothing is forecast.

    Raises:
        InvalidInputError, UnsupportedError, NotEnoughGpusError: what is asked for cannot be had.
        OutOfMemoryError: no number of GPUs has the memory.
    """
    engine, why, notes = choose_engine(asked, env, size.nnz, near is not None)
    if engine == "cuda_p2p" and env.node_size is not None:
        raise InvalidInputError(
            "CPUFREE_NODE_SIZE is for PEs that do not reach one another's memory, but engine "
            "'cuda_p2p' needs GPUs that do: unset it, or use engine 'nvshmem' or 'cpu_threads'"
        )
    if engine == "cpu_threads":
        return _on_cpu(asked, env, size, why, notes)
    open_to_choice = asked.engine == env.engine == asked.devices == "auto" and near is None
    alone = not open_to_choice or made_there
    expected = None
    try:
        found = _by_answer(asked, env, size, near, open_to_choice, alone, forecast)
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


def _by_answer(
    asked: Asked,
    env: Env,
    size: Size,
    near: int | None,
    cpu_too: bool,
    alone: bool,
    forecast: Callable[[], Forecast] | None,
) -> tuple[list[Gpu], str, list[str], Expected] | None:
    """Return the GPUs (none: the CPU) from which the answer comes first, and by which iterations.

    None: there is nothing to choose, or nothing is known to choose by. `cpu_too`: the CPU is one of
    the choices; `alone`: where there is one GPU, it is taken.
    """
    named = asked.pes != "auto" or asked.devices != "auto"
    if forecast is None or named or env.pes is not None or env.gpus != "auto":
        return None
    there = _near_first(gpus.usable(gpus.find()), near)
    if len(there) == 1 and alone:
        return None
    known = forecast()
    blocks = None
    if cpu_too:
        pes = choices.choose_pes(asked.pes, env.pes)[0]
        blocks = pes * choices.choose_blocks(asked.blocks, env.blocks, pes, size.nnz)[0]
    running = [core.gpu_is_started(gpu.index) for gpu in there]
    name = there[0].name if there else ""
    costs = Costs.of(machine.of_gpu(name))
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
    return _combined(chosen, there, size, why, MODEL)


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
                f"{counted(pes, 'PE')} are {why}, but there {_are(len(pool))} for them"
                f"{'' if env.gpus == 'auto' else ' in CPUFREE_GPUS'}: ask for fewer, or leave pes "
                "to 'auto'"
            )
        return _reachable(_in_order(_near_first(pool, near)[:pes])), why, []
    if env.gpus != "auto":
        return _reachable(pool), "asked for by CPUFREE_GPUS", []
    return _best(_near_first(pool, near), size, model, seconds)


def _best(
    there: list[Gpu], size: Size, model: Model, seconds: Callable[[int], float] | None
) -> tuple[list[Gpu], str, list[str]]:
    """Return as many of the GPUs as the model finds best; one, if those cannot be combined."""
    chosen, why = choose(size, there, Gpu.room, model, seconds)
    return _combined(chosen, there, size, why, model)


def _combined(
    chosen: list[Gpu], there: list[Gpu], size: Size, why: str, model: Model
) -> tuple[list[Gpu], str, list[str]]:
    """Return the chosen GPUs, in order; one, if they cannot be combined."""
    problem = core.peer_problem(tuple(gpu.index for gpu in chosen))
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
    problem = core.peer_problem(tuple(gpu.index for gpu in chosen))
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


def _near_first(there: list[Gpu], near: int | None) -> list[Gpu]:
    """Return the GPUs in the order in which to take them: that of b, then by number."""
    return sorted(there, key=lambda gpu: (gpu.index != near, gpu.index))


def _in_order(chosen: Sequence[Gpu]) -> list[Gpu]:
    return sorted(chosen, key=lambda gpu: gpu.index)


def _are(count: int) -> str:
    return "is 1 GPU" if count == 1 else f"are {count} GPUs"
