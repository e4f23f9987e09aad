"""Engines of several processes: their teams, and solves for which all ranks are given the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cpufree import distributed, options
from cpufree.distributed import Team
from cpufree.engines import choices, gpus, remote
from cpufree.engines.asked import Asked
from cpufree.engines.digests import digest
from cpufree.engines.gpus import Gpu
from cpufree.engines.watch import Watch
from cpufree.env import Env
from cpufree.errors import InvalidInputError, RankFailedError, UnsupportedError


def team_for(engine: str, asked: Asked) -> Team | None:
    """Return the team of an engine, None for engines of one process; this process joins it.

    Raises:
        InvalidInputError: a number of PEs is asked for that is not that of the processes.
        UnsupportedError: this process was started alone.
    """
    if engine not in options.DISTRIBUTED:
        return None
    if engine in remote.OF_ENGINE and distributed.current() is None:
        remote.discover_early(gpus.find, remote.OF_ENGINE[engine].version)
    team = distributed.join()
    with team.working():
        if asked.pes not in ("auto", team.size):
            raise InvalidInputError(
                f"pes is {asked.pes}, but there are {team.size} processes, and engine '{engine}' "
                "has one PE in each: leave pes out"
            )
    return team


def cores_of(team: Team) -> int:
    """Return how many cores the ranks, which must be on one machine, have together.

    All ranks call it together: a launcher may have bound each process to cores of its own.
    """
    require_one_machine(team)
    found = team.tell_all("cores", {"cores": choices.cores_here()})
    return len({core for facts in found for core in facts["cores"]})


def require_one_machine(team: Team) -> None:
    """Raise UnsupportedError where the ranks are on several machines."""
    here = team.ranks_here()
    elsewhere = [rank for rank in range(team.size) if rank not in here]
    if elsewhere:
        hosts = [team.members[rank]["host"] for rank in (here[0], elsewhere[0])]
        raise UnsupportedError(
            f"engine 'cpu_processes' works on one machine, but rank {here[0]} is on {hosts[0]}, "
            f"and rank {elsewhere[0]} on {hosts[1]}: use engine 'nvshmem' or 'nccl' there"
        )


def choose_gpu(team: Team, engine: str, asked: Asked, env: Env) -> tuple[Gpu, list[Gpu]]:
    """Return the GPU of this rank, which no other rank has, and those of all, by rank.

    All ranks call it together.
    """
    there = gpus.require_usable(engine)
    wanted = asked.devices if asked.devices != "auto" else env.gpus
    if not isinstance(wanted, str):
        gpus.unrepeated(wanted, "gpus", "each process has a GPU of its own")
    pool = there if isinstance(wanted, str) else gpus.select(wanted, there, "gpus")
    # A launcher that gives each process GPUs of its own leaves only those to be seen. Where all see
    # the same ones, and there are too few, two ranks take the same, which is reported below.
    mine = pool[team.local_rank % len(pool)]
    found = team.tell_all("GPUs", dataclasses.asdict(mine))
    everybody = [
        Gpu(**{**facts, "compute_capability": tuple(facts["compute_capability"])})
        for facts in found
    ]
    seen: dict[str, int] = {}
    for rank, gpu in enumerate(everybody):
        first = seen.setdefault(gpu.uuid, rank)
        if first != rank:
            raise RankFailedError(
                f"rank {rank} has the same GPU as rank {first} ({gpu.name}, {gpu.uuid[:8]} on "
                f"{team.members[rank]['host']}): each rank needs one of its own; start as many "
                "ranks on a machine as it has GPUs",
                rank,
            )
    return mine, everybody


def solve(
    team: Team,
    vectors: Sequence[Any],
    options: Mapping[str, Any],
    watch: Watch,
    call: Callable[[Callable[[int, float], bool]], Any],
    own: bool,
) -> Any:
    """Return what `call` returns for a function that follows the solve.

    Args:
        vectors: right-hand side, and first guess or None; `own`: this rank's parts of them.
    """
    with team.working():
        facts = {f"option {name}": value for name, value in options.items()}
        if own:
            facts["first guess"] = "none" if vectors[1] is None else "given"
        else:
            facts |= {"right-hand side": digest(vectors[0]), "first guess": digest(vectors[1])}
        team.asked_to_stop = False
        team.agree("options of a solve", facts)
        with team.limited(options["time_limit"], options["wait_limit"]):
            return call(following(team, watch))


def following(team: Team, watch: Watch) -> Callable[[int, float], bool]:
    """Return a function that follows kernels, and the team.

    Kernels end together where that of rank 0 is asked to, so others ask rank 0.
    """
    asked = False
    hear = watch if team.rank == 0 else watch.hears  # kernels of rank 0 alone tell of a norm

    def follow(iteration: int, residual: float) -> bool:
        nonlocal asked
        team.check()  # another rank has failed: the kernels are made to leave
        if hear(iteration, residual):
            return not team.asked_to_stop
        if team.rank != 0 and not asked:
            asked = True
            team.ask_to_stop()
        return False

    return follow
