"""Programs that are methods, and programs that are copied and sent to other processes."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import pickle
import types
from typing import Any

import numpy as np
import pytest

import cpufree


class Solver:
    """With programs as methods."""

    scale = 2.0

    def __init__(self, dt: float) -> None:
        self.dt = dt
        self.weights = np.array([1.0, 2.0, 3.0])
        self.__order = 2

    @cpufree.program
    def step(self, u: Any, n: int) -> Any:
        for _ in range(n):
            u += self.dt * self.weights * self.scale
        return u

    @cpufree.program
    def twice(self, u: Any) -> None:
        self.step(u, 1)
        self.step(u, 1)

    @cpufree.program
    def private(self, u: Any) -> None:
        u *= self.__order

    @cpufree.program
    def writes_own(self, u: Any) -> None:
        w = self.weights
        w += u

    @staticmethod
    @cpufree.program
    def above(u: Any) -> None:
        u += 1.0

    @cpufree.program
    @staticmethod
    def below(u: Any) -> None:
        u += 2.0

    @classmethod
    @cpufree.program
    def of_class(cls, u: Any) -> None:
        u += cls.scale

    @cpufree.program
    @classmethod
    def of_class_below(cls, u: Any) -> None:
        u += 2 * cls.scale

    @property
    @cpufree.program
    def total(self) -> Any:
        return np.sum(self.weights)


class Slower(Solver):
    """With another scale."""

    scale = 0.5

    @cpufree.program
    def step(self, u: Any, n: int) -> Any:
        u -= n * self.scale
        return u


@cpufree.program
def grow(u: Any, by: float = 2.0) -> Any:
    u *= by
    return np.max(u)


def plain_function(u: Any) -> None:
    u += 1.0


beside = cpufree.program(plain_function)


def _local() -> Any:
    @cpufree.program
    def local(u: Any) -> None:
        u += 1.0

    return local


def test_a_method_is_called_with_its_object() -> None:
    solver, u = Solver(0.5), np.zeros(3)
    assert solver.step(u, 3) is u
    np.testing.assert_array_equal(u, 3 * solver.weights)
    assert solver.step.timings == Solver.step.timings != {}


def test_a_method_sees_what_its_object_has_now() -> None:
    solver, other = Solver(0.5), Solver(0.25)
    for one, dt in ((solver, 0.5), (other, 0.25), (solver, 4.0), (other, 0.25)):
        one.dt = dt
        found, plain = np.ones(3), np.ones(3)
        one.step.interpret(found, 2)
        Solver.step.function(one, plain, 2)
        np.testing.assert_array_equal(found, plain)


def test_a_method_can_be_called_by_its_class() -> None:
    u = np.zeros(3)
    Solver.step.interpret(Solver(1.0), u, 1)
    np.testing.assert_array_equal(u, [2.0, 4.0, 6.0])


def test_a_method_calls_that_of_the_object() -> None:
    for solver, expected in ((Solver(1.0), [4.0, 8.0, 12.0]), (Slower(1.0), [-1.0] * 3)):
        u = np.zeros(3)
        solver.twice.interpret(u)
        np.testing.assert_array_equal(u, expected)


def test_a_method_finds_private_attributes() -> None:
    u = np.ones(3)
    Slower(1.0).private.interpret(u)
    np.testing.assert_array_equal(u, [2.0] * 3)


def test_a_method_may_not_write_arrays_of_its_object() -> None:
    with pytest.raises(cpufree.errors.ProgramError, match=r"self\.weights is no argument"):
        Solver(1.0).writes_own.interpret(np.ones(3))


@pytest.mark.parametrize("owner", [Slower, Slower(1.0)])
def test_static_methods_and_class_methods_work_in_either_order(owner: Any) -> None:
    for name, value in (("above", 1.0), ("below", 2.0), ("of_class", 0.5), ("of_class_below", 1.0)):
        u = np.zeros(3)
        getattr(owner, name)(u)
        np.testing.assert_array_equal(u, [value] * 3, err_msg=name)


@cpufree.program
def calls_of_class(u: Any, owner: Any) -> None:
    owner.of_class(u)
    owner.method(u)


def test_a_program_may_call_class_methods() -> None:
    u = np.zeros(3)
    owner = Slower(1.0)
    owner.method = types.MethodType(vars(Solver)["of_class"].__func__, Solver)
    calls_of_class.interpret(u, owner)
    np.testing.assert_array_equal(u, [2.5] * 3)


def test_a_property_may_be_a_program() -> None:
    assert Solver(1.0).total == 6.0


def test_a_method_has_the_signature_without_its_object() -> None:
    assert list(inspect.signature(Solver(1.0).step).parameters) == ["u", "n"]
    assert list(inspect.signature(Solver.step).parameters) == ["self", "u", "n"]


def test_programs_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(grow)) is grow
    assert pickle.loads(pickle.dumps(Solver.step)) is Solver.step
    assert pickle.loads(pickle.dumps(beside)).function is plain_function


def test_a_method_is_pickled_with_its_object() -> None:
    u = np.zeros(3)
    pickle.loads(pickle.dumps(Solver(2.0).step)).interpret(u, 1)
    np.testing.assert_array_equal(u, [4.0, 8.0, 12.0])


def test_a_program_that_has_no_name_elsewhere_is_not_pickled() -> None:
    with pytest.raises(pickle.PicklingError, match="define it at the top of a module"):
        pickle.dumps(_local())


def test_copies_of_a_program_are_the_program_as_those_of_functions_are() -> None:
    local = _local()
    assert copy.copy(local) is local and copy.deepcopy({"f": local})["f"] is local


def test_a_copy_of_a_method_is_that_of_a_copy_of_its_object() -> None:
    solver = Solver(1.0)
    step = copy.deepcopy(solver.step)
    solver.dt = 9.0
    u = np.zeros(3)
    step.interpret(u, 1)
    np.testing.assert_array_equal(u, [2.0, 4.0, 6.0])


def test_programs_run_in_a_pool_of_processes() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(grow, [np.ones(3), 3 * np.ones(3)]) == [2.0, 6.0]
