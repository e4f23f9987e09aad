"""Solver.update writes into the system that there is; what happens where that fails."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cpufree
from cpufree import Solver
from cpufree.errors import InvalidInputError, OutOfMemoryError
from cpufree.extension import load_core


def scaled(matrix: Any) -> sp.csr_array:
    """Return D A D: other values of the same pattern, symmetric positive definite too."""
    factors = 1.0 + np.random.default_rng(1).random(matrix.shape[0])
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    product = factors[rows] * factors[matrix.indices]  # before the value: symmetric to the bit
    return sp.csr_array((matrix.data * product, matrix.indices, matrix.indptr), matrix.shape)


A = cpufree.generate.poisson2d(30, 20)
NEW = scaled(A)
B = np.sin(np.arange(600.0))


def test_the_system_is_kept_and_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("again")

    with Solver(A, pes=3) as updated, Solver(NEW, pes=3) as new:
        monkeypatch.setattr("cpufree._core.System", again)
        updated.update(NEW)
        assert updated.solve(B).x.tobytes() == new.solve(B).x.tobytes()


def test_an_update_can_be_taken_back() -> None:
    with Solver(A, pes=2) as updated:
        before = updated.solve(B).x
        for matrix in (NEW, A):
            updated.update(matrix)
        assert updated.solve(B).x.tobytes() == before.tobytes()


@pytest.mark.parametrize("method", ["cg", "pipecg"])
@pytest.mark.parametrize("pc", ["none", "chebyshev"])
def test_every_method_has_the_bits_of_a_new_solver(method: str, pc: str) -> None:
    matrix = cpufree.generate.flange_hex(r_out=12, t=2, pipe=3)
    new = scaled(matrix)
    b = np.cos(np.arange(float(matrix.shape[0])))
    with Solver(matrix, pes=2, blocks=2) as updated, Solver(new, pes=2, blocks=2) as fresh:
        updated.update(new)
        results = [s.solve(b, method=method, pc=pc, maxiter=20) for s in (updated, fresh)]
        assert results[0].x.tobytes() == results[1].x.tobytes()
        assert results[0].counts == results[1].counts


class OtherSystem:
    """A System whose updates end as a test says."""

    def __init__(self, update: Any, usable: bool = True) -> None:
        self.update, self.usable = update, lambda: usable


def take_over(updated: Solver, system: OtherSystem) -> weakref.ref[OtherSystem]:
    """Give a Solver this System, which no other object holds then."""
    updated._matrix.layout = dataclasses.replace(updated._matrix.layout, system=system)  # type: ignore[arg-type]
    return weakref.ref(system)


def out_of_memory(*_: Any, **__: Any) -> None:
    raise OutOfMemoryError("GPU 0 has no memory left")


def test_the_old_system_is_gone_before_another_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    updated = Solver(A)
    there = take_over(updated, OtherSystem(lambda *_: False))
    make = load_core().System

    def look(*given: Any) -> Any:
        assert there() is None
        return make(*given)

    monkeypatch.setattr("cpufree._core.System", look)
    updated.update(NEW)
    assert updated.solve(B).converged


def test_a_solver_whose_other_system_cannot_be_made_is_closed_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    updated = Solver(A)
    take_over(updated, OtherSystem(lambda *_: False))
    monkeypatch.setattr("cpufree._core.System", out_of_memory)
    with pytest.raises(OutOfMemoryError, match=r"no memory left; the old values .* is closed"):
        updated.update(NEW)
    monkeypatch.undo()
    for call in (updated.solve, updated.update):
        with pytest.raises(InvalidInputError, match="this Solver is closed"):
            call(B)


def test_a_solver_whose_update_fails_in_the_middle_is_closed_and_says_so() -> None:
    updated = Solver(A)
    take_over(updated, OtherSystem(out_of_memory, usable=False))
    with pytest.raises(OutOfMemoryError, match="the old values are gone"):
        updated.update(NEW)
    with pytest.raises(InvalidInputError, match="this Solver is closed"):
        updated.solve(B)


def test_an_update_that_fails_before_it_writes_leaves_the_old_values() -> None:
    updated = Solver(A)
    layout_before, before, notes = updated._matrix.layout, updated.solve(B), updated.warnings
    take_over(updated, OtherSystem(out_of_memory))
    with pytest.raises(OutOfMemoryError, match=r"no memory left$"):
        updated.update(NEW)
    updated._matrix.layout = layout_before
    assert updated.solve(B).x.tobytes() == before.x.tobytes()
    assert updated.warnings == notes
