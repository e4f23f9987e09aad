"""Studies of the kernels on real GPUs. Skipped where there is none that can be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_here import NUMBERS, needs_gpu, on_all_counts
from reference_cg import rhs

import cpufree
from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.extension import load_core
from cpufree.matrix.load import as_csr
from cpufree.partition.methods import contiguous

pytestmark = needs_gpu
METHODS = ["cg", "prcg", "pipecg"]
STUDIES = ["split", "no-compute", "no-comm"]
ITERATIONS = 70  # with a replacement of the residual by pipecg
TICK = 4e-3  # seconds
on_all_methods = pytest.mark.parametrize("method", METHODS)
in_every_way = pytest.mark.parametrize(
    "tuning",
    [{"halo": halo, "residency": residency} for halo in (0, 1, 2) for residency in (-1, 0)],
    ids=lambda t: f"halo {t['halo']}, residency {t['residency']}",
)


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson3d(41, 37, 29)


def system_of(A: sp.csr_array, pes: int, tuning: dict[str, Any], dtype: Any = np.float64) -> Any:
    """Return a System of contiguous parts."""
    matrix = as_csr(A.astype(dtype))
    part = contiguous(matrix, pes) if pes > 1 else None
    arrays = matrix.indptr, matrix.indices, matrix.data, part, None
    return load_core().System(*arrays, pes, 0, "cuda_p2p", NUMBERS[:pes], tuning)


def solve(system: Any, b: Any, method: str, study: str, iterations: int = ITERATIONS) -> Any:
    """Return the outcome of a fixed number of iterations."""
    options = {"method": method, "pc": "none", "rtol": 0.0, "maxiter": iterations}
    return system.solve(b, None, None, {**options, "study": study, "wait_limit": 10.0}, None)


@on_all_counts
@on_all_methods
@in_every_way
def test_studies_take_the_iterations_asked_for(
    poisson: sp.csr_array, tuning: dict[str, Any], method: str, pes: int
) -> None:
    system, b = system_of(poisson, pes, tuning), rhs(poisson)
    normal = solve(system, b, method, "none")
    assert normal["iterations"] == ITERATIONS and normal["split"] is None
    for study in STUDIES:
        found = solve(system, b, method, study)
        assert (found["iterations"], found["reason"]) == (ITERATIONS, "DIVERGED_ITS")
        assert found["exchanges"] == normal["exchanges"]
        assert found["reductions"] == normal["reductions"]
        assert (found["split"] is not None) == (study == "split")
    again = solve(system, b, method, "none")
    assert again["x"].tobytes() == normal["x"].tobytes()


@on_all_counts
@on_all_methods
def test_split_is_of_the_same_solve_and_adds_up(
    poisson: sp.csr_array, method: str, pes: int
) -> None:
    system, b = system_of(poisson, pes, {}), rhs(poisson)
    normal, timed = solve(system, b, method, "none"), solve(system, b, method, "split")
    assert np.linalg.norm(timed["x"] - normal["x"]) <= 1e-9 * np.linalg.norm(normal["x"])
    # The host sees the end of a solve late by up to TICK where other programs want its core.
    A = cpufree.generate.poisson2d(700, 700)
    large, right = system_of(A, pes, {}), rhs(A)
    long = min((solve(large, right, method, "split", 3000) for _ in range(3)), key=_seconds)
    assert sum(long["split"].values()) == pytest.approx(_seconds(long), rel=0.05, abs=TICK)
    assert all(seconds > 0.0 for seconds in long["split"].values())


def _seconds(outcome: Any) -> float:
    return float(outcome["seconds"])


@on_all_methods
def test_without_other_pes_one_gpu_does_the_same(poisson: sp.csr_array, method: str) -> None:
    system, b = system_of(poisson, 1, {}), rhs(poisson)
    normal, alone = solve(system, b, method, "none"), solve(system, b, method, "no-comm")
    assert np.linalg.norm(alone["x"] - normal["x"]) <= 1e-9 * np.linalg.norm(normal["x"])


@on_all_counts
@on_all_methods
@pytest.mark.parametrize("study", ["no-compute", "no-comm"])
def test_numbers_end_no_study(study: str, method: str, pes: int) -> None:
    A = cpufree.generate.poisson2d(9, 7)  # CG ends after 63 iterations at most
    system, b = system_of(A, pes, {}), np.zeros(63)
    b[-1] = 1.0
    for iterations in (1, 2, 2000):
        found = solve(system, b, method, study, iterations)
        assert (found["iterations"], found["reason"]) == (iterations, "DIVERGED_ITS")


def test_studies_that_are_not_compiled_are_refused(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    for study in STUDIES:
        options = {"method": "cg", "pc": "jacobi", "rtol": 0.0, "maxiter": 5, "study": study}
        with pytest.raises(UnsupportedError, match="without a preconditioner alone"):
            system_of(poisson, 1, {}).solve(b, None, None, options, None)
        with pytest.raises(UnsupportedError, match="double precision"):
            solve(system_of(poisson, 1, {}, np.float32), b.astype(np.float32), "cg", study)
    options = {"method": "cg", "pc": "none", "rtol": 1e-3, "maxiter": 5, "study": "no-comm"}
    with pytest.raises(InvalidInputError, match="no residual that could end it"):
        system_of(poisson, 1, {}).solve(b, None, None, options, None)
