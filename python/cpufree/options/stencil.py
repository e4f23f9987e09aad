"""The options of `jacobi` and `cpufree stencil`, in the form of `cpufree.options`."""

from __future__ import annotations

from dataclasses import replace

from cpufree.options import (
    BLOCKS,
    ENGINE,
    GPUS,
    JSON,
    OUT,
    PES,
    PLOT,
    PRECISION,
    QUIET,
    TIME_LIMIT,
    TRACE,
    TRACE_EVERY,
    WAIT_LIMIT,
)
from cpufree.options.schema import Option

# Of stencils.
ITERS = Option(
    "iters", "count", None,
    "Iterations; with --tol, at most.", "iterations; with `--tol`, at most",
    least=0, form="N", otherwise="required", required=True,
)  # fmt: skip
GRID = Option(
    "grid", "text", None,
    "Points along each axis, such as 8192x8192, 64x48x32 or 256^3; not with --init FILE.",
    "points along each axis, the last one contiguous",
    form="AxB|AxBxC|N^2|N^3", otherwise="required without a file",
)  # fmt: skip
INIT = Option(
    "init", "text", None,
    "First values: hot-wall (1 where axis 0 begins, else 0; the default), random:SEED (uniform in "
    "0..1), or a file .npy.",
    "first values: 1 where axis 0 begins and 0 elsewhere, uniform in 0..1, or a file",
    choices=("hot-wall", "random:SEED"), form="FILE.npy", otherwise="`hot-wall`", metavar="WHAT",
)  # fmt: skip
BOUNDARY = Option(
    "boundary", "choices", "dirichlet",
    "dirichlet or periodic, or one for each axis with commas between.",
    "the first and last points along an axis keep their values, or are neighbours; for each axis "
    "its own with commas between",
    choices=("dirichlet", "periodic"),
)  # fmt: skip
TOL = Option(
    "tol", "number", None,
    "Stop where no point changes by more than this.",
    "stop where no point changes by more than TOL",
    least=0, form="TOL", otherwise="never",
)  # fmt: skip
CHECK_EVERY = Option(
    "check_every", "count", None,
    "Iterations between two looks at --tol.", "iterations between two checks of `--tol`",
    least=1, form="N", otherwise="100", metavar="N",
)  # fmt: skip
HALO_STEPS = Option(
    "halo_steps", "count", "auto",
    "Iterations between two exchanges of halos, or auto.",
    "iterations from one exchange of halos to the next, at most 64; kernels for GPUs have 1, 2, 4, "
    "8, in three dimensions 1 and 2",
    least=1, most=64, form="K", takes_auto=True, metavar="K",
)  # fmt: skip
COMPARE = Option(
    "check", "switch", False,
    "Compare with the serial reference, bit for bit: slow.",
    "compare with the serial reference, bit for bit; slow on large grids",
)  # fmt: skip
STENCIL_ENGINE = replace(
    ENGINE,
    help="GPUs (cuda_p2p), the CPU (cpu_threads), or auto; as several processes (cpufree run, "
    "mpirun, srun, torchrun), nvshmem, nccl or cpu_processes.",
    meaning="as for `solve`; the last three with [one process for each "
    "PE](distributed.md#stencils)",
)
KIND = Option(
    "kind", "choice", None, "5 points in two dimensions, or 7 in three.",
    choices=("jacobi2d", "jacobi3d"), flag="kind", required=True,
)  # fmt: skip
STENCIL_PRECISION = replace(
    PRECISION,
    help="Type of the values. Default: the file's, or double.",
    meaning="type of the values; `dtype` in Python",
    otherwise="the file's, or `double`",
)
STENCIL = (
    *(ITERS, GRID, INIT, BOUNDARY, STENCIL_PRECISION, TOL, CHECK_EVERY),
    replace(PES, meaning="as for `solve`; fewer are used where the grid has too few points"),
    replace(BLOCKS, meaning="as for `solve`"),
    HALO_STEPS,
    STENCIL_ENGINE,
    replace(GPUS, meaning="as for `solve`"),
    replace(TIME_LIMIT, meaning="stop after this time and keep the values so far"),
    WAIT_LIMIT,
    COMPARE,
    replace(OUT, help="Save the values: .npy.", meaning="save the values", form="FILE.npy"),
    replace(
        PLOT,
        help="Picture of the values: .png, .svg or .pdf.",
        meaning="picture of the values, of a grid in three dimensions the middle plane "
        "(`.png`, `.svg`, `.pdf`)",
    ),
    *(TRACE, TRACE_EVERY, JSON, QUIET),
)
TABLES = {"stencil": STENCIL}
