"""cpufree.torch.solve: PyTorch's own checks of gradients, options, errors."""

from __future__ import annotations

import doctest
import gc
import inspect
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.errors import InvalidInputError, MatrixError, NotConvergedError, VectorError
from cpufree.solvers.solver import Solver

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from cpufree.torch import solve  # noqa: E402

A = cpufree.generate.poisson2d(4, 3)
N = A.shape[0]
CROW, COL = torch.as_tensor(A.indptr), torch.as_tensor(A.indices)
ROW = torch.repeat_interleave(torch.arange(N), CROW.diff())
MIRROR = torch.as_tensor(  # where a_ji is, of each a_ij
    [
        int(np.flatnonzero((A.indices == i) & (ROW.numpy() == j))[0])
        for i, j in zip(ROW, COL, strict=True)
    ]
)
TIGHT = {"rtol": 1e-13}
vectors = pytest.mark.parametrize("columns", [(), (1,), (3,)], ids=["vector", "1", "3"])


def random(*shape: int, seed: int = 0, grad: bool = True) -> Any:
    """Return a tensor of normal numbers."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return torch.tensor(values, requires_grad=grad)


def values_of(parameters: Any) -> Any:
    """Return values of a symmetric matrix that depend on a parameter for each entry."""
    changes = 0.1 * torch.sin(parameters)
    return torch.as_tensor(A.data) + (changes + changes[MIRROR]) + 0.5 * (ROW == COL)


def dense(values: Any) -> Any:
    """Return a matrix with these values as PyTorch's own solve takes it."""
    return torch.zeros(N, N, dtype=values.dtype).index_put((ROW, COL.long()), values)


def solver_of(**options: Any) -> Solver:
    return Solver(A, engine="cpu_threads", pes=1, blocks=2, **options)


@vectors
def test_gradients_with_respect_to_b_and_values(columns: tuple[int, ...]) -> None:
    def x(parameters: Any, b: Any) -> Any:
        return solve((CROW, COL, values_of(parameters)), b, **TIGHT)

    given = (random(len(COL)), random(N, *columns, seed=1))
    assert torch.autograd.gradcheck(x, given)
    assert torch.autograd.gradgradcheck(x, given)


def test_gradient_with_respect_to_each_entry_by_itself() -> None:
    """Entries are independent: a change of a_ij is none of a_ji, and A is not symmetric then."""

    def x(values: Any, b: Any) -> Any:
        return solve((CROW, COL, values), b, **TIGHT, check=False)

    given = (torch.tensor(A.data, requires_grad=True), random(N))
    assert torch.autograd.gradcheck(x, given)


@vectors
def test_first_and_second_derivatives_are_those_of_torch(columns: tuple[int, ...]) -> None:
    def derivatives(x: Callable[[Any, Any], Any]) -> list[Any]:
        values = torch.tensor(A.data, requires_grad=True)
        b, toward = random(N, *columns, seed=1), random(N, *columns, seed=2)
        found = x(values, b)
        first = torch.autograd.grad(found, (values, b), toward, create_graph=True)
        into = [random(*v.shape, seed=3, grad=False) for v in first]
        return [found, *first, *torch.autograd.grad(first, (values, b, toward), into)]

    ours = derivatives(lambda values, b: solve((CROW, COL, values), b, **TIGHT))
    theirs = derivatives(lambda values, b: torch.linalg.solve(dense(values), b))
    for mine, reference in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-9, atol=1e-10)


def test_sparse_tensor_gets_its_gradient() -> None:
    leaf = torch.sparse_csr_tensor(CROW, COL, torch.as_tensor(A.data), A.shape).requires_grad_()
    values = torch.tensor(A.data, requires_grad=True)
    b = random(N, grad=False)
    solve(leaf, b, **TIGHT).sum().backward()
    solve(torch.sparse_csr_tensor(CROW, COL, values, A.shape), b, **TIGHT).sum().backward()
    reference = torch.tensor(A.data, requires_grad=True)
    torch.linalg.solve(dense(reference), b).sum().backward()
    torch.testing.assert_close(leaf.grad.values(), reference.grad)
    torch.testing.assert_close(values.grad, reference.grad)


def test_float32() -> None:
    values = torch.tensor(A.data, dtype=torch.float32, requires_grad=True)
    b = random(N).detach().float().requires_grad_()
    x = solve((CROW, COL, values), b, rtol=1e-6)
    assert x.dtype == torch.float32
    x.square().sum().backward()
    wide = [v.detach().double().requires_grad_() for v in (values, b)]
    torch.linalg.solve(dense(wide[0]), wide[1]).square().sum().backward()
    for mine, reference in zip((values, b), wide, strict=True):
        assert mine.grad.dtype == torch.float32
        torch.testing.assert_close(mine.grad.double(), reference.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pc", ["amg", "fsai", "chebyshev", "none"])
def test_one_set_up_for_solve_and_gradient(pc: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Solver] = []
    first = Solver.__init__

    def counted(self: Solver, *given: Any, **options: Any) -> None:
        made.append(self)
        first(self, *given, **options)

    monkeypatch.setattr(Solver, "__init__", counted)
    values, b = torch.tensor(A.data, requires_grad=True), random(N)
    solve((CROW, COL, values), b, rtol=1e-12, pc=pc).sum().backward()
    assert len(made) == 1
    assert made[0].updates == 0
    torch.testing.assert_close(b.grad, torch.linalg.solve(dense(values), torch.ones_like(b)))


def test_set_up_goes_with_the_graph() -> None:
    values, b = torch.tensor(A.data, requires_grad=True), random(N)
    x = solve((CROW, COL, values), b)
    solver = weakref.ref(x.grad_fn.call.solver)
    x.sum().backward()
    assert solver() is not None
    del x
    gc.collect()
    assert solver() is None


# A Solver that is given


def test_given_solver_takes_values_that_it_does_not_have() -> None:
    b = random(N, grad=False)
    values = torch.tensor(2 * A.data, requires_grad=True)
    with solver_of(pc="amg") as solver:
        for count in (1, 1):  # once: the second solve has the same tensor
            x = solve((CROW, COL, values), b, solver=solver, rtol=1e-12)
            torch.testing.assert_close(x, torch.linalg.solve(dense(values), b))
            assert solver.updates == count
        with torch.no_grad():
            values *= 2.0  # as an optimizer does
        x = solve((CROW, COL, values), b, solver=solver, rtol=1e-12)
        torch.testing.assert_close(x, torch.linalg.solve(dense(values), b))
        assert solver.updates == 2


def test_values_that_a_later_solve_has_replaced_are_put_back_for_a_gradient() -> None:
    b = random(N, grad=False)
    one = torch.tensor(A.data, requires_grad=True)
    two = torch.tensor(3 * A.data, requires_grad=True)
    with solver_of() as solver:
        first = solve((CROW, COL, one), b, solver=solver, rtol=1e-12)
        second = solve((CROW, COL, two), b, solver=solver, rtol=1e-12)
        (first.square().sum() + second.square().sum()).backward()
    for values in (one, two):
        reference = values.detach().clone().requires_grad_()
        torch.linalg.solve(dense(reference), b).square().sum().backward()
        torch.testing.assert_close(values.grad, reference.grad)


def test_values_that_the_user_has_replaced_are_put_back() -> None:
    b, values = random(N), torch.tensor(A.data)
    with solver_of() as solver:
        x = solve((CROW, COL, values), b, solver=solver, rtol=1e-12)
        solver.update(5 * A)
        x.sum().backward()
    torch.testing.assert_close(b.grad, torch.linalg.solve(dense(values), torch.ones_like(b)))


def test_singular_systems() -> None:
    """A Laplacian of weights: the gradient stays in its range, and is that of pseudo-inverses."""
    weights = (torch.rand(len(COL), dtype=torch.float64) + 0.5).requires_grad_()
    b = random(N)

    def laplacian(w: Any) -> Any:
        w = torch.where(ROW == COL, 0.0, w + w[MIRROR])
        return torch.where(ROW == COL, torch.zeros(N).double().index_add(0, ROW, w)[ROW], -w)

    start = cpufree.generate.poisson2d(4, 3)
    start.data = laplacian(weights).detach().numpy()
    with Solver(start, nullspace="constant") as solver:
        x = solve((CROW, COL, laplacian(weights)), b, solver=solver, rtol=1e-13)
        x.square().sum().backward()
    wide = [v.detach().clone().requires_grad_() for v in (weights, b)]
    (
        torch.linalg.pinv(dense(laplacian(wide[0])), hermitian=True) @ wide[1]
    ).square().sum().backward()
    torch.testing.assert_close(weights.grad, wide[0].grad, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(b.grad, wide[1].grad, rtol=1e-8, atol=1e-9)


def test_first_guess_is_used_and_has_no_gradient() -> None:
    values, b = torch.tensor(A.data), random(N)
    exact = solve((CROW, COL, values), b, **TIGHT).detach().requires_grad_()
    x = solve((CROW, COL, values), b, x0=exact, rtol=1e-9, maxiter=1)
    x.sum()
    with pytest.raises(NotConvergedError):  # the gradient's solve begins at 0
        x.sum().backward()
    assert exact.grad is None


# Errors


def test_solve_that_does_not_converge_raises_with_its_report() -> None:
    with pytest.raises(NotConvergedError, match=r"the solve: NOT converged after 2 iter") as caught:
        solve((CROW, COL, torch.tensor(A.data)), random(N), maxiter=2, rtol=1e-12)
    assert caught.value.result.iterations == 2
    assert str(caught.value.result.reason) == "DIVERGED_ITS"


def test_gradient_that_does_not_converge_raises_with_its_report() -> None:
    vector = np.linalg.eigh(A.toarray())[1][:, 0]  # which one iteration solves for
    x = solve((CROW, COL, torch.tensor(A.data)), torch.tensor(vector, requires_grad=True),
              maxiter=2, rtol=1e-9, pc="none")  # fmt: skip
    with pytest.raises(NotConvergedError, match=r"the solve for a gradient.*: NOT converged"):
        (x * random(N, grad=False)).sum().backward()


def test_gradient_that_is_not_finite_is_named() -> None:
    b = random(N)
    x = solve((CROW, COL, torch.tensor(A.data)), b)
    with pytest.raises(VectorError, match=r"for a gradient, .*: b\[3\] = nan is not a finite"):
        x.backward(torch.where(torch.arange(N) == 3, torch.nan, 1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": torch.ones(N)}, "b is float32, but the values of A are float64"),
        ({"b": torch.ones(N + 1).double()}, r"b has shape \(13,\), but the matrix has 12 rows"),
        ({"b": torch.ones(N, 2, 2).double()}, r"b has shape \(12, 2, 2\)"),
        ({"b": np.ones(N)}, "b is no tensor"),
        ({"x0": torch.ones(N)}, "x0 is float32"),
        ({"b": torch.ones(N, device="meta").double()}, "b lies on meta, but A on cpu"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"b": torch.ones(N).double(), **change}
    with pytest.raises(VectorError, match=message):
        solve((CROW, COL, torch.tensor(A.data)), **given)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (torch.as_tensor(A.toarray()), "layout torch.strided: pass a tensor of layout sparse_csr"),
        (A, "A is a csr_array: pass"),
        ((CROW, COL), "A is a tuple: pass"),
        ((CROW, COL, torch.ones(3)), "they must be"),
        (torch.ones(2, 3).to_sparse_csr(), "rectangular, 2 x 3"),
        ((CROW, COL, torch.ones(len(COL), device="meta")), "different places"),
        ((CROW, COL, torch.arange(len(COL)).double()), "not symmetric"),
    ],
)
def test_matrices_that_are_none_are_refused(matrix: Any, message: str) -> None:
    with pytest.raises(MatrixError, match=message):
        solve(matrix, torch.ones(N).double())


def test_solver_of_another_pattern_or_type_is_refused() -> None:
    b, values = torch.ones(N).double(), torch.tensor(A.data)
    other, narrow = Solver(cpufree.generate.poisson1d(N)), Solver(A.astype(np.float32))
    with other as solver, pytest.raises(MatrixError, match="nonzeros"):
        solve((CROW, COL, values), b, solver=solver)
    with narrow as solver, pytest.raises(InvalidInputError, match="float32"):
        solve((CROW, COL, values), b, solver=solver)


def test_options_of_set_up_beside_a_solver_are_refused() -> None:
    with solver_of() as solver, pytest.raises(InvalidInputError, match="engine and solver"):
        solve((CROW, COL, torch.tensor(A.data)), random(N), solver=solver, engine="cpu_threads")


def test_unknown_option_names_the_one_that_is_meant() -> None:
    with pytest.raises(TypeError, match="did you mean rtol"):
        solve((CROW, COL, torch.tensor(A.data)), random(N), rtoll=1e-5)


@pytest.mark.parametrize("columns", [(), (2,)])
def test_solves_that_give_no_gradient_say_which_one_does(columns: tuple[int, ...]) -> None:
    b = random(N, *columns)
    for call in (cpufree.solve, cpufree.cg) if not columns else (cpufree.solve,):
        with pytest.raises(VectorError, match=r"b requires a gradient.*call cpufree.torch.solve"):
            call(A, b)
    leaf = torch.sparse_csr_tensor(CROW, COL, torch.tensor(A.data), A.shape).requires_grad_()
    with pytest.raises(MatrixError, match=r"A requires a gradient.*or pass A.detach\(\)"):
        Solver(leaf)
    with Solver(leaf.detach()) as solver, pytest.raises(MatrixError, match="requires a gradient"):
        solver.update(leaf)


def test_docstrings_name_all_options_and_their_examples_run() -> None:
    text = inspect.cleandoc(solve.__doc__ or "")
    for name in inspect.signature(solve).parameters:
        assert re.search(rf"^{name} : ", text, re.MULTILINE), name
    assert "{" not in text.replace('{"', "")  # names in braces that stayed
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for function in (solve,):
        test = doctest.DocTestParser().get_doctest(function.__doc__ or "", {}, "", None, None)
        assert test.examples
        assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0
