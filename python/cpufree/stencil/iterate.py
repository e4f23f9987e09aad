"""Jacobi iterations on grids: every PE runs one kernel from the first iteration to the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree import device_arrays
from cpufree import options as schema
from cpufree.device_arrays import cuda_device
from cpufree.distributed import Team
from cpufree.dtypes import dtype_name
from cpufree.engines import choices, core
from cpufree.engines.in_processes import team_for
from cpufree.engines.placement import Asked
from cpufree.engines.watch import Progress, Watch
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.stencil import processes
from cpufree.stencil.grid_input import Box, GridValues, Room, as_boundary, as_grid, as_source, whole
from cpufree.stencil.placement import StencilPlacement, Work, place
from cpufree.text import counted


class StencilReason(str, Enum):
    """Why a run ended. Names after PETSc. A member is its name."""

    CONVERGED_ITS = "CONVERGED_ITS"
    CONVERGED_ATOL = "CONVERGED_ATOL"
    DIVERGED_ITS = "DIVERGED_ITS"
    DIVERGED_NANORINF = "DIVERGED_NANORINF"
    TIME_LIMIT = "TIME_LIMIT"
    INTERRUPTED = "INTERRUPTED"

    @property
    def meaning(self) -> str:
        """The reason in words."""
        return _MEANINGS[self.value]

    def __str__(self) -> str:
        return self.value


_MEANINGS = {
    "CONVERGED_ITS": "all iterations asked for were done",
    "CONVERGED_ATOL": "no point changed by more than tol",
    "DIVERGED_ITS": "the iterations asked for were not enough to meet tol",
    "DIVERGED_NANORINF": "values became too large for their type: infinities or NaN came up",
    "TIME_LIMIT": "the time limit was reached",
    "INTERRUPTED": "Ctrl-C was pressed, or progress asked to stop",
}


@dataclass(frozen=True, eq=False, repr=False)
class StencilResult:
    """The outcome of a run of Jacobi iterations.

    Attributes
    ----------
    u : array
        The values after `iterations` iterations, of the points `box`; float32 or float64; an array
        of CuPy or PyTorch on the GPU of u0 where u0 is one.
    box : tuple of slice
        The points of the grid that u has: all of them, except in several processes, where rank 0
        has all and each other one its own part (with gather=False: rank 0 as well).
    shape : tuple of int
        Points of the grid along each axis.
    iterations : int
        Iterations done.
    reason : StencilReason
        Why the run ended.
    residual : float
        Largest change of a point in the last iteration; NaN where a point has become NaN, and where
        a run without tol was stopped early, which measures nothing.
    seconds : float
        From the launch of the kernels to the end of the last one.
    updates : int
        Points that an iteration updates: all but those that a Dirichlet boundary keeps.
    engine : str
        Where it ran.
    pes, blocks : int
        Number of PEs, and blocks in each; on the CPU engine a block is a thread, on GPUs a PE is a
        GPU.
    halo_steps : int
        Iterations from one exchange of halos to the next.
    plan : dict
        How the grid was divided: "pe_grid" and "block_grid" (parts along each axis), "tile_points"
        (of the largest tile), "halo" ("packets", "values", or "none"), "halo_points" (that all
        tiles receive in an exchange), "pe_halo_points" (those from other PEs), "check_every",
        "thickness" (planes between two barriers of a block), "sweep" (how blocks hold their tiles),
        "exchanges" and "checks" that took place, "gpus" (their numbers).
    warnings : tuple of str
        What the user should know, in sentences.
    """

    u: Any
    box: Box
    shape: tuple[int, ...]
    iterations: int
    reason: StencilReason
    residual: float
    seconds: float
    updates: int
    engine: str
    pes: int
    blocks: int
    halo_steps: int
    plan: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def per_iteration(self) -> float:
        """Seconds for each iteration."""
        return self.seconds / max(1, self.iterations)

    @property
    def glups(self) -> float:
        """10⁹ points updated per second (GLUP/s); NaN where there was nothing to do."""
        work = 1e-9 * self.updates * self.iterations
        return work / self.seconds if work and self.seconds > 0 else math.nan

    @property
    def moved_bytes(self) -> int:
        """Bytes of an iteration that reads and writes every updated point once."""
        return 2 * self.updates * np.dtype(dtype_name(self.u)).itemsize

    def to_dict(self) -> dict[str, Any]:
        """Return everything but u as plain Python values, ready for JSON; NaN becomes None."""
        names = "iterations reason residual seconds per_iteration glups updates moved_bytes engine "
        names += "pes blocks halo_steps plan warnings"
        content = {name: getattr(self, name) for name in names.split()}
        content |= {"reason": self.reason.value, "warnings": list(self.warnings)}
        content |= {"shape": list(self.shape), "dtype": dtype_name(self.u)}
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in content.items()
        }

    def __repr__(self) -> str:
        where = f"{self.engine}, {counted(self.pes, 'PE')} × {counted(self.blocks, 'block')}"
        lines = [
            f"StencilResult: {counted(self.iterations, 'iteration')} "
            f"({self.reason}: {self.reason.meaning})",
            f"  u          {dtype_name(self.u)} {tuple(self.u.shape)}",
            f"  residual   {self.residual:.3e}",
            f"  seconds    {self.seconds:.3g}, per iteration {self.per_iteration:.3g}, "
            f"{self.glups:.3g} GLUP/s",
            f"  engine     {where}, halos every {counted(self.halo_steps, 'iteration')}",
        ]
        lines += [f"  warning    {warning}" for warning in self.warnings]
        return "\n".join(lines)


def jacobi(
    u0: Any,
    iters: int,
    *,
    boundary: str | Sequence[str] = "dirichlet",
    source: Any = None,
    tol: float | None = None,
    check_every: int | None = None,
    pes: int | str = "auto",
    blocks: int | str = "auto",
    engine: str = "auto",
    gpus: Any = "auto",
    halo_steps: int | str = "auto",
    time_limit: float | None = None,
    wait_limit: float | None = None,
    progress: Progress | None = None,
    shape: Sequence[int] | None = None,
    dtype: npt.DTypeLike | None = None,
    gather: bool = True,
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
        Iterations to do, or with tol: at most.
    boundary : str or sequence of str
        "dirichlet" (the first and last points along an axis keep their values) or "periodic", or
        one of these for each axis.
    source : array of the shape of u0, or callable, optional
        The source term, finite; default none. Taken in the type of u0, on a GPU or on the host,
        wherever u0 is.
    tol : float, optional
        Stop where no point changes by more than tol; default: never.
    check_every : int, optional
        Iterations between two checks of that, default 100. The kernels then also listen to the host
        (Ctrl-C, time_limit, progress); without tol, the default is every few milliseconds.
    pes, blocks : int or "auto"
        Number of PEs (auto: 1 on the CPU, on GPUs as many GPUs as pay by a model), and blocks for
        each (auto: the cores; on a GPU its multiprocessors). Fewer are used where the grid has too
        few points; a warning says so.
    engine : str
        "cuda_p2p" (GPUs), "cpu_threads", or "auto": GPUs where there are some and the work is worth
        setting them up. In programs that a launcher has started as several processes, each of which
        makes the same call: "nvshmem" (a GPU for each), "cpu_processes".
    gpus : "auto", "all", list of int or str
        Which GPUs: numbers such as [0, 2], or a text such as "0,2-5".
    halo_steps : int or "auto"
        Iterations from one exchange of halos to the next, with halos as many points wide; auto
        chooses by a model of the caches. At most 64, and no more than a tile is wide: fewer are
        used where that is less, and a warning says so. Kernels for GPUs have 1, 2, 4 or 8, in three
        dimensions 1 or 2.
    time_limit : float, optional
        Seconds after which to stop; default none.
    wait_limit : float, optional
        Seconds that a block may wait for another before the run is given up with a diagnosis;
        default 60.
    progress : callable, optional
        Called as progress(iteration, update) in this thread about every 50 ms, update being the
        root mean square change of a point (NaN without tol); returning False ends the run (reason
        INTERRUPTED), as Ctrl-C does.
    shape, dtype : sequence of int, float32 or float64
        Those of the grid where u0 is a function; dtype defaults to float64.
    gather : bool
        Of several processes, rank 0 gets all values; False: each has its own part alone.

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
        near = None if callable(u0) else cuda_device(u0)
        start = as_grid(u0, "u0", shape, dtype)
        periodic = as_boundary(boundary, len(start.shape))
        term = None if source is None else as_source(source, start)
        updates = count_updates(start.shape, periodic)
        if team is None:
            work = updates * options["iterations"]
            bytes_each = start.dtype.itemsize
            size = Work(start.shape, tuple(periodic), bytes_each, work, term is not None)
            placement = place(asked, env, size, near)
        else:
            placement = processes.place(team, asked, env, near)
        options |= {"engine": placement.engine, "pes": placement.pes, "blocks": placement.blocks}
        options |= {"gpus": placement.devices, "gather": bool(gather), **placement.options}
        if not (progress is None or callable(progress)):
            raise InvalidInputError(f"progress is {progress!r}: give a function, or None")
        watch = progress if isinstance(progress, Watch) else Watch(progress)
        with watch:
            outcome, room = _run(team, start, term, periodic, options, watch)
        if watch.error is not None:
            raise watch.error
    u = room.values if near is None else device_arrays.copy_beside(u0, room.values)
    return _result(u, room.box, start.shape, outcome, options, updates, placement)


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
    return core.load().jacobi(start.array, term, out, periodic, options, watch), room


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
        "iterations": choices.valid(schema.ITERS, iters),
        "tol": -1.0 if tol is None else choices.valid(schema.TOL, tol),
        "check_every": 100 if tol is not None else 0,
        "time_limit": choices.seconds("time_limit", time_limit, 0.0),
        "wait_limit": choices.seconds(
            "wait_limit", wait_limit, env.wait_limit or choices.WAIT_LIMIT
        ),
    }
    if check_every is not None:
        options["check_every"] = choices.valid(schema.CHECK_EVERY, check_every)
    return options


def _result(
    u: Any,
    box: Box,
    shape: tuple[int, ...],
    outcome: dict[str, Any],
    options: Mapping[str, Any],
    updates: int,
    placement: StencilPlacement,
) -> StencilResult:
    if placement.gpus:
        outcome["gpus"] = [gpu.index for gpu in placement.gpus][: outcome["pes"]]
    top = "reason iterations update seconds engine pes blocks halo_steps"
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
    )


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
    return outcome.get("sweep") in ("registers", "registers_3d", "time_tiles")


def count_updates(shape: Sequence[int], periodic: Sequence[bool]) -> int:
    """Return how many points of a grid an iteration updates."""
    inner = (n if wraps else max(0, n - 2) for n, wraps in zip(shape, periodic, strict=True))
    return math.prod(inner)


def reference(
    u0: npt.NDArray[Any],
    iters: int,
    *,
    boundary: str | Sequence[str] = "dirichlet",
    source: Any = None,
    progress: Callable[[int], object] = lambda done: None,
) -> npt.NDArray[Any]:
    """Return what `jacobi` is to give, from the serial reference; slow on large grids.

    `progress` is called with the number of iterations done, between stretches of about a second, so
    that Ctrl-C works.
    """
    first = as_grid(u0, "u0", None, None)
    start = first.part(whole(first.shape))
    periodic = as_boundary(boundary, start.ndim)
    term = None if source is None else as_source(source, first).part(whole(first.shape))
    done = 0
    # A point takes some nanoseconds.
    stretch = max(1, int(3e8 / max(1, start.size)))
    result = start.copy()
    while done < iters:
        now = min(stretch, iters - done)
        out = np.empty_like(result)
        core.load().jacobi_reference(result, term, out, periodic, now)
        result, done = out, done + now
        progress(done)
    return result


def choose_halo_steps(asked: int | str) -> int:
    """Return the iterations between two exchanges, 0 where the engine decides."""
    steps = choices.valid(schema.HALO_STEPS, asked)
    if steps == "auto":
        return 0
    most = int(schema.HALO_STEPS.most or 0)
    if steps > most:
        raise InvalidInputError(f"halo_steps is {steps}: at most {most} are possible")
    return int(steps)
