"""Grids of several processes: where each part is, and that all ranks are given the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpufree.distributed import Team
from cpufree.engines import choices, nvshmem
from cpufree.engines.asked import Asked
from cpufree.engines.in_processes import choose_gpu, cores_of, following
from cpufree.engines.watch import Watch
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.extension import load_for
from cpufree.stencil.grid_input import GridValues, Room
from cpufree.stencil.placement import StencilPlacement


def place(team: Team, asked: Asked, env: Env, near: int | None) -> StencilPlacement:
    """Return where this rank's part goes; all ranks call it together."""
    engine = env.engine if asked.engine == "auto" else asked.engine
    if near is not None:
        raise InvalidInputError(
            f"u0 lies on a GPU, but engine '{engine}' takes values on the host: pass a copy "
            "(u0.get() in CuPy, u0.cpu() in PyTorch)"
        )
    if env.node_size is not None and env.node_size < team.size:
        raise InvalidInputError(
            f"CPUFREE_NODE_SIZE is {env.node_size}, but stencils work on one node, where all "
            f"{team.size} PEs reach one another's memory: unset it, or start fewer processes"
        )
    blocks = env.blocks if asked.blocks == "auto" else asked.blocks
    count = 0 if blocks is None else choices.count("blocks", blocks)
    if engine == "cpu_processes":
        if asked.devices != "auto":
            raise InvalidInputError(
                f"gpus is {asked.gpus!r}, but engine 'cpu_processes' is asked for, which uses "
                "none: leave one of them out"
            )
        return StencilPlacement(engine, team.size, count, options={"cores": cores_of(team)})
    own, of_all = choose_gpu(team, asked, env)
    library = nvshmem.prepare(team)
    return StencilPlacement(
        engine, team.size, count, of_all, own_gpu=own, options={"nvshmem_library": library}
    )


def run(
    team: Team,
    start: GridValues,
    source: GridValues | None,
    periodic: list[bool],
    options: Mapping[str, Any],
    watch: Watch,
) -> tuple[dict[str, Any], Room]:
    """Run with the others of a team; return the outcome, and this rank's part of the values."""
    own = ("gpus", "nvshmem_library")  # may differ
    facts = {f"option {name}": value for name, value in options.items() if name not in own}
    facts |= {"shape": list(start.shape), "type of values": str(start.dtype)}
    facts |= {"boundary": periodic, "first values": start.summary}
    facts["source term"] = "none" if source is None else source.summary
    team.asked_to_stop = False
    team.agree("grid", facts)
    with team.limited(options["time_limit"]):
        return run_by_boxes(start, source, periodic, options, following(team, watch), team)


def run_by_boxes(
    start: GridValues,
    source: GridValues | None,
    periodic: list[bool],
    options: Mapping[str, Any],
    progress: Any,
    team: Team | None = None,
) -> tuple[dict[str, Any], Room]:
    """Run with values that the compiled core asks for; return the outcome, and the values."""
    room = Room(start.dtype)
    outcome = load_for(options["engine"]).jacobi_by_boxes(
        start.shape,
        start.dtype.itemsize == 4,
        start.by_numbers,
        None if source is None else source.by_numbers,
        room,
        periodic,
        dict(options),
        progress,
        team,
    )
    return outcome, room
