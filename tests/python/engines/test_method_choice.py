"""Which method auto chooses, and that it says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree.engines.method_bytes import bytes_of_iteration, passes
from cpufree.engines.method_choice import Solve, choose_method, pipecg_hides, pipecg_moves
from cpufree.errors import InvalidInputError

LARGE = Solve("cuda_p2p", 1, 3_000_000, 120_000_000, True, "none", 1e-5)
SHORT = Solve("cuda_p2p", 8, 1_000_000, 5_000_000, True, "none", 1e-5)


def test_large_systems_on_one_gpu_without_preconditioner_get_cg() -> None:
    method, why = choose_method("auto", LARGE)
    assert method == "cg"
    assert "120 000 000 nonzeros on one GPU" in why


@pytest.mark.parametrize("engine", ["cuda_p2p", "nvshmem"])
def test_few_short_rows_on_many_gpus_without_preconditioner_get_pipecg(engine: str) -> None:
    method, why = choose_method("auto", replace(SHORT, engine=engine))
    assert method == "pipecg"
    assert "125 000 short rows for each of 8 GPUs" in why


@pytest.mark.parametrize(
    ("solve", "change"),
    [
        (LARGE, {"pc": "jacobi"}),
        (LARGE, {"pes": 2}),
        (LARGE, {"nnz": 90_000_000}),
        (LARGE, {"double": False}),
        (LARGE, {"engine": "cpu_threads"}),
        (SHORT, {"pc": "jacobi"}),
        (SHORT, {"pc": "chebyshev"}),
        (SHORT, {"pes": 2}),
        (SHORT, {"rows": 1_100_000}),
        (SHORT, {"nnz": 17_000_000}),
        (SHORT, {"double": False}),
        (SHORT, {"rtol": 1e-10}),
        (SHORT, {"engine": "cpu_processes"}),
    ],
)
def test_everything_else_gets_prcg(solve: Solve, change: dict[str, Any]) -> None:
    assert choose_method("auto", solve)[0] != "prcg"
    method, why = choose_method("auto", replace(solve, **change))
    assert method == "prcg"
    assert "one reduction" in why


@pytest.mark.parametrize("engine", ["cpu_threads", "cpu_processes"])
@pytest.mark.parametrize("double", [True, False])
def test_a_diagonal_that_spreads_gets_cg_on_the_cpu_without_preconditioner(
    engine: str, double: bool
) -> None:
    wide = replace(SHORT, engine=engine, spread=2e8, double=double)
    method, why = choose_method("auto", wide)
    assert method == "cg"
    assert "spreads over 8 decades" in why
    for other in ({"pc": "jacobi"}, {"spread": 9e5}):
        assert choose_method("auto", replace(wide, **other))[0] == "prcg"


@pytest.mark.cpu_only
def test_the_spread_is_that_of_the_diagonal_whatever_lies_beside_it() -> None:
    A = sp.csr_array(sp.diags_array([[1e-9], [2.0, 1.0], [1e-9]], offsets=[-1, 0, 1], shape=(2, 2)))
    with cpufree.Solver(A) as solver:
        assert solver.solve(np.ones(2), pc="none").method == "prcg"
        solver.update(sp.csr_array(A.toarray() * [[1e7, 1], [1, 1]]))
        assert solver.solve(np.ones(2), pc="none").method == "cg"
        assert solver.solve(np.ones(2)).method == "prcg"


def test_a_method_that_is_asked_for_is_taken() -> None:
    assert choose_method("prcg", LARGE) == ("prcg", "asked for")


@pytest.mark.parametrize("asked", ["gmres", None])
def test_a_method_that_is_not_known_is_refused(asked: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"unknown method {asked!r}.*cg, prcg, pipecg"):
        choose_method(asked, LARGE)


@pytest.mark.cpu_only
def test_a_result_tells_the_method_and_why() -> None:
    result = cpufree.solve(np.eye(3), np.ones(3), pc="none")
    assert result.method == "prcg"
    assert result.why.startswith("prcg: one reduction per iteration")


def test_passes_are_those_that_the_page_of_methods_has() -> None:
    assert [passes(method, "none") for method in ("prcg", "cg", "pipecg")] == [10, 10, 15]
    assert [passes(method, "jacobi") for method in ("prcg", "cg", "pipecg")] == [12, 12, 19]


def test_vectors_on_chip_save_their_passes() -> None:
    assert passes("cg", "none", 1) == 7
    assert passes("pipecg", "jacobi", 3) == 13
    assert bytes_of_iteration("cg", "none", 1000, 5000.0, 0.0) == 85_000
    assert bytes_of_iteration("cg", "none", 1000, 5000.0, 8000.0) == 61_000


def test_pipecg_is_never_chosen_where_its_further_passes_take_longer_than_what_they_hide() -> None:
    chosen = 0
    for pes in (1, 2, 4, 8):
        for rows in (10_000, 100_000, 400_000, 1_000_000, 2_097_152, 8_000_000, 64_000_000):
            for width in (5, 7, 15):
                solve = replace(SHORT, pes=pes, rows=rows, nnz=rows * width)
                if choose_method("auto", solve)[0] == "pipecg":
                    chosen += 1
                    assert pipecg_moves(solve) <= pipecg_hides(solve)
    assert chosen > 0
    large = replace(SHORT, pes=8, rows=64_000_000, nnz=448_000_000)
    assert pipecg_moves(large) > pipecg_hides(large)
