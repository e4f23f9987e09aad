"""What public functions say of a wrong call: unknown options, and tracebacks without our frames."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree import UnsupportedError
from cpufree.errors import InvalidInputError, UnknownOptionError

A = cpufree.generate.poisson2d(8, 8)
B = np.ones(64)


def solver_solve(**options: Any) -> Any:
    with cpufree.Solver(A) as solver:
        return solver.solve(B, **options)


CALLS: dict[str, Callable[..., Any]] = {
    "cg": lambda **options: cpufree.cg(A, B, **options),
    "solve": lambda **options: cpufree.solve(A, B, **options),
    "Solver": lambda **options: cpufree.Solver(A, **options),
    "Solver.solve": solver_solve,
    "jacobi": lambda **options: cpufree.stencil.jacobi(np.ones((4, 4)), 3, **options),
}


@pytest.mark.parametrize(
    ("name", "option", "meant"),
    [
        ("cg", "tol", "rtol"),
        ("cg", "max_iter", "maxiter"),
        ("solve", "maxit", "maxiter"),
        ("solve", "preconditioner", "pc"),
        ("Solver", "threads", "blocks"),
        ("Solver.solve", "tol", "rtol"),
        ("jacobi", "time_limt", "time_limit"),
    ],
)
def test_unknown_option_is_refused_with_the_one_that_may_be_meant(
    name: str, option: str, meant: str
) -> None:
    with pytest.raises(UnknownOptionError) as refused:
        CALLS[name](**{option: 1})
    assert isinstance(refused.value, TypeError)
    assert str(refused.value).startswith(f"{name}() has no option '{option}'")
    assert f"(did you mean {meant}?)" in str(refused.value)
    assert "_call" not in str(refused.value) and "self" not in str(refused.value)


def frames_of(call: Callable[..., Any], **options: Any) -> list[str]:
    """Return the names of functions in the traceback of a refused call."""
    with pytest.raises(InvalidInputError) as refused:
        call(**options)
    return [frame.name for frame in traceback.extract_tb(refused.value.__traceback__)]


@pytest.mark.parametrize("name", ["cg", "solve", "jacobi"])
def test_traceback_of_refused_input_ends_at_the_call(name: str) -> None:
    assert frames_of(CALLS[name], pes=-1) == ["frames_of", "<lambda>", "call"]


def test_traceback_is_whole_where_the_log_says_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_LOG", "debug")
    assert len(frames_of(CALLS["solve"], pes=-1)) > 4


def test_traceback_keeps_the_line_of_a_function_of_the_user() -> None:
    def follow(iteration: int, residual: float) -> None:
        raise InvalidInputError("this is the user's")

    chain, b = cpufree.generate.poisson1d(100_000), np.ones(100_000)
    assert "follow" in frames_of(lambda: cpufree.solve(chain, b, pc="jacobi", progress=follow))


def test_solver_cannot_be_pickled_and_says_what_to_do() -> None:
    with (
        cpufree.Solver(A) as solver,
        pytest.raises(UnsupportedError, match="make a Solver of it in each process"),
    ):
        pickle.dumps(solver)


def test_cg_takes_the_options_of_solve() -> None:
    x, info = cpufree.cg(A, B, method="pipecg", pc="chebyshev", chebyshev_degree=3, replace_every=9)
    assert info == 0
    assert np.linalg.norm(B - A @ x) <= 1.001e-5 * np.linalg.norm(B)
