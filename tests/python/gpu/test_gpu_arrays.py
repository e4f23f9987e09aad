"""Right-hand sides, solutions and matrices of CuPy and PyTorch on real GPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_here import NUMBERS, needs_gpu, on_all_counts, several, solve, true_residual
from reference_cg import rhs

import cpufree
from cpufree import Reason, Solver, VectorError

pytestmark = needs_gpu


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson3d(20, 19, 18)


class Library:
    """CuPy or PyTorch, as far as these tests need it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = pytest.importorskip(name)
        if name == "torch" and not self.module.cuda.is_available():
            pytest.skip("PyTorch finds no GPU")

    def put(self, values: np.ndarray, device: int = NUMBERS[0] if NUMBERS else 0) -> Any:
        """Return a copy on a GPU."""
        if self.name == "torch":
            return self.module.from_numpy(values.copy()).to(f"cuda:{device}")
        with self.module.cuda.Device(device):
            return self.module.asarray(values)

    def get(self, x: Any) -> np.ndarray:
        """Return a copy on the host."""
        return np.asarray(x.cpu().numpy() if self.name == "torch" else x.get())


@pytest.fixture(params=["cupy", "torch"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(request.param)


@on_all_counts
def test_b_on_a_gpu_gives_x_there(poisson: sp.csr_array, library: Library, pes: int) -> None:
    b = rhs(poisson)
    right = library.put(b)
    result = solve(poisson, right, rtol=1e-9, pes=pes)
    assert type(result.x) is type(right)
    assert result.x.device == right.device
    assert true_residual(poisson, library.get(result.x), b) <= 1.001e-9
    assert np.array_equal(library.get(right), b)


@on_all_counts
def test_vectors_on_gpu_and_host_give_the_same_bits(
    poisson: sp.csr_array, library: Library, pes: int
) -> None:
    b, x0 = rhs(poisson), np.linspace(0.0, 1.0, poisson.shape[0])
    with Solver(poisson, engine="cuda_p2p", pes=pes) as solver:
        host = solver.solve(b, x0, rtol=1e-9)
        device = solver.solve(library.put(b), library.put(x0), rtol=1e-9)
    assert library.get(device.x).tobytes() == host.x.tobytes()
    assert device.history.tobytes() == host.history.tobytes()


@several
def test_b_may_lie_on_another_gpu_than_the_matrix(poisson: sp.csr_array, library: Library) -> None:
    b = rhs(poisson)
    right = library.put(b, NUMBERS[1])
    result = cpufree.solve(poisson, right, rtol=1e-9, gpus=[NUMBERS[0]])
    assert result.x.device == right.device
    assert true_residual(poisson, library.get(result.x), b) <= 1.001e-9


def test_b_still_being_computed_is_waited_for(poisson: sp.csr_array, library: Library) -> None:
    n = poisson.shape[0]
    busy = library.put(np.full((4000, 4000), 1e-4))
    with Solver(poisson, engine="cuda_p2p", pes=1) as solver:
        for _ in range(20):
            busy = busy @ busy
        right = busy.reshape(-1)[:n] * 0.0 + library.put(np.ones(n))
        x = library.get(solver.solve(right, rtol=1e-9).x)
    assert true_residual(poisson, x, np.ones(n)) <= 1.001e-9


def test_float32_on_a_gpu(poisson: sp.csr_array, library: Library) -> None:
    A, b = poisson.astype(np.float32), rhs(poisson).astype(np.float32)
    result = solve(A, library.put(b), rtol=1e-4)
    assert library.get(result.x).dtype == np.float32
    assert true_residual(A, library.get(result.x), b) <= 1.05e-4


@on_all_counts
def test_nan_in_b_on_a_gpu_is_named(poisson: sp.csr_array, library: Library, pes: int) -> None:
    b = rhs(poisson)
    b[7] = np.nan
    result = solve(poisson, library.put(b), pes=pes)
    assert result.reason is Reason.DIVERGED_NANORINF


def test_cg_returns_an_array_on_the_gpu(poisson: sp.csr_array, library: Library) -> None:
    b = rhs(poisson)
    x, info = cpufree.cg(poisson, library.put(b), rtol=1e-8, engine="cuda_p2p")
    assert info == 0
    assert true_residual(poisson, library.get(x), b) <= 1.001e-8


def test_tensor_that_requires_a_gradient_is_refused(poisson: sp.csr_array) -> None:
    right = Library("torch").put(rhs(poisson)).requires_grad_()
    with pytest.raises(VectorError, match="detach"):
        solve(poisson, right)


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "clone"])
def test_matrix_of_torch_is_solved(layout: str) -> None:
    A = cpufree.generate.poisson2d(12, 11)
    tensor = getattr(Library("torch").put(A.toarray()), layout)()
    b = rhs(A)
    assert true_residual(A, solve(tensor, b, rtol=1e-9).x, b) <= 1.001e-9


@pytest.mark.parametrize("layout", ["csr_matrix", "coo_matrix", "csc_matrix"])
def test_matrix_of_cupy_is_solved(layout: str) -> None:
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    A = cpufree.generate.poisson2d(12, 11)
    matrix = getattr(sparse, layout)(sparse.csr_matrix(sp.csr_matrix(A)))
    b = rhs(A)
    assert true_residual(A, solve(matrix, b, rtol=1e-9).x, b) <= 1.001e-9
