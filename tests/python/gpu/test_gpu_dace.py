"""Distributed programs of DaCe on real GPUs: one rank on each, and ranks that share GPUs.

DaCe is not needed: its front end has saved the programs (support/dace/dace_cases.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dace_cases import KERNELS, SAVED, arguments, constants, load, load_kernel, path
from dace_grids import CASES, whole_of
from gpus_here import NUMBERS, needs_gpu

from cpufree import env
from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.gpu_run import gpu_runner, multiprocessors_of
from cpufree.compiler.grid import chosen_kernel, grid_groups
from cpufree.compiler.interpret import interpret
from cpufree.compiler.ranks.host_messages import WAYS
from cpufree.compiler.ranks.hosted import hosted_runner_of_ranks
from cpufree.compiler.ranks.layout import PUTS
from cpufree.compiler.ranks.on_gpu import gpu_runner_of_ranks
from cpufree.compiler.ranks.routes import Ranks
from cpufree.engines.watch import Watch
from cpufree.errors import UnsupportedError, WaitTimeoutError
from cpufree.extension import load_for_programs
from cpufree.laps import Laps

env.preset_shared_gpus()


def _compiler() -> bool:
    try:
        load_for_programs()
    except UnsupportedError:
        return False
    return True


pytestmark = [needs_gpu, pytest.mark.skipif(not _compiler(), reason="the extension does not load")]


def run(
    ranks: Ranks,
    given: Any,
    devices: list[int],
    steps: int,
    limit: float = 10.0,
    puts: str = "auto",
) -> Any:
    kernel = gpu_runner_of_ranks(ranks, devices, puts=puts)
    watch = Watch(None)
    with watch:
        return kernel.run(given, constants(ranks), {"TSTEPS": steps}, limit, watch, Laps())


def spread(ranks: int, count: int) -> list[int]:
    """Return the GPU of each rank, `count` GPUs."""
    return [NUMBERS[r * count // ranks] for r in range(ranks)]


@pytest.mark.parametrize("count", range(1, len(NUMBERS) + 1))
@pytest.mark.parametrize(("name", "ranks"), SAVED)
@pytest.mark.timeout(600)
def test_ranks_give_the_bits_of_plain_numpy(name: str, ranks: int, count: int) -> None:
    if count > ranks:
        pytest.skip("more GPUs than ranks")
    _, plain, points, grids = CASES[name]
    program = load(path(name, ranks))
    for steps in (2, 7, 200):
        given = arguments(name, ranks, steps)
        run(program, given, spread(ranks, count), steps)
        expected = plain(points, steps, ranks)
        for key, wanted in zip(("lA", "lB"), expected, strict=True):
            found = whole_of([a.arrays[key] for a in given], grids[ranks])
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name}, {key}, {steps} steps")


@pytest.mark.parametrize("puts", PUTS[1:])
def test_all_ways_to_put_give_the_same_bits(puts: str) -> None:
    """The other tests put as the compiler chooses."""
    _, plain, points, grids = CASES["jacobi_2d"]
    given = arguments("jacobi_2d", 4, 40)
    run(load(path("jacobi_2d", 4)), given, spread(4, min(2, len(NUMBERS))), 40, puts=puts)
    found = whole_of([a.arrays["lA"] for a in given], grids[4])
    np.testing.assert_array_equal(found, plain(points, 40, 4)[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", range(1, len(NUMBERS) + 1))
@pytest.mark.parametrize(("name", "ranks"), [c for c in SAVED if "signals" not in c[0]])
def test_ranks_driven_by_the_host_give_the_same_bits(
    name: str, ranks: int, count: int, way: str
) -> None:
    if count > ranks:
        pytest.skip("more GPUs than ranks")
    _, plain, points, grids = CASES[name]
    program = load(path(name, ranks))
    for steps in (2, 200):
        given = arguments(name, ranks, steps)
        scalars, watch = {"TSTEPS": steps}, Watch(None)
        hosted = hosted_runner_of_ranks(program, spread(ranks, count), scalars, way)
        hosted.run(given, constants(program), scalars, 10.0, watch, Laps())
        for key, wanted in zip(("lA", "lB"), plain(points, steps, ranks), strict=True):
            found = whole_of([a.arrays[key] for a in given], grids[ranks])
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name}, {key}, {steps} steps")


class Values:
    """What a program is interpreted with: no caller gives numbers."""

    def __init__(self, program: ir.Program, steps: int) -> None:
        self.program, self.data, self.result = program, {}, None
        self.scalars = dict.fromkeys((n for n, _ in program.scalars), steps)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_with_folds_give_what_the_interpreter_gives(name: str) -> None:
    program = load_kernel(name)
    fields = [f for f in program.fields if f.role == "argument"]
    rng = np.random.default_rng(3)
    ours = {f.name: rng.random(f.shape).astype(f.type) for f in fields}
    wanted = {key: array.copy() for key, array in ours.items()}
    values = Values(program, 3)
    interpret(program, wanted, values)
    kernel = chosen_kernel(grid_groups(program, ()), 1, (), multiprocessors_of(NUMBERS[:1]))
    watch, given = Watch(None), Arguments(name, ours)
    with watch:
        runner = gpu_runner(kernel, NUMBERS[:1], ())
        runner.run([given], values.data, values.scalars, 10.0, watch, Laps())
    for key, found in ours.items():
        np.testing.assert_allclose(found, wanted[key], rtol=1e-11, atol=1e-12, err_msg=key)


def test_a_kernel_runs_again() -> None:
    program = load(path("jacobi_2d", 2))
    devices = spread(2, min(2, len(NUMBERS)))
    kernel, watch = gpu_runner_of_ranks(program, devices), Watch(None)
    seen = []
    for _ in range(3):
        given = arguments("jacobi_2d", 2, 9)
        with watch:
            kernel.run(given, {}, {"TSTEPS": 9}, 10.0, watch, Laps())
        seen.append([a.arrays["lA"] for a in given])
    for again in seen[1:]:
        for one, other in zip(seen[0], again, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_rank_that_waits_in_vain_is_named() -> None:
    """Rank 1 turns once less: its neighbour waits, gives up, and says for whom."""
    program = load(path("jacobi_2d", 2))
    variants = list(program.variants)
    loop = next(s for s in variants[1].body if hasattr(s, "var"))
    from dataclasses import replace

    shorter = replace(loop, start=ir.Literal(3, "int64"))
    body = tuple(shorter if s is loop else s for s in variants[1].body)
    broken = replace(program, variants=(variants[0], replace(variants[1], body=body)))
    with pytest.raises(WaitTimeoutError):
        run(broken, arguments("jacobi_2d", 2, 9), spread(2, min(2, len(NUMBERS))), 9, limit=1.0)
