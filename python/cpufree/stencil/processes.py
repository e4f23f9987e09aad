"""Grids of several processes: all ranks are given the same, and each has its part of the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpufree.distributed import Team
from cpufree.engines.in_processes import following
from cpufree.engines.watch import Watch
from cpufree.extension import load_for
from cpufree.stencil.grid_input import GridValues, Room
from cpufree.trace.asked import agreed


def run(
    team: Team,
    start: GridValues,
    source: GridValues | None,
    periodic: list[bool],
    options: Mapping[str, Any],
    watch: Watch,
) -> tuple[dict[str, Any], Room]:
    """Run with the others of a team; return the outcome, and this rank's part of the values."""
    own = ("gpus", "remote_library")  # may differ
    facts = {f"option {name}": value for name, value in agreed(options).items() if name not in own}
    facts |= {"shape": list(start.shape), "type of values": str(start.dtype)}
    facts |= {"boundary": periodic, "first values": start.summary}
    facts["source term"] = "none" if source is None else source.summary
    team.asked_to_stop = False
    team.agree("grid", facts)
    with team.limited(options["time_limit"], options["wait_limit"]):
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
