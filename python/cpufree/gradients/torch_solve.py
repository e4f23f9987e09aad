"""Solves that PyTorch differentiates.

With x = A⁻¹ b and g the gradient with respect to x, λ = A⁻ᵀ g is that with respect to b, and that
with respect to the entry a_ij is -λ_i x_j. A is symmetric, so that λ is a solve with A; but what is
the transpose is kept apart, for in second derivatives a change of a_ij is none of a_ji.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np

from cpufree.arguments import Count, Engine, Gpus, Method, Preconditioner
from cpufree.calls import public
from cpufree.device_arrays import cuda_device
from cpufree.docstrings import with_parameters
from cpufree.errors import MatrixError, UnsupportedError, VectorError
from cpufree.gradients.shared import Asked, require_shape, require_type, solve_with
from cpufree.solvers.solver import Solver

try:
    import torch
except ImportError as error:
    raise UnsupportedError(
        f"cpufree.torch needs PyTorch, which does not load ({error}): pip install 'cpufree[torch]'"
    ) from None


@public
@with_parameters
def solve(
    A: torch.Tensor | tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    b: torch.Tensor,
    *,
    x0: torch.Tensor | None = None,
    solver: Solver | None = None,
    rtol: float = 1e-5,
    maxiter: int | None = None,
    method: Method = "auto",
    pc: Preconditioner | None = None,
    engine: Engine = "auto",
    pes: Count = "auto",
    gpus: Gpus = "auto",
    check: bool = True,
    time_limit: float | None = None,
    wait_limit: float | None = None,
) -> torch.Tensor:
    """Solve A x = b, differentiable with respect to b and to the values of A.

    The gradient is one more solve with the same set-up, to the same rtol; so are second
    derivatives. Where A and b lie on a GPU, b, x and gradients stay there.

    Parameters
    ----------
    A : tensor of layout sparse_csr, shape (n, n), or tuple of tensors
        Symmetric positive definite, float64 or float32. A tuple is (crow_indices, col_indices,
        values), as torch.sparse_csr_tensor takes them.
    b : tensor, shape (n,) or (n, k)
        Right-hand sides, of the type of A, on its device.
    x0 : tensor of the shape of b, optional
        First guess, of no influence on gradients; default zero.
    solver : cpufree.Solver, optional
        Is used, and given the values of A where it has others. It has the pattern of A, and all
        options of set-up. Without one, a Solver is made that lives as long as the graph.
    rtol : float, default 1e-05
        The solve ends where ‖b - A x‖₂ ≤ rtol ‖b‖₂, and that of a gradient likewise.
    {maxiter, method}
    pc : {"auto", "jacobi", "chebyshev", "fsai", "amg", "none"}, optional
        Preconditioner; default that of `solver`, without one "auto".
    {engine, pes, gpus, check, time_limit, wait_limit}

    Returns
    -------
    tensor
        x, of the shape and type of b, on its device.

    Raises
    ------
    NotConvergedError
        Where the tolerance is not met, in the solve or in that of a gradient.
    MatrixError, VectorError, InvalidInputError
        For what cannot be solved.

    Examples
    --------
    >>> import cpufree.torch, torch
    >>> crow, col = torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 1])
    >>> values = torch.tensor([2.0, 1.0, 1.0, 2.0], requires_grad=True)
    >>> x = cpufree.torch.solve((crow, col, values), torch.tensor([3.0, 0.0]))
    >>> x.sum().backward()
    >>> x.detach(), values.grad
    (tensor([ 2., -1.]), tensor([-0.6667,  0.3333, -0.6667,  0.3333]))
    """
    asked = Asked(rtol, maxiter, method, pc, engine, pes, gpus, check, time_limit, wait_limit)
    pattern, data = _parts(A)
    _require_beside(pattern, data, {"b": b} if x0 is None else {"b": b, "x0": x0})
    asked.require_fits(solver, _kind(data))
    if solver is None:
        again = torch.is_grad_enabled() and (data.requires_grad or b.requires_grad)
        columns = b.shape[1] if b.dim() == 2 else 1
        values = _Values(pattern, data)
        solver = asked.new_solver(values, b.detach(), 2 * columns if again else columns)
    guess = None if x0 is None else x0.detach()
    return cast(torch.Tensor, _Solve.apply(data, b, _Call(pattern, solver, asked, guess)))


@dataclass(frozen=True)
class _Pattern:
    """Where a matrix in compressed rows has entries."""

    crow: torch.Tensor
    col: torch.Tensor

    @property
    def n(self) -> int:
        return int(self.crow.shape[0]) - 1

    def products(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return -left_i right_j for each entry (i, j), summed over columns of both."""
        if left.dim() == 1:
            return self._product(left, right)
        # One by one: products of all columns would take k times the memory of A.
        pairs = zip(left.unbind(1), right.unbind(1), strict=True)
        return reduce(torch.add, (self._product(*pair) for pair in pairs))

    def _product(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        there = right.index_select(0, self.col)
        if torch.is_grad_enabled() or cuda_device(left) is not None:
            numbers = torch.arange(self.n, dtype=self.col.dtype, device=self.col.device)
            nnz = self.col.shape[0]
            rows = torch.repeat_interleave(numbers, self.crow.diff(), output_size=nnz)
            return (-left).index_select(0, rows) * there
        # PyTorch's threads, which the rest would wake, wait for cores that a solve has just had.
        here = np.repeat(np.negative(left.detach().numpy()), np.diff(self.crow.numpy()))
        here *= there.detach().numpy()
        return torch.from_numpy(here)


class _Values:
    """A matrix that knows its tensors again, unless they have been written since."""

    def __init__(self, pattern: _Pattern, data: torch.Tensor) -> None:
        self.n = pattern.n
        self._tensors = tuple(v.detach() for v in (pattern.crow, pattern.col, data))
        self._written = tuple(v._version for v in self._tensors)

    def matrix(self) -> Any:
        """Return the matrix as Solver takes it; its arrays are shared."""
        crow, col, data = self._tensors
        shape = (self.n, self.n)
        if cuda_device(data) is None:
            import scipy.sparse as sp  # a heavy import

            return sp.csr_array((data.numpy(), col.numpy(), crow.numpy()), shape=shape)
        with warnings.catch_warnings():  # that such tensors are in beta state
            warnings.filterwarnings("ignore", message=".*Sparse CSR", category=UserWarning)
            # Entries are looked at where they are laid out.
            return torch.sparse_csr_tensor(crow, col, data, shape, check_invariants=False)

    def kept(self) -> _Values:
        """Return what is to be compared with later: PyTorch counts the writes of a tensor."""
        return self

    def same_as(self, other: Any) -> bool:
        """Return whether another one is of the same memory, written as often."""
        if not isinstance(other, _Values) or self._written != other._written:
            return False
        pairs = zip(self._tensors, other._tensors, strict=True)
        return all(a.data_ptr() == b.data_ptr() and _facts(a) == _facts(b) for a, b in pairs)


def _kind(v: torch.Tensor) -> str:
    return str(v.dtype).removeprefix("torch.")


def _facts(v: torch.Tensor) -> tuple[Any, ...]:
    return (v.shape, v.stride(), v.dtype, v.device)


@dataclass(frozen=True)
class _Call:
    """A solve, apart from the tensors that are differentiated."""

    pattern: _Pattern
    solver: Solver
    asked: Asked
    x0: torch.Tensor | None = None
    transposed: bool = False
    what: str = "the solve"

    def adjoint(self) -> _Call:
        """Return the solve that gives the gradient."""
        what = "the solve for a gradient, whose b is the gradient with respect to x"
        return _Call(self.pattern, self.solver, self.asked, None, not self.transposed, what)

    def solve(self, data: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return x, a tensor like b without gradient."""
        values = _Values(self.pattern, data)
        guess = None if self.x0 is None else _given(self.x0)
        x = solve_with(self.solver, values, _given(b), self.asked, self.what, guess)
        return (x if isinstance(x, torch.Tensor) else torch.from_numpy(x)).reshape(b.shape)


class _Solve(torch.autograd.Function):  # type: ignore[misc]
    """x of the values of A and b; its gradient is another one, so that it has one itself."""

    @staticmethod
    def forward(data: torch.Tensor, b: torch.Tensor, call: _Call) -> torch.Tensor:
        return call.solve(data, b)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
        data, _, ctx.call = inputs
        ctx.save_for_backward(data, output)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        data, x = ctx.saved_tensors
        call: _Call = ctx.call
        adjoint = _Solve.apply(data, gradient, call.adjoint())
        of_values = None
        if ctx.needs_input_grad[0]:
            left, right = (x, adjoint) if call.transposed else (adjoint, x)
            of_values = call.pattern.products(left, right)
        return of_values, adjoint if ctx.needs_input_grad[1] else None, None


def _given(b: torch.Tensor) -> Any:
    """Return right-hand sides or guesses as Solver.solve takes them; they share memory."""
    b = b.detach()
    if cuda_device(b) is None:
        return b.numpy()
    b = b.reshape(-1) if b.dim() == 2 and b.shape[1] == 1 else b
    return b.contiguous()


def _parts(A: Any) -> tuple[_Pattern, torch.Tensor]:
    """Return pattern and values of A, with its graph; MatrixError for what is no matrix."""
    if isinstance(A, torch.Tensor) and A.layout == torch.sparse_csr and A.dim() == 2:
        if A.shape[0] != A.shape[1]:
            raise MatrixError(f"the matrix is rectangular, {A.shape[0]} x {A.shape[1]}")
        return _Pattern(A.crow_indices(), A.col_indices()), A.values()
    parts = A if isinstance(A, (tuple, list)) else ()
    if len(parts) != 3 or not all(isinstance(part, torch.Tensor) for part in parts):
        kind = f"tensor of layout {A.layout}" if isinstance(A, torch.Tensor) else type(A).__name__
        raise MatrixError(
            f"A is a {kind}: pass a tensor of layout sparse_csr (A.to_sparse_csr()), or the tuple "
            "(crow_indices, col_indices, values)"
        )
    crow, col, data = parts
    if any(part.dim() != 1 for part in parts) or len(crow) < 2 or col.shape != data.shape:
        raise MatrixError(
            f"A is a tuple of tensors of shapes {', '.join(str(tuple(p.shape)) for p in parts)}: "
            "they must be (n+1,), (nnz,) and (nnz,)"
        )
    return _Pattern(crow, col), data


def _require_beside(pattern: _Pattern, data: torch.Tensor, vectors: dict[str, Any]) -> None:
    """Refuse right-hand sides and guesses that do not fit the matrix."""
    if len({part.device for part in (pattern.crow, pattern.col, data)}) != 1:
        raise MatrixError("the tensors of A lie in different places: put them in one")
    for name, v in vectors.items():
        if not isinstance(v, torch.Tensor):
            raise VectorError(f"{name} is no tensor: pass torch.as_tensor({name})")
        if v.device != data.device:
            raise VectorError(
                f"{name} lies on {v.device}, but A on {data.device}: put both in one place"
            )
        require_type(_kind(data), _kind(v), name)
        require_shape(pattern.n, tuple(v.shape), name)
