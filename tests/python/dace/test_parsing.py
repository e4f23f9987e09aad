"""What DaCe's front end gets wrong is mended, what it does not take is refused with the line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import cpufree.dace  # noqa: E402
from cpufree.errors import ProgramError  # noqa: E402

M, N = (dace.symbol(n, dace.int64) for n in "MN")


@dace.program
def every_second(A: dace.float64[N, M], B: dace.float64[N, M], c: dace.float64[M]):
    A[::2, :-3] += A[::2, :-3] / 4.0
    A[1::3, 1:] *= B[1::3, :-1]
    B[:, ::2] -= 2.0
    c[1::2] += c[:-1:2]


@pytest.mark.parametrize("shape", [(8, 8), (9, 10), (12, 6)])
@pytest.mark.parametrize("pes", [1, 2])
def test_parts_with_a_step_are_updated_in_place(shape: tuple[int, int], pes: int) -> None:
    g = np.random.default_rng(3)
    given = [g.standard_normal(s) for s in (shape, shape, shape[1])]
    wanted = [a.copy() for a in given]
    every_second.f(*wanted)
    program = cpufree.dace.compile(every_second)
    program.run(tuple(given), engine="cpu_threads", pes=pes)
    for mine, plain in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(mine, plain)


@dace.program
def backwards(u: dace.float64[N], w: dace.float64[N]):
    w[:] = 2.0 * u
    w[:] = u[::-1]


@dace.program
def broken(u: dace.float64[N]):
    u[:] = 2.0 * u
    u[::-1] = 0.5 * u[:]


@dace.program
def cut_sum(u: dace.float64[N], k: dace.int64[N]):
    total = 0
    for i in range(N):
        total += u[i]
    u[0] = total


@dace.program
def cut_choice(u: dace.float64[N], k: dace.int64[N]):
    a = np.sum(k)
    if u[1] > 0.5:
        a = u[1]
    u[0] = a


@dace.program
def cut_half(u: dace.float64[N], k: dace.int64[N]):
    a = 7
    for _t in range(3):
        a /= 2
    u[0] = a


@dace.program
def cut_in_a_map(u: dace.float64[N], k: dace.int64[N]):
    for i in dace.map[0:N]:
        a = 0
        for j in range(3):
            a += 0.5 * u[j]
        u[i] = a


@dace.program
def cut_array(u: dace.float64[N], k: dace.int64[N]):
    k[1:] += u[1:]


@dace.program
def whole_numbers(u: dace.float64[N], k: dace.int64[N]):
    a = 0
    for i in range(N):
        a += k[i] // 2
    k[0] = a
    k[1] = u[2]
    k[2:4] = u[2:4]
    b = a / 4
    u[0] = b


def test_whole_numbers_and_elements_are_as_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [np.linspace(0, 3, 7), np.arange(7) - 3]
    wanted = [a.copy() for a in given]
    with monkeypatch.context() as plain:
        plain.setitem(whole_numbers.f.__globals__, "N", 7)
        whole_numbers.f(*wanted)
    cpufree.dace.compile(whole_numbers).run(tuple(given), engine="cpu_threads")
    for mine, other in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(mine, other)


@dace.program
def unset(u: dace.float64[N]):
    u[0] = never_set  # noqa: F821


@dace.program
def exchanged(u: dace.float64[N]):
    a = u[1]
    b = u[2]
    a, b = b, a
    u[0] = a - b


@dace.program
def exchanged_parts(u: dace.float64[N], v: dace.float64[N]):
    v[:], u[:] = u, v


@dace.program
def fibonacci(u: dace.float64[N], v: dace.float64[N], n: dace.int64):
    a = u[1] + 0.0
    b = v[1] + 1.0
    for _t in range(n):
        a, b = b, a + b
    u[0], v[0] = a, b


@dace.program
def some_points(u: dace.float64[N], v: dace.float64[N]):
    for i in dace.map[0:N]:
        if i < N - 1:
            v[i] = u[i + 1] + u[i]
    return u + v


def test_what_a_branch_in_a_map_leaves_out_is_there_afterwards() -> None:
    u, v = np.arange(6.0) + 10, np.arange(6.0)
    wanted = np.append(u[1:] + u[:-1], v[-1])
    found = cpufree.dace.compile(some_points).run((u, v), engine="cpu_threads", pes=2)
    np.testing.assert_array_equal(v, wanted)
    np.testing.assert_array_equal(found, u + wanted)


@dace.program
def added(u: dace.float64[N], v: dace.float64[N]):
    for i in dace.map[0:N]:
        v[i] += max(i, 2.0 * u[i])
    return u + v


def test_what_a_map_adds_to_is_read_whole_afterwards() -> None:
    u, v = np.arange(6.0) - 2, np.arange(6.0) + 10
    wanted = v + np.maximum(np.arange(6), 2.0 * u)
    found = cpufree.dace.compile(added).run((u, v), engine="cpu_threads", pes=2)
    np.testing.assert_array_equal(v, wanted)
    np.testing.assert_array_equal(found, u + wanted)


@dace.program
def downwards(u: dace.float64[N], v: dace.float64[N], n: dace.int64):
    for t in range(N - 1, -1, -1):
        if t == 2:
            v[0] = 1.0
        else:
            u[t] = 1.25
    for t in range(n, -1, -1):
        if t < 2:
            v[t + 1] += 2.0
    for t in range(5, -1, -1):
        if t < 2:
            v[4] += 1.0
        else:
            v[5] += t


def test_branches_in_loops_that_count_down_are_taken_when_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, wanted = ([np.zeros(7), np.zeros(7)] for _ in range(2))
    with monkeypatch.context() as plain:
        plain.setitem(downwards.f.__globals__, "N", 7)
        downwards.f(*wanted, 3)
    cpufree.dace.compile(downwards).run((*given, 3), engine="cpu_threads")
    for mine, other in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(mine, other)


@dace.program
def nothing(u: dace.float64[N], v: dace.float64[N]):
    v[0] = np.sum(u[:0])
    v[1] = np.sum(u[2:0])
    v[:0] = 5.0
    v[2] = np.sum(u[1:1]) + np.sum(u[:1])


def test_slices_that_end_at_0_have_no_points() -> None:
    u, v = np.arange(6.0) + 1, np.full(6, 9.0)
    cpufree.dace.compile(nothing).run((u, v), engine="cpu_threads")
    assert v.tolist() == [0.0, 0.0, 1.0, 9.0, 9.0, 9.0]


@dace.program
def masked(u: dace.float64[N], v: dace.float64[N], c: dace.float64):
    u[u > c] = 7.0
    v[u < c] += 1.0
    return u + v


@pytest.mark.parametrize("pes", [1, 3])
def test_masks_leave_the_other_points_as_they_are(pes: int) -> None:
    given, wanted = ([np.arange(9.0), np.arange(9.0) - 4] for _ in range(2))
    expected = masked.f(*wanted, 4.0)
    found = cpufree.dace.compile(masked).run((*given, 4.0), engine="cpu_threads", pes=pes)
    for mine, plain in zip((*given, found), (*wanted, expected), strict=True):
        np.testing.assert_array_equal(mine, plain)


@dace.program
def second_names(u: dace.float64[N], v: dace.float64[N], n: dace.int64):
    a = n
    b = a
    a = a + 1
    v[0] = b
    d = u[1] * 2.0
    for t in range(3):
        e = d
        d = u[t] + e
        v[t + 1] = e - d


def test_a_second_name_of_a_number_keeps_its_value() -> None:
    given, wanted = ([np.arange(6.0) + 1, np.arange(6.0)] for _ in range(2))
    second_names.f(*wanted, 5)
    cpufree.dace.compile(second_names).run((*given, 5), engine="cpu_threads")
    np.testing.assert_array_equal(given[1], wanted[1])


@dace.program
def counted(u: dace.float64[N], b: dace.bool[N]):
    u[0] = 1.0
    u[1] = np.sum(b)


def test_a_sum_of_truth_values_is_refused_with_the_line() -> None:
    with pytest.raises(ProgramError, match="a sum of truth values") as caught:
        cpufree.dace.compile(counted).run((np.zeros(5), np.ones(5, bool)))
    assert "u[1] = np.sum(b)" in str(caught.value)


@dace.program
def counted_numbers(u: dace.float64[N], b: dace.bool[N]):
    q = np.zeros((N,))
    q[:] = b
    u[1] = np.sum(q)


def test_truth_values_are_counted_as_numbers() -> None:
    u = np.zeros(5)
    cpufree.dace.compile(counted_numbers).run((u, np.arange(5) > 1), engine="cpu_threads")
    assert u[1] == 3.0


def test_values_that_are_computed_are_so_before_anything_is_set() -> None:
    given, wanted = ([np.arange(6.0), np.arange(6.0) + 10] for _ in range(2))
    fibonacci.f(*wanted, 5)
    cpufree.dace.compile(fibonacci).run((*given, 5), engine="cpu_threads")
    for mine, plain in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(mine, plain)


@pytest.mark.parametrize(
    ("program", "problem", "line"),
    [
        (backwards, "Negative strides are not supported", "w[:] = u[::-1]"),
        (broken, "could not broadcast", "u[::-1] = 0.5 * u[:]"),
        (exchanged, "DaCe sets a before the same statement reads it", "a, b = b, a"),
        (exchanged_parts, "DaCe sets v before the same statement reads it", "v[:], u[:] = u, v"),
        (cut_sum, "total is int64 from before, and is set to float64", "total += u[i]"),
        (cut_choice, "a is int64 from before, and is set to float64", "a = u[1]"),
        (cut_half, "a is int64 from before, and is set to float64", "a /= 2"),
        (cut_in_a_map, "a is int64 from before, and is set to float64", "a += 0.5 * u[j]"),
        (cut_array, r"k\[1:\] is int64 from before, and is set", "k[1:] += u[1:]"),
        (unset, "Use of undefined variable", "u[0] = never_set"),
    ],
)
def test_what_dace_does_not_take_is_refused_with_the_line(
    program: Any, problem: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = {"k": np.int64}
    arrays = [np.zeros(8, kinds.get(n, np.float64)) for n in program.f.__annotations__]
    with pytest.raises(ProgramError, match=problem) as caught:
        cpufree.dace.compile(program).run(tuple(arrays))
    assert caught.value.file == __file__ and caught.value.line > 0
    assert str(caught.value).splitlines()[1].strip().startswith(line)
    assert capsys.readouterr().out == ""


def broadcast_by_columns(A: dace.float64[N, N], b: dace.float64[N, N]):
    b[:] = np.maximum(A[:, 2:3], A[2, :]) + A[:, -1:] * A[..., 1:2]


def spread_over_columns(A: dace.float64[N, N], b: dace.float64[N, N]):
    b[:, :] = A[:, 2:3]


def chosen_by_column(A: dace.float64[N, N], b: dace.float64[N, N]):
    b[:] = np.where(A[:, 2:3] > 0.0, b, -A[:, 1:2])


def under_a_name(A: dace.float64[N, N], b: dace.float64[N, N]):
    c = A[:, :1] * A[:1, :]
    b[:] = c + c[0, :]
    d = A[:, 3:4]
    b[:, 1:2] += d


def summed_along_it(A: dace.float64[N, N], b: dace.float64[N, N]):
    b[:] = np.sum(A[2:3, :], axis=0) + np.transpose(A[:, 1:2])


def column_by_column(A: dace.float64[N, N], b: dace.float64[N, N]):
    for k in range(1, 5):
        b[:, k : k + 1] = b[:, k - 1 : k] + A[:, k : k + 1] * A[k, 0]


@pytest.mark.parametrize("pes", [1, 3])
@pytest.mark.parametrize(
    "program",
    [
        broadcast_by_columns,
        spread_over_columns,
        chosen_by_column,
        under_a_name,
        summed_along_it,
        column_by_column,
    ],
    ids=lambda program: program.__name__,
)
def test_slices_of_one_point_keep_their_axis(program: Any, pes: int) -> None:
    g = np.random.default_rng(5)
    A, b = (g.standard_normal((7, 7)) for _ in range(2))
    wanted = b.copy()
    program(A, wanted)
    cpufree.dace.compile(dace.program(program)).run((A, b), engine="cpu_threads", pes=pes)
    np.testing.assert_array_equal(b, wanted)
