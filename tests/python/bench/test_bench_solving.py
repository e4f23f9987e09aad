"""Contenders of declared benchmarks: solves, SciPy's, and programs that print an answer."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree.bench.declared import Case
from cpufree.bench.declared.process import ProcessError, ask
from cpufree.bench.declared.solving import as_scipy, iterating, matrix, scipy_jacobi, summary
from cpufree.matrix.load import as_csr

pytestmark = pytest.mark.cpu_only


def test_a_matrix_tells_its_size_to_the_record() -> None:
    case = Case("a", {}, {"matrix": "gen:poisson2d?nx=4,ny=3"})
    assert matrix(case).shape == (12, 12)
    assert case.facts == {"rows": 12, "nnz": 46}


def test_seconds_are_those_of_one_iteration() -> None:
    A = cpufree.generate.poisson2d(nx=30, ny=30)
    with cpufree.Solver(A, engine="cpu_threads") as solver:
        kernel = iterating(solver, np.ones(900), 20, method="cg")()
        whole = iterating(solver, np.ones(900), 20, whole=True, method="cg")()
    assert kernel["seconds"] == kernel["kernel"] > 0
    assert whole["seconds"] > whole["kernel"] > 0


def test_a_solve_that_ends_early_is_not_timed() -> None:
    with (
        cpufree.Solver(sp.eye_array(50, format="csr"), engine="cpu_threads") as solver,
        pytest.raises(cpufree.CpufreeError, match="of 20 iterations"),
    ):
        iterating(solver, np.ones(50), 20, method="prcg")()


def test_a_solve_tells_how_it_ended() -> None:
    A = cpufree.generate.poisson2d(nx=9, ny=9)
    with cpufree.Solver(A, engine="cpu_threads") as solver:
        found = summary(solver.solve(np.ones(81), rtol=1e-8))
    assert found["reason"] == "CONVERGED_RTOL"
    assert found["residual"] <= 1.01e-8
    assert found["iterations"] > 3


@pytest.mark.parametrize("try_both", [True, False])
def test_scipy_solves_with_jacobi_to_the_tolerance(try_both: bool) -> None:
    A = as_scipy(as_csr("gen:poisson2d?nx=9,ny=9"))
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert scipy_jacobi(A, try_both)(np.ones(81), 1e-8) > 0


def test_a_system_that_scipy_does_not_solve_is_an_error() -> None:
    A = sp.csr_array(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(cpufree.CpufreeError, match="SciPy's cg does not converge"):
        scipy_jacobi(A, try_both=False)(np.array([1.0, 0.0]), 1e-12, 1)


def test_the_last_object_that_a_program_prints_is_its_answer() -> None:
    text = "import os; print('hello'); print('{\"seconds\": 1}'); print('{\"seconds\": %s}' % 2)"
    assert ask([sys.executable, "-c", text], 60.0) == {"seconds": 2}


def test_a_program_has_the_environment_that_it_is_given() -> None:
    text = "import json, os; print(json.dumps({'seconds': float(os.environ['HOW_LONG'])}))"
    assert ask([sys.executable, "-c", text], 60.0, HOW_LONG="3")["seconds"] == 3.0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([sys.executable, "-c", "import sys; sys.exit('it broke')"], "exit status 1: it broke"),
        ([sys.executable, "-c", "print('nothing')"], "has printed no result: nothing"),
        ([sys.executable, "-c", "import time; time.sleep(600)"], "has not ended within 2 s"),
        (["no-such-program"], "no-such-program was not found"),
    ],
    ids=["status", "no answer", "too long", "not there"],
)
def test_a_program_that_does_not_answer_is_an_error_that_says_why(
    words: list[str], why: str
) -> None:
    with pytest.raises(ProcessError, match=why):
        ask(words, 2.0 if "sleep" in words[-1] else 60.0)
