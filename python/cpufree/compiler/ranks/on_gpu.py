"""Programs of ranks on GPUs: a GPU for each rank, or several ranks on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.gpu_run import gpu_runner
from cpufree.compiler.grid import GridKernel
from cpufree.compiler.passes import add_temporaries
from cpufree.compiler.passes.barriers import add_barriers, check_barriers
from cpufree.compiler.passes.points import group_points
from cpufree.compiler.ranks.grants import check_grants, early_grants
from cpufree.compiler.ranks.layout import RankGridLayout
from cpufree.compiler.ranks.live import without_idle_sites
from cpufree.compiler.ranks.on_grid import emit_ranks
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.compiler.runner import Runner
from cpufree.extension import load_core


def grid_programs(ranks: Ranks) -> list[ir.Program]:
    """Return the variants ready for GPUs; checked."""
    return with_same_fields([_grid_program(p) for p in ranks.variants])


def _grid_program(program: ir.Program) -> ir.Program:
    grouped = add_barriers(group_points(add_temporaries(program)), alone=True)
    # An early grant before a loop may need a barrier of its own.
    made = add_barriers(early_grants(grouped, behind_barriers=True), alone=True)
    check_barriers(made, alone=True)
    check_grants(made)
    return made


def kernel_of_ranks(
    ranks: Ranks, multiprocessors: int, roles: bool = True, puts: str = "auto"
) -> GridKernel:
    """Return the kernel of ranks, each of which has N multiprocessors.

    `roles`: blocks may be divided (ranks/roles.py). `puts`: how messages are put, one of
    ranks/layout.py's PUTS.
    """
    ranks = without_idle_sites(ranks)
    programs = grid_programs(ranks)
    layout = RankGridLayout(replace(ranks, variants=tuple(programs)), puts)
    text = emit_ranks(layout.ranks, programs, layout, multiprocessors, roles=roles)
    return GridKernel(programs[0], layout, text)


def gpu_runner_of_ranks(
    ranks: Ranks,
    devices: Sequence[int],
    roles: bool = True,
    puts: str = "auto",
    traced: bool = False,
) -> Runner:
    """Return what runs ranks on GPUs, one for each, where several may be the same.

    Raises
    ------
    UnsupportedError, OutOfMemoryError, EngineError
        As gpu_run.Gpus.
    """
    kernel = kernel_of_ranks(ranks, multiprocessors_of_rank(devices), roles, puts)
    return gpu_runner(kernel, devices, ranks.returned, traced)


def multiprocessors_of_rank(devices: Sequence[int]) -> int:
    """Return the multiprocessors for each rank: ranks on one GPU share them."""
    return min(
        int(gpu["multiprocessors"]) // devices.count(gpu["index"])
        for gpu in load_core().gpus()
        if gpu["index"] in devices
    )
