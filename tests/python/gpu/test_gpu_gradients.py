"""cpufree.torch.solve and cpufree.jax.solve on real GPUs: tensors stay there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpus_here import NUMBERS, needs_gpu, several

import cpufree
from cpufree import device_arrays
from cpufree.errors import NotConvergedError, VectorError

pytestmark = needs_gpu
A = cpufree.generate.poisson2d(4, 3)
ROW = np.repeat(np.arange(12), np.diff(A.indptr))


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    return module


def on_gpu(torch: Any, *arrays: Any, device: int = NUMBERS[0] if NUMBERS else 0) -> list[Any]:
    return [torch.tensor(array).to(f"cuda:{device}") for array in arrays]


def reference(torch: Any, values: Any, b: Any) -> Any:
    row, col = on_gpu(torch, ROW, A.indices.astype(np.int64), device=values.device.index)
    dense = torch.zeros(12, 12, dtype=values.dtype, device=values.device)
    return torch.linalg.solve(dense.index_put((row, col), values), b)


@pytest.mark.parametrize("columns", [(), (1,), (3,)])
@pytest.mark.parametrize("engine", ["auto", "cuda_p2p"])
def test_first_and_second_derivatives(torch: Any, engine: str, columns: tuple[int, ...]) -> None:
    from cpufree.torch import solve

    rng = np.random.default_rng(0)
    crow, col, values, b = on_gpu(
        torch, A.indptr, A.indices, A.data, rng.standard_normal((12, *columns))
    )

    def derivatives(x: Any) -> list[Any]:
        given = [v.clone().requires_grad_() for v in (values, b)]
        first = torch.autograd.grad((x(*given) ** 3).sum(), given, create_graph=True)
        return [*first, *torch.autograd.grad(sum((v**2).sum() for v in first), given)]

    ours = derivatives(lambda v, b: solve((crow, col, v), b, rtol=1e-13, engine=engine))
    for mine, other in zip(ours, derivatives(lambda *v: reference(torch, *v)), strict=True):
        assert mine.device == b.device
        torch.testing.assert_close(mine, other, rtol=1e-8, atol=1e-9)


def test_vectors_and_gradients_stay_there(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is copied to the host once the Solver has the values."""
    from cpufree.torch import solve

    large = cpufree.generate.poisson3d(40, 40, 40)
    crow, col, values = on_gpu(torch, large.indptr, large.indices, large.data)
    values.requires_grad_()
    b = torch.randn_like(values[: large.shape[0]]).requires_grad_()
    with cpufree.Solver(large, engine="cuda_p2p", pes=1, pc="amg") as solver:
        solve((crow, col, values), b, solver=solver)  # which takes the values
        for name in ("cpu", "numpy", "tolist"):
            monkeypatch.setattr(torch.Tensor, name, lambda *_, **__: pytest.fail("to the host"))
        monkeypatch.setattr(device_arrays, "copy_to_host", lambda *_: pytest.fail("to the host"))
        x = solve((crow, col, values), b, solver=solver, rtol=1e-10)
        of_values, of_b = torch.autograd.grad(x.square().sum(), (values, b))
        assert solver.updates == 1
        monkeypatch.undo()
    assert of_values.device == of_b.device == x.device == b.device
    exact = cpufree.solve(large, 2 * x.detach().cpu().numpy(), rtol=1e-10, pc="amg").x
    assert np.linalg.norm(of_b.cpu().numpy() - exact) <= 1e-7 * np.linalg.norm(exact)


@several
def test_tensors_may_lie_on_another_gpu(torch: Any) -> None:
    from cpufree.torch import solve

    crow, col, values, b = on_gpu(torch, A.indptr, A.indices, A.data, np.ones(12), device=1)
    values.requires_grad_()
    solve((crow, col, values), b, gpus=[NUMBERS[0]], rtol=1e-12).sum().backward()
    wide = values.detach().clone().requires_grad_()
    reference(torch, wide, b).sum().backward()
    torch.testing.assert_close(values.grad, wide.grad)


def test_gradient_that_does_not_converge_raises(torch: Any) -> None:
    from cpufree.torch import solve

    vector = np.linalg.eigh(A.toarray())[1][:, 0]
    crow, col, values, b = on_gpu(torch, A.indptr, A.indices, A.data, vector)
    x = solve((crow, col, values), b.requires_grad_(), maxiter=2, rtol=1e-9, pc="none")
    with pytest.raises(NotConvergedError, match="the solve for a gradient"):
        (x * torch.arange(12, device=x.device)).sum().backward()
    with pytest.raises(VectorError, match="A on cuda"):
        solve((crow, col, values), b.detach().cpu())


def test_arrays_of_jax_on_a_gpu() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX finds no GPU")
    from cpufree.jax import solve

    b = np.random.default_rng(0).standard_normal(12).astype(np.float32)
    data = jax.numpy.asarray(A.data.astype(np.float32))
    loss = jax.jit(jax.grad(lambda d: (solve((d, A.indices, A.indptr), b, rtol=1e-6) ** 2).sum()))
    dense = jax.grad(
        lambda d: (
            jax.numpy.linalg.solve(jax.numpy.zeros((12, 12)).at[ROW, A.indices].set(d), b) ** 2
        ).sum()
    )
    np.testing.assert_allclose(loss(data), dense(data), rtol=1e-3, atol=1e-3)
