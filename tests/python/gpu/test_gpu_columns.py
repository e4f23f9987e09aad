"""Several right-hand sides together on real GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_here import NUMBERS, needs_gpu, on_all_counts, solve

import cpufree
from cpufree import Reason, Solver

pytestmark = needs_gpu


def rights(n: int, columns: int) -> np.ndarray:
    return np.random.default_rng(columns).standard_normal((n, columns))


def residuals(A: sp.csr_array, x: Any, b: np.ndarray) -> Any:
    """Return ‖b - A x‖ / ‖b‖ of each column."""
    return np.linalg.norm(b - A @ x, axis=0) / np.linalg.norm(b, axis=0)


@on_all_counts
@pytest.mark.parametrize("pc", ["jacobi", "none"])
@pytest.mark.parametrize("columns", [2, 4, 8])
def test_each_column_meets_its_tolerance(columns: int, pc: str, pes: int) -> None:
    A = cpufree.generate.poisson3d(40, 39, 38)
    b = rights(A.shape[0], columns) * 10.0 ** np.arange(columns)
    result = solve(A, b, rtol=1e-9, pc=pc, pes=pes, columns="together")
    assert result.converged and np.all(residuals(A, result.x, b) <= 1.001e-9)
    alone = solve(A, b[:, 1].copy(), rtol=1e-9, pc=pc, pes=pes, method="cg")
    assert abs(result.columns[1].iterations - alone.iterations) <= 2


@on_all_counts
@pytest.mark.parametrize("pc", ["jacobi", "none"])
@pytest.mark.parametrize("columns", [2, 4, 8])
def test_blocks_meet_their_tolerance_in_fewer_iterations(columns: int, pc: str, pes: int) -> None:
    A = cpufree.generate.poisson2d(150, 140)
    b = rights(A.shape[0], columns)
    if columns == 8:
        b[:, 3] = b[:, 1] - 2.0 * b[:, 0]
    block = solve(A, b, rtol=1e-9, pc=pc, pes=pes, columns="block")
    assert block.converged and np.all(residuals(A, block.x, b) <= 1.001e-9)
    assert block.counts["dependent"] == (1 if columns == 8 else 0)
    apart = solve(A, b, rtol=1e-9, pc=pc, pes=pes, columns="together")
    assert block.iterations < apart.iterations


@on_all_counts
@pytest.mark.parametrize("columns", [2, 4, 8])
def test_single_precision(columns: int, pes: int) -> None:
    A = cpufree.generate.poisson2d(150, 140).astype(np.float32)
    b = rights(A.shape[0], columns).astype(np.float32)
    result = solve(A, b, rtol=1e-4, pes=pes, columns="together")
    exact = A.astype(np.float64)
    assert result.converged
    assert np.all(residuals(exact, result.x.astype(np.float64), b.astype(np.float64)) <= 2e-4)


@on_all_counts
@pytest.mark.parametrize(
    "spec", ["flange_hex?r_out=20,t=4,pipe=10", "heart?m=24,mesh=bcc", "thermal2d?m=120"]
)
def test_matrices_of_every_format(spec: str, pes: int) -> None:
    A = sp.csr_array(cpufree.generate.from_spec(spec))
    b = rights(A.shape[0], 4)
    result = solve(A, b, rtol=1e-6, pes=pes, columns="together")
    assert result.converged and np.all(residuals(A, result.x, b) <= 1.001e-6)


@on_all_counts
def test_halos_of_every_kind_give_the_same_solution(pes: int) -> None:
    from cpufree.extension import load_core
    from cpufree.matrix.load import as_csr
    from cpufree.partition.methods import contiguous

    A = as_csr(cpufree.generate.poisson2d(120, 110))
    b = list(rights(A.shape[0], 4).T.copy())
    part = contiguous(A, pes) if pes > 1 else None
    found = []
    for halo in (0, 1, 2):
        system = load_core().System(
            A.indptr, A.indices, A.data, part, None, pes, 0, "cuda_p2p", list(NUMBERS[:pes]),
            {"halo": halo},
        )  # fmt: skip
        options = {"method": "cg", "rtol": 1e-10, "maxiter": 2000}
        outcomes = system.solve_columns(b, None, None, options, None)
        assert all(outcome["reason"] == "CONVERGED_RTOL" for outcome in outcomes)
        found.append(np.column_stack([outcome["x"] for outcome in outcomes]))
    for other in found[1:]:
        assert np.allclose(other, found[0], rtol=1e-7, atol=1e-9)


@on_all_counts
def test_a_column_that_fails_leaves_the_others_alone(pes: int) -> None:
    A = cpufree.generate.poisson2d(100, 90)
    n = A.shape[0]
    b = rights(n, 4)
    b[:, 1] = 0.0
    b[:, 2] = A @ np.ones(n)
    x0 = np.zeros((n, 4))
    x0[:, 2] = 1.0
    result = solve(A, b, x0=x0, rtol=1e-12, maxiter=5, pes=pes, columns="together")
    assert [column.reason for column in result.columns] == [
        Reason.DIVERGED_ITS, Reason.CONVERGED_ATOL, Reason.CONVERGED_RTOL, Reason.DIVERGED_ITS,
    ]  # fmt: skip
    assert np.array_equal(result.x[:, 2], np.ones(n))


def test_an_interrupt_ends_the_group() -> None:
    A = cpufree.generate.poisson2d(600, 600)
    b = np.ones((A.shape[0], 2))
    result = solve(
        A, b, rtol=0.0, maxiter=10**6, pc="none", time_limit=30.0, columns="together",
        progress=lambda *_: False,
    )  # fmt: skip
    assert [column.reason for column in result.columns] == [Reason.INTERRUPTED] * 2
    assert all(column.iterations > 0 for column in result.columns)


def test_columns_on_a_gpu_stay_there_and_odd_numbers_are_padded() -> None:
    cupy = pytest.importorskip("cupy")
    A = cpufree.generate.poisson2d(200, 200)
    b = rights(A.shape[0], 7)
    with Solver(A, engine="cuda_p2p", gpus=[NUMBERS[0]]) as solver:
        host = solver.solve(b, rtol=1e-9, columns="together")
        with cupy.cuda.Device(NUMBERS[0]):
            there = solver.solve(cupy.asarray(b), rtol=1e-9, columns="together")
            assert np.array_equal(there.x.get(), host.x)
    assert len(host.columns) == 7 and host.converged
