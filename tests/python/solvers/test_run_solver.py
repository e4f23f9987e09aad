"""solve and Solver: answers, reasons, edge cases, what a Result holds."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from reference_cg import SYSTEMS, chain, first_unit_vector, rhs
from scipy.sparse.linalg import spsolve

import cpufree
from cpufree import Reason, Solver, solve
from cpufree.errors import InvalidInputError

METHODS = ["cg", "prcg", "pipecg"]
PCS = ["none", "jacobi", "chebyshev"]


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson2d(30, 20)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("method", METHODS)
def test_agrees_with_a_direct_solver(name: str, method: str) -> None:
    A = SYSTEMS[name]()
    b = rhs(A)
    result = solve(A, b, rtol=1e-11, method=method)
    assert result.reason is Reason.CONVERGED_RTOL
    exact = spsolve(A.tocsc(), b)
    assert np.linalg.norm(result.x - exact) <= 1e-6 * np.linalg.norm(exact)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", PCS)
@pytest.mark.parametrize("pes", [1, 3])
def test_all_combinations_meet_the_tolerance(
    poisson: sp.csr_array, method: str, pc: str, pes: int
) -> None:
    b = rhs(poisson)
    result = solve(poisson, b, rtol=1e-9, method=method, pc=pc, pes=pes)
    assert result.converged
    assert (result.method, result.pc, result.pes) == (method, pc, pes)
    assert np.linalg.norm(b - poisson @ result.x) <= 1.001e-9 * np.linalg.norm(b)


def test_chebyshev_needs_under_half_of_the_iterations(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    with Solver(poisson) as solver:
        jacobi = solver.solve(b, rtol=1e-8)
        chebyshev = solver.solve(b, rtol=1e-8, pc="chebyshev", chebyshev_degree=4)
    assert chebyshev.iterations < 0.5 * jacobi.iterations
    # The Jacobi-scaled 5-point matrix has its spectrum in (0, 2).
    assert 1.8 < chebyshev.counts["lambda_max"] < 2.2


def test_true_residual_is_that_of_the_answer(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    result = solve(poisson, b, rtol=1e-7)
    by_numpy = np.linalg.norm(b - poisson @ result.x)
    assert result.true_residual == pytest.approx(by_numpy, rel=1e-6)
    assert result.bnorm == pytest.approx(np.linalg.norm(b), rel=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_ends_at_the_first_iteration_that_meets_the_rule(
    poisson: sp.csr_array, method: str
) -> None:
    b = rhs(poisson)
    result = solve(poisson, b, rtol=1e-6, method=method)
    assert result.history[-1] <= 1e-6 * result.bnorm
    assert np.all(result.history[:-1] > 1e-6 * result.bnorm)


def test_atol_alone_ends_the_solve_by_name(poisson: sp.csr_array) -> None:
    result = solve(poisson, rhs(poisson), rtol=0.0, atol=1e-3)
    assert result.reason is Reason.CONVERGED_ATOL
    assert result.true_residual <= 1e-3


def test_the_looser_of_the_tolerances_counts(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    loose = solve(poisson, b, rtol=1e-2, atol=1e-12)
    assert loose.reason is Reason.CONVERGED_RTOL
    assert loose.iterations < solve(poisson, b, rtol=1e-8).iterations


@pytest.mark.parametrize("method", METHODS)
def test_history_has_every_iteration_from_zero(poisson: sp.csr_array, method: str) -> None:
    b = rhs(poisson)
    x0 = np.ones_like(b)
    result = solve(poisson, b, x0=x0, method=method)
    assert result.history_stride == 1
    assert len(result.history) == result.iterations + 1
    assert result.history[0] == pytest.approx(np.linalg.norm(b - poisson @ x0), rel=1e-12)
    assert result.history[-1] == pytest.approx(result.residual, rel=0.1)


def test_given_x0_is_where_the_solve_begins(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    first = solve(poisson, b, rtol=1e-6)
    again = solve(poisson, b, x0=first.x, rtol=1e-9)
    assert again.converged
    assert again.iterations < solve(poisson, b, rtol=1e-9).iterations
    assert again.history[0] == pytest.approx(first.true_residual, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pes", [1, 2])
def test_exact_x0_takes_no_iteration(poisson: sp.csr_array, method: str, pes: int) -> None:
    x = np.arange(poisson.shape[0], dtype=float)
    result = solve(poisson, poisson @ x, x0=x, method=method, pes=pes)
    assert result.converged
    assert result.iterations == 0
    assert np.array_equal(result.x, x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("x0", [None, "ones"])
def test_b_of_zero_gives_zero_whatever_x0(
    poisson: sp.csr_array, method: str, x0: str | None
) -> None:
    n = poisson.shape[0]
    guess = None if x0 is None else np.ones(n)
    result = solve(poisson, np.zeros(n), x0=guess, method=method)
    assert result.reason is Reason.CONVERGED_ATOL
    assert result.iterations == 0
    assert not result.x.any()
    assert result.relative_residual == 0.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pes", [1, 2])
def test_rtol_zero_goes_to_rounding_level_and_ends(
    poisson: sp.csr_array, method: str, pes: int
) -> None:
    result = solve(poisson, rhs(poisson), rtol=0.0, method=method, pes=pes)
    assert result.reason is Reason.STAGNATED
    assert result.relative_residual < 1e-13
    assert result.iterations < 10 * poisson.shape[0]
    assert any("rounding errors" in note for note in result.warnings)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pes", [1, 4])
def test_one_equation_is_solved_in_one_iteration(method: str, pes: int) -> None:
    result = solve(np.array([[4.0]]), [2.0], method=method, pes=pes)
    assert result.converged
    assert result.iterations == 1
    assert result.x == pytest.approx([0.5], rel=1e-15)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pc", PCS)
def test_fewer_rows_than_pes_behave(method: str, pc: str) -> None:
    A = chain(3)
    result = solve(A, [1.0, 2.0, 3.0], rtol=1e-12, method=method, pc=pc, pes=8)
    assert result.converged
    assert result.x == pytest.approx([2.5, 4.0, 3.5], rel=1e-10)


def test_a_diagonal_matrix_takes_one_iteration_with_jacobi() -> None:
    d = np.linspace(1.0, 1e6, 500)
    result = solve(sp.diags(d, format="csr"), np.ones(500), rtol=1e-12)
    assert result.iterations == 1
    assert result.x == pytest.approx(1.0 / d, rel=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_maxiter_ends_the_solve_after_exactly_that_many(poisson: sp.csr_array, method: str) -> None:
    result = solve(poisson, rhs(poisson), maxiter=7, method=method)
    assert result.reason is Reason.DIVERGED_ITS
    assert result.iterations == 7
    assert result.info == 7
    assert 0.0 < result.true_residual < np.inf


def test_maxiter_zero_judges_the_guess(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    result = solve(poisson, b, maxiter=0)
    assert result.reason is Reason.DIVERGED_ITS
    assert not result.x.any()
    assert result.info == 1
    assert result.true_residual == pytest.approx(result.bnorm)
    x = np.ones(poisson.shape[0])
    assert solve(poisson, poisson @ x, x0=x, maxiter=0).converged


def test_the_best_x_so_far_is_returned_at_maxiter(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    result = solve(poisson, b, maxiter=20)
    assert np.linalg.norm(b - poisson @ result.x) == pytest.approx(result.true_residual, rel=1e-9)
    assert result.true_residual < result.bnorm


def test_time_limit_ends_a_long_solve_in_time() -> None:
    n = 200_000
    result = solve(chain(n), first_unit_vector(n), rtol=1e-12, pc="jacobi", time_limit=0.2)
    assert result.reason is Reason.TIME_LIMIT
    assert 0.2 <= result.timings["kernel"] < 2.0
    assert result.iterations > 0


# Solver


def test_solver_reused_gives_the_same_as_fresh_ones(poisson: sp.csr_array) -> None:
    rights = [rhs(poisson, seed) for seed in range(6)]
    for method in METHODS:
        with Solver(poisson, pes=2) as solver:
            for k, b in enumerate(rights):
                x0 = None if k % 2 else rights[0]
                again = solver.solve(b, x0, method=method)
                fresh = solve(poisson, b, x0=x0, method=method, pes=2)
                assert np.array_equal(again.x, fresh.x)
                assert np.array_equal(again.history, fresh.history)


def test_results_of_a_solver_are_independent(poisson: sp.csr_array) -> None:
    with Solver(poisson) as solver:
        first = solver.solve(rhs(poisson, 1))
        kept = first.x.copy()
        solver.solve(rhs(poisson, 2))
    assert np.array_equal(first.x, kept)


def test_switching_methods_and_preconditioners_leaves_no_trace(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    with Solver(poisson, pes=2) as solver:
        first = solver.solve(b).x
        for method in METHODS:
            for pc in PCS:
                solver.solve(b, method=method, pc=pc)
        assert np.array_equal(solver.solve(b).x, first)


def test_a_closed_solver_says_so(poisson: sp.csr_array) -> None:
    solver = Solver(poisson)
    solver.close()
    with pytest.raises(InvalidInputError, match="closed"):
        solver.solve(rhs(poisson))


def test_plan_agrees_with_the_partition_report(poisson: sp.csr_array) -> None:
    from cpufree.matrix.load import as_csr
    from cpufree.partition.methods import partition

    report = partition(as_csr(poisson), 4, "metis").report
    plan = Solver(poisson, pes=4, blocks=1, partition="metis").plan
    assert plan["pes"] == 4
    assert plan["blocks"] == 1
    assert tuple(plan["rows"]) == report.rows
    assert tuple(plan["nnz"]) == report.nnz
    assert tuple(plan["ghosts"]) == report.ghosts
    assert tuple(plan["boundary_rows"]) == report.boundary_rows
    assert plan["edge_cut"] == report.edge_cut
    assert plan["halo_values"] == report.halo_values
    assert plan["imbalance"] == pytest.approx(report.imbalance)
    sent = [sum(values for _, values in pairs) for pairs in plan["neighbours"]]
    assert sum(sent) == report.halo_values


@pytest.mark.parametrize("reorder", ["natural", "rcm"])
@pytest.mark.parametrize("partition", ["metis", "contiguous"])
def test_layout_changes_the_answer_by_rounding_only(
    poisson: sp.csr_array, reorder: str, partition: str
) -> None:
    b = rhs(poisson)
    plain = solve(poisson, b, rtol=1e-12)
    laid_out = solve(poisson, b, rtol=1e-12, pes=3, reorder=reorder, partition=partition)
    assert np.linalg.norm(laid_out.x - plain.x) <= 1e-9 * np.linalg.norm(plain.x)


def test_why_tells_method_pes_partition_and_order(poisson: sp.csr_array) -> None:
    why = solve(poisson, rhs(poisson), pes=4).why
    for word in ("prcg: one reduction", "4 PEs", "asked for", "partition", "order"):
        assert word in why


def test_timings_and_counts_are_consistent(poisson: sp.csr_array) -> None:
    result = solve(poisson, rhs(poisson), pes=2)
    times = result.timings
    assert 0.0 < times["kernel"] <= times["solve"]
    assert times["setup"] > 0.0
    assert times["per_iteration"] == pytest.approx(times["kernel"] / result.iterations)
    assert result.counts["reductions"] >= result.iterations
    assert result.counts["exchanges"] >= result.iterations


def test_prcg_reduces_once_and_cg_twice_per_iteration(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    for method, each in (("prcg", 1), ("cg", 2), ("pipecg", 1)):
        short, long = (
            solve(poisson, b, rtol=0.0, maxiter=k, method=method, replace_every=0).counts
            for k in (10, 30)
        )
        assert long["reductions"] - short["reductions"] == 20 * each


@pytest.mark.cpu_only
def test_oversubscription_is_told(poisson: sp.csr_array) -> None:
    result = solve(poisson, rhs(poisson), pes=8, blocks=8)
    assert result.converged
    assert any("64 threads" in note for note in result.warnings)


def test_plan_tells_the_bytes_of_the_matrix(poisson: sp.csr_array) -> None:
    plan = Solver(poisson, pes=2, blocks=1).plan
    assert 8 * poisson.nnz <= plan["matrix_bytes"] <= 3 * 12 * poisson.nnz


def test_every_key_of_the_plan_is_described(poisson: sp.csr_array) -> None:
    said = set(re.findall(r"\w+", str(Solver.plan.__doc__)))
    assert set(Solver(poisson).plan) <= said
