"""Where work is done: which engine, which GPUs, how many PEs and blocks, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cpufree import machine, options
from cpufree.distributed import Team
from cpufree.engines import choices, gpus, in_processes, remote
from cpufree.engines.asked import Asked
from cpufree.engines.chosen_gpus import are, choose_gpus
from cpufree.engines.placement import Kind, Placement, Work
from cpufree.env import Env
from cpufree.errors import InvalidInputError, OutOfMemoryError, UnsupportedError
from cpufree.text import counted


def place(
    work: Work,
    asked: Asked,
    env: Env,
    input_gpu: int | None = None,
    team: Team | None = None,
) -> Placement:
    """Return where work is to be done.

    Args:
        work: what is to be done.
        asked: by the call. env: by the environment, where the call leaves it open.
        input_gpu: number of the GPU on which arrays of it lie; None: they are on the host.
        team: of an engine of several processes, which all call this together.

    Raises:
        InvalidInputError, UnsupportedError, NotEnoughGpusError: what is asked for is not available.
        OutOfMemoryError: no number of GPUs has the memory.
    """
    named = named_engine(work.kind, asked, env, input_gpu is not None)
    if named in options.DISTRIBUTED:
        assert team is not None
        return _in_team(work, asked, env, named, team)
    is_open = named == "auto"
    if is_open and not work.too_small() and not _says_where(work, asked, env):
        sooner = work.sooner_on_cpu(_cpu_blocks(work, asked, env))
        if sooner is not None:
            found = _on_cpu(work, asked, env, sooner.why, [])
            return replace(found, expected=sooner.expected)
    engine, why, notes = _engine(work, named, asked, env)
    if engine == "cpu_threads":
        return _on_cpu(work, asked, env, why, notes)
    return _on_gpus(work, asked, env, why, input_gpu, is_open)


def named_engine(kind: Kind, asked: Asked, env: Env, on_gpu: bool = False) -> str:
    """Return the engine that is asked for by name, "auto" where none is, once it is known to work.

    Args:
        kind: of the work.
        asked: by the call. env: by the environment, where the call leaves it open.
        on_gpu: arrays of it lie on a GPU.

    Raises:
        UnsupportedError: it is not available here, or not for this work.
        InvalidInputError: it contradicts gpus, or the arrays on a GPU.
    """
    by = "" if asked.engine != "auto" else " (by CPUFREE_ENGINE)"
    engine = env.engine if asked.engine == "auto" else asked.engine
    if engine in kind.refused:
        raise UnsupportedError(kind.refused[engine])
    if engine in ("cpu_threads", "cpu_processes") and asked.devices != "auto":
        raise InvalidInputError(
            f"gpus is {asked.gpus!r}, but engine '{engine}' is asked for{by}, which uses none: "
            "leave one of them out"
        )
    copy = f"({kind.array}.get() in CuPy, {kind.array}.cpu() in PyTorch)"
    if on_gpu and engine in options.DISTRIBUTED:
        raise InvalidInputError(
            f"{kind.array} lies on a GPU, but engine '{engine}'{by} takes {kind.arrays} on the "
            f"host: pass a copy {copy}"
        )
    if on_gpu and engine == "cpu_threads":
        raise InvalidInputError(
            f"{kind.array} lies on a GPU, but engine 'cpu_threads' is asked for{by}: leave the "
            f"engine out, or pass a copy on the host {copy}"
        )
    if engine in ("cpu_threads", *options.DISTRIBUTED):
        return engine
    if engine == "cuda_p2p" or asked.devices != "auto" or on_gpu:
        gpus.require_usable()
        return "cuda_p2p"
    return "auto"


def choose_engine(work: Work, asked: Asked, env: Env) -> tuple[str, str, list[str]]:
    """Return the engine, why, and what the user should be warned of."""
    return _engine(work, named_engine(work.kind, asked, env), asked, env)


def _engine(work: Work, named: str, asked: Asked, env: Env) -> tuple[str, str, list[str]]:
    """Return the engine, of those for one process, why, and warnings."""
    if named == "cpu_threads":
        by = "asked for" if asked.engine != "auto" else "asked for by CPUFREE_ENGINE"
        return named, by, []
    if named == "auto" and (few := work.too_small()):
        return "cpu_threads", few, []
    there = gpus.find()
    usable = gpus.usable(there)
    if named != "auto":
        return named, gpus.models(usable), []
    if not usable:
        return "cpu_threads", f"no GPU can be used: {gpus.absence(there)}", []
    if never := gpus.never_run(usable):
        return "cpu_threads", never, []
    pes = asked.pes if asked.pes != "auto" else env.pes
    if isinstance(pes, int) and pes > len(usable):
        why = f"{counted(pes, work.kind.pe)} are asked for, and there {are(len(usable))}"
        note = f"{why}: {work.kind.done} on the CPU; to use GPUs, {work.kind.too_many}"
        return "cpu_threads", why, [note]
    return "cuda_p2p", gpus.models(usable), []


def _says_where(work: Work, asked: Asked, env: Env) -> bool:
    """Return whether call or environment say how many PEs, which GPUs, or nodes there are."""
    named = asked.pes != "auto" or asked.devices != "auto"
    nodes = work.kind.in_nodes and env.node_size is not None
    return named or env.pes is not None or env.gpus != "auto" or nodes


def _cpu_blocks(work: Work, asked: Asked, env: Env) -> int:
    """Return the blocks of all PEs of the CPU engine; 0: they have none."""
    if not work.kind.in_blocks:
        return 0
    pes = work.cpu_pes(asked, env)[0]
    return pes * work.cpu_blocks(asked, env, pes)[0]


def _on_gpus(
    work: Work, asked: Asked, env: Env, why: str, input_gpu: int | None, is_open: bool
) -> Placement:
    """Return the GPUs for the work; if all is open to choice, perhaps the CPU."""
    if work.kind.in_nodes and env.node_size is not None:
        raise InvalidInputError(
            "CPUFREE_NODE_SIZE is for PEs that do not reach one another's memory, but engine "
            "'cuda_p2p' needs GPUs that do: unset it, or use engine 'nvshmem', 'nccl' or "
            "'cpu_threads'"
        )
    blocks_of_cpu = _cpu_blocks(work, asked, env) if is_open else None
    try:
        chosen = choose_gpus(work, asked, env, input_gpu, blocks_of_cpu)
    except OutOfMemoryError as error:
        if not is_open or asked.pes != "auto":
            raise
        note = f"{work.kind.done} on the CPU: {error}"
        return _on_cpu(work, asked, env, "GPUs lack the memory", [note])
    if not chosen.gpus:
        found = _on_cpu(work, asked, env, chosen.why, chosen.warnings)
        return replace(found, expected=chosen.expected)
    blocks, why_blocks = 0, "as many as run at once"
    # The environment's number of blocks is meant for the engine that it names, threads by default.
    if asked.blocks != "auto" or (not is_open and env.blocks is not None):
        blocks, why_blocks = choices.choose_blocks(asked.blocks, env.blocks, 1, 0)
    names = gpus.spell([gpu.index for gpu in chosen.gpus])
    pes = len(chosen.gpus)
    reasons = [f"cuda_p2p: {why}", f"{counted(pes, 'PE')} on {names}: {chosen.why}"]
    return Placement(
        "cuda_p2p", pes, blocks, reasons, why_blocks, chosen.gpus, chosen.warnings,
        tuning={**asked.tuning, **_planned_by(chosen.gpus)}, expected=chosen.expected,
    )  # fmt: skip


def _planned_by(there: Sequence[gpus.Gpu]) -> dict[str, Any]:
    """Return what has the core plan by the numbers of these GPUs' machine."""
    return {"machine": machine.planner_numbers(machine.of_gpu(there[0].name))}


def _on_cpu(work: Work, asked: Asked, env: Env, why: str, notes: list[str]) -> Placement:
    pes, why_pes = work.cpu_pes(asked, env)
    blocks, why_blocks = work.cpu_blocks(asked, env, pes)
    reasons = [f"cpu_threads: {why}", f"{counted(pes, 'PE')}: {why_pes}"]
    tuning, why_nodes = in_nodes(env, pes) if work.kind.in_nodes else ({}, [])
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


def _in_team(work: Work, asked: Asked, env: Env, engine: str, team: Team) -> Placement:
    """Return where this rank's part goes; all ranks call it together."""
    kind = work.kind
    nodes, why_nodes = _nodes_of_team(kind, env, team)
    reasons = [f"{engine}: {counted(team.size, 'PE')}, one in each process", *why_nodes]
    if engine == "cpu_processes":
        cores = in_processes.cores_of(team) if kind.in_blocks else None
        blocks, why_blocks = work.cpu_blocks(asked, env, team.size, cores)
        placement = Placement(engine, team.size, blocks, reasons, why_blocks, cores=cores)
    else:
        own, of_all = in_processes.choose_gpu(team, engine, asked, env)
        nodes |= _planned_by(of_all)
        team.agree("machine file", nodes)
        nodes["remote_library"] = remote.prepare(team, engine)
        if kind.in_nodes:
            nodes["remote_kernels"] = remote.OF_ENGINE[engine].find_kernels()
            nodes["several_machines"] = team.size_here < team.size
        blocks, why_blocks = 0, "as many as run at once"
        if asked.blocks != "auto" or env.blocks is not None:
            blocks, why_blocks = choices.choose_blocks(asked.blocks, env.blocks, 1, 0)
        placement = Placement(engine, team.size, blocks, reasons, why_blocks, of_all, own_gpu=own)
    if kind.in_blocks:
        team.agree("number of blocks", {"number of blocks": placement.blocks})
    return replace(placement, team=team, tuning={**nodes, **asked.tuning})


def _nodes_of_team(kind: Kind, env: Env, team: Team) -> tuple[dict[str, Any], list[str]]:
    """Return what tells the core of nodes, and why; InvalidInputError where one is needed."""
    if kind.in_nodes:
        team.agree("size of nodes", {"CPUFREE_NODE_SIZE": env.node_size})
        return in_nodes(env, team.size)
    if env.node_size is not None and env.node_size < team.size:
        raise InvalidInputError(
            f"CPUFREE_NODE_SIZE is {env.node_size}, but {kind.name}s work on one node, where "
            f"all {team.size} PEs reach one another's memory: unset it, or start fewer processes"
        )
    return {}, []
