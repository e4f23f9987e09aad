"""PEs that share GPUs: all protocols with 4 and 8 PEs on one GPU, or on two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_here import NUMBERS, needs_gpu, true_residual
from reference_cg import rhs

import cpufree
from cpufree import InvalidInputError, Solver, env
from cpufree.extension import load_for
from cpufree.matrix.load import as_csr
from cpufree.model.patterns.measure import Place, many_to_one, ring
from cpufree.model.patterns.measure import _exchanges as exchanges
from cpufree.model.patterns.measure import _products as products
from cpufree.model.ways.probe_verbs import SHARED_VERBS
from cpufree.model.ways.probe_ways import SharedProbe
from cpufree.partition.methods import contiguous
from cpufree.stencil import jacobi

env.preset_shared_gpus()
pytestmark = needs_gpu

FIRST = NUMBERS[:1] or [0]
SHARINGS = [FIRST * 4, FIRST * 8]
if len(NUMBERS) > 1:
    SHARINGS += [sorted(NUMBERS[:2] * 2), sorted(NUMBERS[:2] * 4), NUMBERS[:2] * 2]
on_all_sharings = pytest.mark.parametrize(
    "gpus", SHARINGS, ids=lambda gpus: "".join(map(str, gpus))
)
WAIT = 10.0
"""Seconds after which a wait is given up."""


def solve(A: Any, b: Any, gpus: list[int], **options: Any) -> Any:
    return cpufree.solve(A, b, engine="cuda_p2p", gpus=gpus, wait_limit=WAIT, **options)


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson3d(20, 19, 18)


@pytest.mark.parametrize("verb", SHARED_VERBS)
def test_messages_between_pes_on_one_gpu_are_right(verb: str) -> None:
    way = SharedProbe(f"shared-{verb}", SHARED_VERBS[verb])
    way.open()
    for mode in way.modes:
        for size in (8, 4096, 1 << 20):
            if mode in ("send", "receive") and size > way.most_call_bytes:
                continue
            seconds = way.times(mode, size, 4 if mode == "window" else 1, 2, 5)
            assert len(seconds) == 5 and 0.0 < min(seconds) < 0.1
    way.close()


@on_all_sharings
def test_patterns_are_right(gpus: list[int]) -> None:
    place = Place("gpus", len(gpus), tuple(gpus))
    found = exchanges(place, {"all to one": lambda pes: many_to_one(pes, 4096)}) + products(place)
    assert {one.pattern for one in found} >= {"ring", "many to one", "halos of all to one"}
    if len(gpus) == 4:
        assert {one.pattern for one in found} >= {"product, puts", "product, gets, host-driven"}
    assert all(0.0 < min(one.seconds) < 1.0 for one in found)
    assert sum(ring(len(gpus), 8)) == 8 * len(gpus)


@on_all_sharings
def test_solution_is_that_of_one_pe(poisson: sp.csr_array, gpus: list[int]) -> None:
    b = rhs(poisson)
    many = solve(poisson, b, gpus, rtol=1e-10)
    assert many.converged and list(many.gpus) == gpus
    assert true_residual(poisson, many.x, b) <= 1.001e-10
    one = solve(poisson, b, gpus[:1], rtol=1e-10)
    assert abs(many.iterations - one.iterations) <= 3
    assert any("share GPU" in warning for warning in many.warnings)


@on_all_sharings
@pytest.mark.parametrize("method", ["cg", "pipecg"])
@pytest.mark.parametrize("pc", ["jacobi", "chebyshev"])
def test_other_methods_meet_the_tolerance(
    poisson: sp.csr_array, gpus: list[int], method: str, pc: str
) -> None:
    b = rhs(poisson)
    result = solve(poisson, b, gpus, rtol=1e-9, method=method, pc=pc)
    assert result.converged and true_residual(poisson, result.x, b) <= 1.001e-9


@on_all_sharings
@pytest.mark.parametrize("halo", [0, 1, 2], ids=["stores", "packets", "packets among blocks"])
def test_rows_travel_in_every_way(poisson: sp.csr_array, gpus: list[int], halo: int) -> None:
    A, b, pes = as_csr(poisson), rhs(poisson), len(gpus)
    system = load_for("cuda_p2p").System(
        A.indptr, A.indices, A.data, contiguous(A, pes), None, pes, 0, "cuda_p2p", gpus,
        {"halo": halo},
    )  # fmt: skip
    options = {"method": "prcg", "pc": "none", "rtol": 1e-9, "maxiter": 2000, "wait_limit": WAIT}
    assert true_residual(poisson, system.solve(b, None, None, options, None)["x"], b) <= 1.001e-9


@on_all_sharings
def test_repeated_solves_are_bitwise_the_same(poisson: sp.csr_array, gpus: list[int]) -> None:
    b = rhs(poisson)
    with Solver(poisson, engine="cuda_p2p", gpus=gpus) as solver:
        first = solver.solve(b, rtol=1e-10, wait_limit=WAIT)
        for _ in range(10):
            again = solver.solve(b, rtol=1e-10, wait_limit=WAIT)
            assert again.x.tobytes() == first.x.tobytes()


@on_all_sharings
def test_right_hand_sides_are_solved_together(poisson: sp.csr_array, gpus: list[int]) -> None:
    b = np.random.default_rng(2).standard_normal((poisson.shape[0], 2))
    result = solve(poisson, b, gpus, rtol=1e-9, columns="together")
    assert result.converged
    for k in range(2):
        assert true_residual(poisson, result.x[:, k], b[:, k]) <= 1.001e-9


@on_all_sharings
@pytest.mark.parametrize("shape", [(300, 410), (40, 35, 50)])
def test_grids_are_those_of_the_cpu_engine(shape: tuple[int, ...], gpus: list[int]) -> None:
    u0 = np.random.default_rng(0).random(shape).astype(np.float32)
    result = jacobi(u0, 23, engine="cuda_p2p", gpus=gpus, wait_limit=WAIT)
    assert result.u.tobytes() == jacobi(u0, 23, engine="cpu_threads").u.tobytes()


def test_blocks_that_find_no_room_together_are_refused(poisson: sp.csr_array) -> None:
    with pytest.raises(InvalidInputError, match=r"for each of the 4 PEs that share it; use fewer"):
        solve(poisson, rhs(poisson), FIRST * 4, blocks=1024)
