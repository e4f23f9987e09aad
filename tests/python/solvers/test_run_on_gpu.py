"""Vectors and matrices that lie on a GPU, with fakes of the extension, of CuPy and of PyTorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fake_core import FakeCore
from fake_gpu_arrays import CupyArray, OtherArray, TorchTensor, install, nothing_downloaded

import cpufree
from cpufree import Solver, cg, solve
from cpufree.device_arrays import cuda_device
from cpufree.errors import InvalidInputError, MatrixError, UnsupportedError, VectorError
from cpufree.matrix.load import as_csr
from cpufree.solvers.notes import numerical_notes

A = cpufree.generate.poisson1d(5)
B = np.arange(5.0)
X = np.linalg.solve(A.toarray(), B)
Make = Callable[..., Any]
both = pytest.mark.parametrize("make", [CupyArray, TorchTensor], ids=["cupy", "torch"])


@pytest.fixture
def finished() -> list[Any]:
    """The streams that have been waited for."""
    return []


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, finished: list[Any]) -> FakeCore:
    """A machine with four GPUs and both libraries; no engine is preset."""
    fake = FakeCore(4)
    monkeypatch.setattr("cpufree._core", fake)
    monkeypatch.delenv("CPUFREE_ENGINE", raising=False)
    monkeypatch.delenv("CPUFREE_GPUS", raising=False)
    install(monkeypatch, finished)
    return fake


# Vectors


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e100])
def test_b_that_is_not_finite_is_refused_after_a_solve_by_gpus(
    machine: FakeCore, wrong: float, dtype: Any
) -> None:
    b = B.copy()
    b[2] = wrong
    with Solver(A.astype(dtype), engine="cuda_p2p") as solver:
        if np.isfinite(wrong) and dtype == np.float64:
            assert solver.solve(b).converged
            return
        with pytest.raises(VectorError, match=r"b\[2\] = .* is (not a finite|too large)"):
            solver.solve(b)
        assert len(machine.systems[0].options) > 0  # it came as far as the kernel
        with pytest.raises(VectorError, match=r"x0\[2\]"):
            solver.solve(B, x0=b)


@both
def test_b_on_a_gpu_gives_x_of_its_kind_there_without_a_copy(make: Make, machine: FakeCore) -> None:
    b = make(B, 2)
    with nothing_downloaded():
        result = solve(A, b)
    assert type(result.x) is make
    assert result.x.number == 2
    assert result.x.values == pytest.approx(X)
    given, guess, out = machine.systems[0].given
    assert given is b
    assert guess is None
    assert out is result.x


@both
def test_complex_b_on_a_gpu_gives_complex_x_there(make: Make, machine: FakeCore) -> None:
    turn = np.exp(1j * np.arange(len(X)))
    hermitian = sp.csr_array(sp.diags_array(turn) @ A @ sp.diags_array(turn.conj()))
    for matrix, b, x in ((hermitian, turn * B, turn * X), (A, 1j * B, 1j * X)):
        with nothing_downloaded():
            result = solve(matrix, make(b, 2))
        assert type(result.x) is make
        assert result.x.values.dtype == np.complex128
        assert result.x.values == pytest.approx(x)
    with pytest.raises(VectorError, match="b is float64, but the system is solved in complex128"):
        solve(hermitian, make(B))


@both
def test_small_system_goes_to_the_gpu_on_which_b_lies(make: Make, machine: FakeCore) -> None:
    result = solve(A, make(B, 3))
    assert (result.engine, result.gpus) == ("cuda_p2p", (3,))
    assert len(machine.systems) == 1


@both
def test_pending_work_on_b_and_x0_is_waited_for(make: Make, finished: list[Any]) -> None:
    solve(A, make(B, 1), x0=make(X, 1))
    assert finished == (["cupy"] * 2 if make is CupyArray else ["cuda:1"] * 2)


@both
def test_x0_on_a_gpu_is_handed_over(make: Make, machine: FakeCore) -> None:
    guess = make(X)
    solve(A, make(B), x0=guess)
    assert machine.systems[0].given[1] is guess


@both
def test_cg_returns_an_array_like_b(make: Make) -> None:
    x, info = cg(A, make(B))
    assert info == 0
    assert type(x) is make
    assert x.values == pytest.approx(X)


@both
def test_columns_on_a_gpu_are_solved_without_a_copy_on_the_host(
    make: Make, machine: FakeCore
) -> None:
    rights = np.column_stack([B, 2 * B, np.ones(5)])
    with nothing_downloaded():
        result = solve(A, make(rights, 2), x0=make(np.zeros((5, 3)), 2))
    assert type(result.x) is make
    assert (result.x.number, result.x.shape) == (2, (5, 3))
    assert result.x.values == pytest.approx(np.linalg.solve(A.toarray(), rights))
    assert result.columns[1].x.values == pytest.approx(2 * X)
    given, guess, _ = machine.systems[0].given
    assert given.values.flags.c_contiguous and guess.values.flags.c_contiguous


@both
def test_result_with_x_on_a_gpu_prints_and_goes_to_json(make: Make) -> None:
    result = solve(A, make(B))
    assert "x                   float64 (5,)" in repr(result)
    assert result.to_dict()["engine"] == "cuda_p2p"


@both
def test_float32_matrix_and_b_on_a_gpu_are_solved_in_float32(make: Make, machine: FakeCore) -> None:
    solve(A.astype(np.float32), make(B.astype(np.float32)))
    assert machine.systems[0].matrix.dtype == np.float32


def test_float32_advice_is_given_for_torch_types_too(monkeypatch: pytest.MonkeyPatch) -> None:
    result = solve(A.astype(np.float32), TorchTensor(B.astype(np.float32)))
    stagnated = dataclasses.replace(
        result, converged=False, reason=cpufree.Reason.STAGNATED, true_residual=1.0
    )
    assert "float64 for more" in numerical_notes(stagnated, {"rtol": 1e-9, "atol": 0.0})[0]


@both
def test_numpy_b_on_the_gpu_engine_gives_numpy_x(make: Make, machine: FakeCore) -> None:
    with Solver(A, engine="cuda_p2p") as solver:
        x = solver.solve(B[:, None]).x
        assert isinstance(x, np.ndarray)
        assert x.shape == (5, 1)
        assert machine.systems[0].given[2] is None
        assert isinstance(solver.solve(make(B)).x, make)
    assert len(machine.systems) == 1


def test_solver_of_a_small_system_takes_b_from_both_places(machine: FakeCore) -> None:
    with Solver(A) as solver:
        assert solver.solve(B).engine == "cpu_threads"
        first, second = solver.solve(CupyArray(B)), solver.solve(CupyArray(B))
        assert first.engine == second.engine == "cuda_p2p"
        assert first.x.values == pytest.approx(X)
        assert solver.solve(B).engine == "cpu_threads"
    assert [system.engine for system in machine.systems] == ["cpu_threads", "cuda_p2p"]


def test_later_changes_of_a_have_no_effect_on_a_gpu_either() -> None:
    changed = A.copy()
    with Solver(changed) as solver:
        changed.data[:] = 1e6
        assert solver.solve(CupyArray(B)).x.values == pytest.approx(X)


def test_solver_with_more_pes_than_gpus_says_what_to_do_with_b_on_a_gpu() -> None:
    large = cpufree.generate.poisson2d(80, 80)
    solver = Solver(large, pes=5)
    assert solver.engine == "cpu_threads"
    with pytest.raises(
        InvalidInputError, match="more PEs than there are GPUs: make one with fewer"
    ):
        solver.solve(CupyArray(np.ones(6400)))


def test_closed_solver_refuses_b_on_a_gpu_too() -> None:
    solver = Solver(A)
    solver.close()
    with pytest.raises(InvalidInputError, match="closed"):
        solver.solve(CupyArray(B))


@both
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(4), r"b has shape \(4,\), but the matrix has 5 rows"),
        (np.ones((5, 1)), r"b has shape \(5, 1\).*pass b.reshape\(-1\)"),
        (np.ones((4, 2)), r"b has shape \(4, 2\), but the matrix has 5 rows"),
        (np.ones((5, 2), np.float32), "b is float32, but the system is solved in float64"),
        (np.ones(5, np.float32), "b is float32, but the system is solved in float64.*pass b"),
        (np.ones(5, np.int64), "b is int64, but the system is solved in float64"),
        (np.ones(10)[::2], "b is not contiguous: pass"),
    ],
)
def test_b_on_a_gpu_that_does_not_fit_is_refused_with_the_way_out(
    make: Make, values: Any, message: str
) -> None:
    with pytest.raises(VectorError, match=message):
        solve(A, make(values))


def test_tensor_that_requires_a_gradient_is_to_be_detached() -> None:
    with pytest.raises(VectorError, match=r"b requires a gradient.*pass b.detach\(\)"):
        solve(A, TorchTensor(B, requires_grad=True))


def test_sparse_tensor_is_to_be_made_dense() -> None:
    with pytest.raises(VectorError, match=r"b is sparse: pass b.to_dense\(\)"):
        solve(A, TorchTensor(B, layout="sparse_coo"))


def test_float64_b_widens_a_float32_matrix(machine: FakeCore) -> None:
    solve(A.astype(np.float32), CupyArray(B))
    assert machine.systems[0].matrix.dtype == np.float64


def test_array_of_another_library_names_those_that_are_taken() -> None:
    with pytest.raises(VectorError, match=r"OtherArray: arrays of CuPy and PyTorch.*cupy.asarray"):
        solve(A, OtherArray())


@pytest.mark.parametrize(
    ("b", "x0", "message"),
    [
        (CupyArray(B), X, "x0 lies on the host, but b on a GPU"),
        (B, CupyArray(X), r"x0 lies on a GPU.*pass x0.get\(\)"),
        (CupyArray(B, 0), CupyArray(X, 1), "b lies on GPU 0, but x0 on GPU 1"),
        (CupyArray(B), CupyArray(np.ones(4)), r"x0 has shape \(4,\)"),
        (CupyArray(np.ones((5, 2))), np.ones((5, 2)), "x0 lies on the host, but b on a GPU"),
    ],
    ids=["x0 on host", "b on host", "two GPUs", "wrong length", "columns of x0 on host"],
)
def test_x0_must_lie_where_b_does_and_fit(b: Any, x0: Any, message: str) -> None:
    with pytest.raises(VectorError, match=message):
        solve(A, b, x0=x0)


@both
def test_b_on_a_gpu_contradicts_the_cpu_engine(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="b lies on a GPU, but engine 'cpu_threads'"):
        solve(A, make(B), engine="cpu_threads")
    with pytest.raises(InvalidInputError, match="b lies on a GPU, but engine 'cpu_threads'"):
        Solver(A, engine="cpu_threads").solve(make(B))
    monkeypatch.setenv("CPUFREE_ENGINE", "cpu_threads")
    with pytest.raises(InvalidInputError, match="by CPUFREE_ENGINE"):
        Solver(A).solve(make(B))


@both
def test_b_on_a_gpu_without_a_gpu_engine_says_why(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeCore(0, built=False, note="this build has no CUDA")
    monkeypatch.setattr("cpufree._core", fake)
    with pytest.raises(UnsupportedError, match="this build has no CUDA"):
        solve(A, make(B))
    with pytest.raises(UnsupportedError, match="this build has no CUDA"):
        Solver(A).solve(make(B))


def test_callback_cannot_be_had_with_b_on_a_gpu() -> None:
    with pytest.raises(InvalidInputError, match="b lies on a GPU, but SciPy's cg"):
        cg(A, CupyArray(B), callback=lambda _: None)


def test_guess_from_m_cannot_be_had_with_b_on_a_gpu() -> None:
    with pytest.raises(InvalidInputError, match="'Mb', and b lies on a GPU"):
        cg(A, CupyArray(B), x0="Mb", M=sp.diags_array(1 / A.diagonal()))


def test_tensor_on_the_host_is_an_array_of_the_host() -> None:
    class HostTensor(TorchTensor):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __array__(self, *_: Any, **__: Any) -> Any:
            return self.values

    result = solve(A, HostTensor(B))
    assert isinstance(result.x, np.ndarray)
    assert result.x == pytest.approx(X)


@pytest.mark.parametrize("v", [B, [1.0, 2.0], 3.0, None, "b.npy", np.float64(1)])
def test_values_of_the_host_lie_on_no_gpu(v: Any) -> None:
    assert cuda_device(v) is None


def test_tensor_that_requires_a_gradient_is_still_found_on_its_gpu() -> None:
    assert cuda_device(TorchTensor(B, 3, requires_grad=True)) == 3


# Matrices


def cupyx_matrix(matrix: Any) -> Any:
    """Return a matrix of cupyx.scipy.sparse."""
    return type(
        "csr_matrix", (), {"get": lambda self: matrix, "__module__": "cupyx.scipy.sparse"}
    )()


class Tensor:
    """A tensor on the host, as torch.Tensor.cpu() returns it."""

    def __init__(self, array: Any, layout: str = "strided", **parts: Any) -> None:
        self.array = np.asarray(array)
        self.layout = f"torch.{layout}"
        self.shape = (5, 5)
        for name, part in parts.items():
            setattr(self, name, lambda part=part: SimpleNamespace(numpy=lambda: part))

    def detach(self) -> Tensor:
        return self

    cpu = coalesce = detach

    def numpy(self) -> Any:
        return self.array


Tensor.__module__ = "torch"


def tensors() -> dict[str, Tensor]:
    """Return A as a tensor of each layout."""
    csr, coo, csc = sp.csr_array(A), sp.coo_array(A), sp.csc_array(A)
    return {
        "strided": Tensor(A.toarray()),
        "coo": Tensor(0, "sparse_coo", values=coo.data, indices=np.array([coo.row, coo.col])),
        "csr": Tensor(
            0, "sparse_csr", values=csr.data, crow_indices=csr.indptr, col_indices=csr.indices
        ),
        "csc": Tensor(
            0, "sparse_csc", values=csc.data, ccol_indices=csc.indptr, row_indices=csc.indices
        ),
    }


@pytest.mark.parametrize("layout", tensors())
def test_tensor_of_each_layout_becomes_the_matrix(layout: str) -> None:
    assert np.array_equal(as_csr(tensors()[layout]).to_scipy().toarray(), A.toarray())


@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.coo_matrix, sp.csc_matrix])
def test_matrix_of_cupyx_becomes_the_matrix(convert: Any) -> None:
    assert np.array_equal(as_csr(cupyx_matrix(convert(A))).to_scipy().toarray(), A.toarray())


def test_dense_matrix_of_cupy_becomes_the_matrix() -> None:
    assert np.array_equal(as_csr(CupyArray(A.toarray())).to_scipy().toarray(), A.toarray())


def test_matrix_on_a_gpu_is_checked_like_others() -> None:
    with pytest.raises(MatrixError, match="not symmetric"):
        solve(cupyx_matrix(sp.csr_matrix(np.array([[1.0, 2.0], [0.0, 1.0]]))), np.ones(2))


def test_tensor_of_another_layout_says_how_to_convert() -> None:
    with pytest.raises(MatrixError, match=r"layout sparse_bsr: convert it with A.to_sparse_csr"):
        as_csr(Tensor(0, "sparse_bsr"))


def test_tensor_that_numpy_cannot_hold_is_refused_with_the_reason() -> None:
    class Bfloat16(Tensor):
        def numpy(self) -> Any:
            raise TypeError("Got unsupported ScalarType BFloat16")

    with pytest.raises(MatrixError, match="unsupported ScalarType BFloat16"):
        as_csr(Bfloat16(0))


def test_object_of_these_libraries_that_is_no_matrix_is_refused() -> None:
    module = type("Linear", (), {"__module__": "torch.nn"})()
    with pytest.raises(MatrixError, match=r"torch.nn.Linear: it has no entries"):
        as_csr(module)
