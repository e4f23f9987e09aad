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
from cpufree.engines import gpus
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, UnsupportedError
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
    """Return the kernel of ranks, each of which has so many multiprocessors.

    `roles`: blocks may be divided (ranks/roles.py). `puts`: how messages are put, one of
    ranks/layout.py's PUTS.
    """
    ranks = without_idle_sites(ranks)
    programs = grid_programs(ranks)
    layout = RankGridLayout(replace(ranks, variants=tuple(programs)), puts)
    text = emit_ranks(layout.ranks, programs, layout, multiprocessors, roles=roles)
    return GridKernel(programs[0], layout, text)


def gpu_runner_of_ranks(
    ranks: Ranks, devices: Sequence[int], roles: bool = True, puts: str = "auto"
) -> Runner:
    """Return what runs ranks on GPUs, one for each, where several may be the same.

    Raises
    ------
    UnsupportedError, OutOfMemoryError, EngineError
        As gpu_run.Gpus.
    """
    kernel = kernel_of_ranks(ranks, multiprocessors_of_rank(devices), roles, puts)
    return gpu_runner(kernel, devices, ranks.returned)


def multiprocessors_of_rank(devices: Sequence[int]) -> int:
    """Return the multiprocessors for each rank: ranks on one GPU share them."""
    return min(
        int(gpu["multiprocessors"]) // devices.count(gpu["index"])
        for gpu in load_core().gpus()
        if gpu["index"] in devices
    )


def devices_of(engine: str, named: Sequence[int] | str, ranks: int, env: Env) -> list[int]:
    """Return the GPU of each rank; none where ranks run on the CPU engine.

    Raises
    ------
    InvalidInputError, UnsupportedError, NotEnoughGpusError
        What is asked for cannot be had.
    """
    engine = env.engine if engine == "auto" else engine
    if engine not in ("auto", "cpu_threads", "cuda_p2p"):
        raise UnsupportedError(
            f"programs of ranks do not run on engine '{engine}': choose cpu_threads or cuda_p2p"
        )
    if engine == "cpu_threads" or (engine == "auto" and ranks > gpus_most()):
        return []
    usable = [gpu.index for gpu in gpus.usable(gpus.find())]
    if not isinstance(named, str):
        if len(named) != ranks:
            raise InvalidInputError(
                f"gpus names {len(named)} GPUs for {ranks} ranks: name one for each"
            )
        if set(named) - set(usable):
            raise InvalidInputError(f"gpus names {sorted(set(named))}; there are {usable}")
        return list(named)
    if len(usable) < ranks:
        if engine == "auto":
            return []
        raise NotEnoughGpusError(
            f"{ranks} ranks, and {len(usable)} GPUs: name one for each, as gpus=[0, 0, 1, 1]"
        )
    return usable[:ranks]


def gpus_most() -> int:
    """Return the most ranks that GPUs take."""
    return 16
