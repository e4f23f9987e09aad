"""Programs as users of CuPy and JAX write them, with NumPy in place of both."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bench_script import load

programs = load("programs")
N, STEPS = 64, 4
CUPY = SimpleNamespace(fuse=lambda: lambda f: f, roll=np.roll, zeros=np.zeros)
CUPY.zeros_like = np.zeros_like


class At:
    """`a.at[place].set(value)` and `.add`, as arrays of JAX have them."""

    def __init__(self, array: Any, place: Any = None) -> None:
        self.array, self.place = array, place

    def __getitem__(self, place: Any) -> At:
        return At(self.array, place)

    def set(self, value: Any) -> Any:
        made = self.array.copy()
        made[self.place] = value
        return made

    def add(self, value: Any) -> Any:
        return self.set(self.array[self.place] + value)


class JaxArray(np.ndarray):
    """An array of NumPy that can be changed as those of JAX are."""

    @property
    def at(self) -> At:
        return At(self)


def of_jax(array: Any) -> Any:
    return np.asarray(array).view(JaxArray)


JNP = SimpleNamespace(
    asarray=of_jax,
    roll=np.roll,
    stack=lambda arrays: of_jax(np.stack(arrays)),
    zeros=lambda shape: of_jax(np.zeros(shape)),
    zeros_like=lambda a: of_jax(np.zeros_like(a)),
)


def fori_loop(first: int, last: int, body: Any, state: Any) -> Any:
    for t in range(first, last):
        state = body(t, state)
    return state


JAX = SimpleNamespace(
    numpy=JNP,
    jit=lambda f: f,
    block_until_ready=lambda x: x,
    lax=SimpleNamespace(fori_loop=fori_loop),
    config=SimpleNamespace(update=lambda name, value: None),
)


def given(name: str) -> tuple[Any, ...]:
    args = programs.arguments(name, programs.side(name, N), STEPS)
    return programs.grids.copies(args)


def expected(name: str) -> list[Any]:
    args = given(name)
    programs.plain(name)(*args)
    return programs.answer_of(name, args)


def assert_near(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        near = 1e-5 if other.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(one, other, rtol=near, atol=near)


CUPYS = programs.cupy_rivals(CUPY)


@pytest.mark.parametrize("name", CUPYS)
def test_program_for_cupy_has_the_answer_of_ours(name: str) -> None:
    args = given(name)
    CUPYS[name](*args)
    assert_near(programs.answer_of(name, args), expected(name))


@pytest.mark.parametrize("name", [n for n in programs.PROGRAMS if n != "cavity_flow"])
def test_program_for_jax_has_the_answer_of_ours(name: str) -> None:
    args = given(name)
    run = programs.jax_run(JAX, name, args)
    assert run is not None
    assert_near(programs.answer_of(name, run(STEPS)), expected(name))


def test_case_whose_contenders_differ_fails() -> None:
    answers = {"cpufree": lambda steps: [np.zeros(3)], "jax": lambda steps: [np.full(3, 1e-3)]}
    with pytest.raises(RuntimeError, match="jax has another answer"):
        programs.check(answers, dict.fromkeys(answers))
