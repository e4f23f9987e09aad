"""Loops that the run turns, and loops that are written out: break, variables, elements by turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

from dace_check import grid, require_numpys  # noqa: E402

import cpufree.dace  # noqa: E402
from cpufree.errors import ProgramError  # noqa: E402

M, N = (dace.symbol(n, dace.int64) for n in "MN")


@dace.program
def left_at_the_top(A: dace.float64[4]):
    for k in range(4):
        if A[k] > 0:
            break
        A[k] = 1.0
    A[0] = A[0] + 1.0


@dace.program
def left_in_a_loop(A: dace.float64[4], s: dace.int64):
    for _t in range(s):
        for k in range(4):
            if A[k] > 0:
                break
            A[k] = 1.0
        A[0] = A[0] + 1.0


@dace.program
def left_twice(A: dace.float64[6], s: dace.int64):
    n = 0
    for _t in range(s):
        n = 7
        for k in range(1, 5):
            A[k] = A[k] + A[k - 1]
            n = k
            if A[k + 1] > 0:
                n = 9
                break
            for j in range(3):
                A[j] = A[j] - 0.5
                if A[j] < -2:
                    break
                A[j] = A[j] * 2
        A[0] = A[0] + n
        if A[0] > 20:
            break
    return n


@dace.program
def gone_on_with(A: dace.float64[6], s: dace.int64):
    for _t in range(s):
        for k in range(1, 5):
            if A[k + 1] > 0:
                continue
            A[k] = A[k] + A[k - 1]
        A[0] = A[0] + 0.1


@dace.program
def set_before(A: dace.float64[N], n: dace.int64):
    i = 7
    for i in range(n):
        A[:] = A + i
    A[:] = A * i


FALLING = np.array([-1.0, -1.0, 3.0, 4.0])
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "break": (left_at_the_top, (FALLING,)),
    "no break": (left_at_the_top, (-np.abs(FALLING),)),
    "break in a loop": (left_in_a_loop, (FALLING, 3)),
    "breaks of two loops": (left_twice, (np.array([-1.0, -1, -3, -4, 0.1, 0.2]), 5)),
    "breaks of three loops": (left_twice, (grid(1, 6) - 1, 7)),
    "continue": (gone_on_with, (grid(1, 6) - 1, 7)),
    "variable that was a number": (set_before, (grid(1, 10), 4)),
    "variable of a loop without turns": (set_before, (grid(1, 10), 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_loops_turn_as_pythons_do(name: str) -> None:
    program, arguments = CASES[name]
    require_numpys(program, arguments)


@dace.program
def total(A: dace.float64[N]):
    s = 0.0
    for t in range(N):
        s += A[t]
    return s


@dace.program
def source(u: dace.float64[N], tab: dace.float64[N]):
    for t in range(N):
        u[:] = u * 0.5 + tab[t]


@dace.program
def beyond(u: dace.float64[N], tab: dace.float64[N], n: dace.int64):
    for t in range(n):
        u[:] = u + tab[t]


@pytest.mark.parametrize(
    ("program", "arguments"),
    [(total, (np.ones(1000),)), (source, (grid(1, 500), grid(2, 500)))],
)
def test_elements_by_turn_are_those_of_the_whole_array(program: Any, arguments: Any) -> None:
    require_numpys(program, arguments)


@pytest.mark.parametrize("n", [40_000, 150_000])
def test_elements_by_turn_with_the_options_of_a_call(n: int) -> None:
    assert cpufree.dace.compile(total)(np.ones(n)) == n


def test_an_element_beyond_the_end_is_a_fault_of_its_line() -> None:
    u, tab = grid(1, 500), grid(2, 500)
    before = u.copy()
    with pytest.raises(ProgramError, match=r"beyond, line .* out of bounds") as caught:
        cpufree.dace.compile(beyond).run((u, tab, 501), engine="cpu_threads", pes=2)
    first = beyond.f.__code__.co_firstlineno
    assert caught.value.line == first + 3
    np.testing.assert_array_equal(u, before)


@dace.program
def all_but_one(A: dace.float64[N]):
    for t in range(N - 1, -1, -1):
        if t != 1:
            A[:] = A + 1.0
        else:
            A[:] = A * 2.0


@dace.program
def another_name(A: dace.float64[N], n: dace.int64):
    for t in range(n):
        if t > 2:
            A[:] = A * 2.0
        elif n != t + 2:
            A[:] = A + 1.0


@pytest.mark.parametrize(
    ("program", "arguments"), [(all_but_one, (grid(1, 7),)), (another_name, (grid(1, 7), 4))]
)
def test_branches_on_unequal_names_stay(program: Any, arguments: Any) -> None:
    require_numpys(program, arguments)


@dace.program
def recorded(A: dace.float64[N], out: dace.float64[M], steps: dace.int64):
    for t in range(steps):
        A[1:-1] = 0.5 * A[1:-1] + 0.25 * (A[2:] + A[:-2])
        out[t] = A[N // 2]


@dace.program
def prefix_sums(A: dace.float64[N], B: dace.float64[N]):
    B[0] = A[0]
    for i in range(1, N):
        B[i] = B[i - 1] + A[i]


@dace.program
def swept(A: dace.float64[N, M]):
    for i in range(1, N):
        A[i, 1:] = A[i - 1, :-1] * 0.5 + A[i, 1:]
    for j in range(M - 2, -1, -1):
        A[:, j] = A[:, j + 1] - A[:, j]


@dace.program
def counted(A: dace.float64[N], B: dace.float64[N, M], n: dace.int64):
    k = 0
    while A[k] > 0.1 and k < N - 1:
        B[k, n] = A[k + 1] * 2.0
        k = k + 1
        B[k, 1:] = B[k - 1, :-1]
    return k


@dace.program
def cut(A: dace.float64[N, M], B: dace.float64[M], k: dace.int64, n: dace.int64):
    A[k] = 5.0
    B[:] = np.sum(A[:n], axis=0)
    for t in range(k, N, n):
        A[t, k] = t


@dace.program
def written_on(A: dace.float64[N], n: dace.int64):
    k = 0
    while A[0] < n:
        A[0] = A[0] + 1.0
        k = k + 1
        A[k] = 2.0


MOVING: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "recorded": (recorded, (grid(1, 30), grid(2, 400), 390)),
    "prefix sums": (prefix_sums, (grid(1, 300), grid(2, 300))),
    "swept": (swept, (grid(1, 99, 80),)),
    "counted": (counted, (np.abs(grid(1, 99)) + 0.11, grid(2, 99, 8), 3)),
    "counted, not far": (counted, (grid(3, 99), grid(2, 99, 8), 0)),
    "cut": (cut, (grid(1, 30, 9), grid(2, 9), 3, 7)),
    "cut elsewhere": (cut, (grid(1, 30, 9), grid(2, 9), 0, 30)),
}


@pytest.mark.parametrize("name", MOVING)
def test_indices_go_by_numbers_of_the_run(name: str) -> None:
    program, arguments = MOVING[name]
    require_numpys(program, arguments, (1,), rounded=True)


def test_a_write_beyond_the_end_is_a_fault_of_its_line() -> None:
    A, out = grid(1, 30), grid(2, 100)
    before = A.copy(), out.copy()
    with pytest.raises(ProgramError, match="out has 100 points along axis 0, and is written"):
        cpufree.dace.compile(recorded).run((A, out, 101), engine="cpu_threads")
    with pytest.raises(ProgramError, match="out of bounds"):
        cpufree.dace.compile(written_on).run((np.ones(30), 40))
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(out, before[1])
