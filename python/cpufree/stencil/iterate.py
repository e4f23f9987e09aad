"""Jacobi iterations on grids: every PE runs one kernel from the first iteration to the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy.typing as npt

from cpufree import device_arrays
from cpufree.arguments import Count, Engine, Gpus
from cpufree.calls import public
from cpufree.device_arrays import cuda_device
from cpufree.distributed import Team
from cpufree.docstrings import with_parameters
from cpufree.engines import choices
from cpufree.engines.asked import Asked
from cpufree.engines.in_processes import team_for
from cpufree.engines.place import place
from cpufree.engines.placement import Placement
from cpufree.engines.progress_bar import ProgressBar, of_iterations
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.extension import load_for
from cpufree.log import log_choices, log_times
from cpufree.options import stencil as stencil_options
from cpufree.stencil import processes
from cpufree.stencil.grid_input import (
    Box,
    GridLike,
    GridValues,
    Room,
    as_boundary,
    as_grid,
    as_source,
    count_updates,
)
from cpufree.stencil.result import StencilReason, StencilResult
from cpufree.stencil.work import GridWork
from cpufree.text import counted
from cpufree.trace import asked as asked_trace
from cpufree.trace.asked import TraceGiven
from cpufree.trace.explained import explained
from cpufree.trace.records import Trace


@public
@with_parameters
def jacobi(
    u0: GridLike,
    iters: int,
    *,
    boundary: str | Sequence[str] = "dirichlet",
    source: GridLike | None = None,
    tol: float | None = None,
    check_every: int | None = None,
    pes: Count = "auto",
    blocks: Count = "auto",
    engine: Engine = "auto",
    gpus: Gpus = "auto",
    halo_steps: Count = "auto",
    time_limit: float | None = None,
    wait_limit: float | None = None,
    progress: ProgressLike = None,
    shape: Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    gather: bool = True,
    trace: TraceGiven = None,
) -> StencilResult:
    """Do Jacobi iterations: each new value is the mean of a point's 4 or 6 neighbours.

    With a source term, u_new = (sum of the neighbours + source) / (2 ndim): for the Poisson
    equation -Δu = f on squares or cubes of width h, source = h² f. The arithmetic of a point and
    its order are fixed: all numbers of PEs, blocks and halo_steps give the same bits.

    Parameters
    ----------
    u0 : array or callable
        First values, 2 or 3 dimensions, 1 point or more along each; finite. float32 and float64 are
        kept, other real types become float64. Any memory layout; it is not changed. It may lie on a
        GPU (CuPy, PyTorch): it is copied through the host, as is the result. Or a function that is
        called with boxes of the grid, a tuple with a slice for each axis, and returns the values
        there; `shape` and `dtype` are then those of the grid. Each of several processes asks for
        what its own PE stores, and holds no more.
    iters : int
        Iterations to do, or with tol: at most. 0 or more.
    boundary : {"dirichlet", "periodic"} or sequence of these, default "dirichlet"
        "dirichlet" (the first and last points along an axis keep their values) or "periodic", or
        one of these for each axis.
    source : array of the shape of u0, or callable, optional
        The source term, finite; default none. Taken in the type of u0, on a GPU or on the host,
        wherever u0 is.
    tol : float, optional
        Stop where no point changes by more than tol, in the unit of u0; default: never. 0 or more.
    check_every : int, optional
        Iterations between two checks of that, default 100. The kernels then also listen to the host
        (Ctrl-C, time_limit, progress); without tol, the default is every few milliseconds. 1 or
        more.
    {engine, gpus, pes, blocks}
        Fewer PEs and blocks are used where the grid has too few points; a warning says so.
    halo_steps : int or "auto", default "auto"
        Iterations from one exchange of halos to the next, with halos as many points wide; auto
        chooses by a model of the caches. From 1 to 64, and no more than a tile is wide: fewer are
        used where that is less, and a warning says so. Kernels for GPUs have 1, 2, 4 or 8, in three
        dimensions 1 or 2.
    {time_limit, wait_limit}
    progress : bool or callable, optional
        True shows a bar in terminals and notebooks. Or a function, called as progress(iteration,
        update) in this thread about every 50 ms, update being the root mean square change of a
        point (NaN without tol); where it returns False, the run ends (reason INTERRUPTED), as with
        Ctrl-C.
    shape : sequence of 2 or 3 int, optional
        Points of the grid along each axis, 1 or more; where u0 is a function, and there only.
    dtype : float32 or float64, optional
        Type of the values where u0 is a function, and there only; default float64.
    {gather}
    {trace}
        On CPU engines.

    Returns
    -------
    StencilResult
        Values after the last iteration, reason for the end, times.

    Raises
    ------
    InvalidInputError
        For values or options that cannot be used.
    UnsupportedError, NotEnoughGpusError
        For an engine or GPUs that are not available.
    WaitTimeoutError, OutOfMemoryError, RankFailedError
        RankFailedError: another process has failed.
    Exception
        Whatever progress raises.

    References
    ----------
    Jacobi's method as in Y. Saad, Iterative methods for sparse linear systems, 2003, chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> u0 = np.zeros((64, 64), dtype=np.float32)
    >>> u0[0] = 1.0
    >>> result = cpufree.stencil.jacobi(u0, 100)
    >>> result.iterations, str(result.reason)
    (100, 'CONVERGED_ITS')
    >>> float(result.u[1, 32]) > float(result.u[2, 32]) > 0.0
    True
    """
    env = Env.read()
    asked = Asked(engine, gpus, pes, blocks)
    team = team_for(env.engine if engine == "auto" else engine, asked)
    with nullcontext() if team is None else team.working():
        options = _options(iters, tol, check_every, halo_steps, time_limit, wait_limit, env)
        input_gpu = None if callable(u0) else cuda_device(u0)
        start = as_grid(u0, "u0", shape, dtype)
        periodic = as_boundary(boundary, len(start.shape))
        term = None if source is None else as_source(source, start)
        updates = count_updates(start.shape, periodic)
        work = GridWork(
            start.shape,
            tuple(periodic),
            start.dtype.itemsize,
            updates * options["iterations"],
            term is not None,
        )
        placement = place(work, asked, env, input_gpu, team)
        options |= {"engine": placement.engine, "pes": placement.pes, "blocks": placement.blocks}
        options |= {"gpus": placement.own_devices, "gather": bool(gather), **placement.tuning}
        if placement.cores is not None:
            options["cores"] = placement.cores
        recording = asked_trace.checked(trace)
        options |= recording.options() if recording else {}
        watch = progress if isinstance(progress, Watch) else Watch(progress)
        bar = partial(ProgressBar, "  iterating", of_iterations(options["iterations"]))
        with watch.bar(0 if team is None else team.rank, bar), watch, explained():
            outcome, room = _run(team, start, term, periodic, options, watch)
        if watch.error is not None:
            raise watch.error
    u = room.values if input_gpu is None else device_arrays.copy_beside(u0, room.values)
    found = None
    if recording:
        from cpufree.trace.finished import finished  # for those who want traces

        facts = {name: outcome[name] for name in ("engine", "pes", "blocks", "iterations", "halo")}
        facts |= {"what": "stencil, jacobi", "kernel_seconds": outcome["seconds"]}
        speaks = team is None or team.rank == 0
        found = finished(outcome["trace"], facts, recording, speaks)
    result = _result(u, room.box, start.shape, outcome, options, updates, placement, found)
    _tell(result)
    return result


def _run(
    team: Team | None,
    start: GridValues,
    source: GridValues | None,
    periodic: list[bool],
    options: Mapping[str, Any],
    watch: Watch,
) -> tuple[dict[str, Any], Room]:
    """Return the outcome of a run, and where its values are."""
    if team is not None:
        return processes.run(team, start, source, periodic, options, watch)
    if start.array is None or (source is not None and source.array is None):
        return processes.run_by_boxes(start, source, periodic, options, watch)
    room = Room(start.dtype)
    out = room([0] * len(start.shape), start.shape)
    term = None if source is None else source.array
    core = load_for(options["engine"])
    return core.jacobi(start.array, term, out, periodic, options, watch), room


def _options(
    iters: int,
    tol: float | None,
    check_every: int | None,
    halo_steps: int | str,
    time_limit: float | None,
    wait_limit: float | None,
    env: Env,
) -> dict[str, Any]:
    """Return the options of a run, as the compiled core takes them."""
    options: dict[str, Any] = {
        "halo_steps": choose_halo_steps(halo_steps),
        "iterations": choices.valid(stencil_options.ITERS, iters),
        "tol": -1.0 if tol is None else choices.valid(stencil_options.TOL, tol),
        "check_every": 100 if tol is not None else 0,
        "time_limit": choices.seconds("time_limit", time_limit, 0.0),
        "wait_limit": choices.seconds(
            "wait_limit", wait_limit, env.wait_limit or choices.WAIT_LIMIT
        ),
    }
    if check_every is not None:
        options["check_every"] = choices.valid(stencil_options.CHECK_EVERY, check_every)
    return options


def _result(
    u: Any,
    box: Box,
    shape: tuple[int, ...],
    outcome: dict[str, Any],
    options: Mapping[str, Any],
    updates: int,
    placement: Placement,
    trace: Trace | None,
) -> StencilResult:
    if placement.gpus:
        outcome["gpus"] = [gpu.index for gpu in placement.gpus][: outcome["pes"]]
    top = "reason iterations update seconds engine pes blocks halo_steps trace"
    return StencilResult(
        u=u,
        box=box,
        shape=shape,
        iterations=outcome["iterations"],
        reason=StencilReason(outcome["reason"]),
        residual=outcome["update"],
        seconds=outcome["seconds"],
        updates=updates,
        engine=outcome["engine"],
        pes=outcome["pes"],
        blocks=outcome["blocks"],
        halo_steps=outcome["halo_steps"],
        plan={key: value for key, value in outcome.items() if key not in top.split()},
        warnings=(*placement.warnings, *_notes(outcome, options)),
        trace=trace,
    )


def _tell(result: StencilResult) -> None:
    """Log a run."""
    where = f"{result.engine}, {counted(result.pes, 'PE')} × {counted(result.blocks, 'block')}"
    log_choices("jacobi", [result.message, where, str(result.plan)], result.warnings)
    log_times("jacobi", {"kernel": result.seconds, "per_iteration": result.per_iteration})


def _notes(outcome: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return where less was used than was asked for."""
    notes = []
    for name, what in (("pes", "PE"), ("blocks", "block")):
        if outcome[name] < options[name]:
            used, asked = outcome[name], options[name]
            notes.append(f"the grid has rows for {counted(used, what)} only, not for {asked}")
    if outcome["halo_steps"] < options["halo_steps"]:
        notes.append(
            f"halos are exchanged every {counted(outcome['halo_steps'], 'iteration')}, not every "
            f"{options['halo_steps']}: "
            + ("the GPUs have no such kernel" if placed_on_gpus(outcome) else "tiles are no wider")
        )
    return notes


def placed_on_gpus(outcome: Mapping[str, Any]) -> bool:
    """Return whether a run was one of kernels whose halos have widths of their own."""
    return outcome.get("sweep") in ("registers_3d", "time_tiles")


def choose_halo_steps(asked: int | str) -> int:
    """Return the iterations between two exchanges, 0 where the engine decides."""
    steps = choices.valid(stencil_options.HALO_STEPS, asked)
    if steps == "auto":
        return 0
    most = int(stencil_options.HALO_STEPS.most or 0)
    if steps > most:
        raise InvalidInputError(f"halo_steps is {steps}: at most {most} are possible")
    return int(steps)
