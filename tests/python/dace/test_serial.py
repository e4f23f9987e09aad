"""Programs of DaCe without messages run on PEs that divide their rows, with NumPy's bits."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import cpufree.dace  # noqa: E402
from cpufree.errors import ProgramError  # noqa: E402

K, M, N = (dace.symbol(n, dace.int64) for n in "KMN")


@dace.program
def heat(TSTEPS: dace.int64, alpha: dace.float64, A: dace.float64[N, M], B: dace.float64[N, M]):
    for t in range(TSTEPS):
        B[1:-1, 1:-1] = A[1:-1, 1:-1] + alpha * (A[2:, 1:-1] - 2.0 * A[1:-1, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = B[1:-1, 1:-1] * 0.5
        A[0, :] = A[1, :]
        if t % 2 == 0:
            B[:] = np.sqrt(np.abs(A))


@dace.program
def halves(A: dace.float64[N, M], eps: dace.float64):
    s = 1.0
    n = 0
    while s > eps and n < 100:
        A[:] = 0.5 * A
        s = np.max(np.abs(A))
        n = n + 1
    return s


@dace.program
def choices(A: dace.float64[N, M], B: dace.float32[N, M], C: dace.float64[M]):
    m = np.max(A)
    B[:] = np.where(m - 1.0 < A, np.minimum(A, 2.0), B * 2) ** 2
    A[:] = A * A + C
    return np.max(A), np.zeros((N, M))


@dace.program
def fdtd_2d(
    TMAX: dace.int64,
    ex: dace.float64[N, M],
    ey: dace.float64[N, M],
    hz: dace.float64[N, M],
    fict: dace.float64[K],
):
    for t in range(TMAX):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@dace.program
def around(A: dace.float64[N, M], steps: dace.int64):
    for _t in range(steps):
        A[1:-1, 1:-1] = 0.25 * (A[2:, 1:-1] + A[:-2, 1:-1] + A[1:-1, 2:] + A[1:-1, :-2])
        A[0, :] = A[N - 2, :]
        A[N - 1, :] = A[1, :]


@dace.program
def points(A: dace.float64[N, M], B: dace.float64[N, M]):
    for i, j in dace.map[1 : N - 1, 0:M:2]:
        B[i, j] = A[i - 1, j] - A[i + 1, j]
    for i, j in dace.map[0:N, 0:M]:
        if A[i, j] > 0:
            B[i, j] = 2 * i + A[i, j]
        else:
            B[i, j] = B[i, j] - j


@dace.program
def swapped(A: dace.float64[N, M], B: dace.float64[N, M]):
    for i, j in dace.map[0:N, 0:M]:
        old = A[i, j]
        A[i, j] = B[i, j] + 1.0
        B[i, j] = 2.0 * old


@dace.program
def turned_over(A: dace.float64[N, N], B: dace.float64[N, N]):
    B[:] = np.transpose(A) + A
    A[:] = np.transpose(B)


def plain_points(A: Any, B: Any) -> None:
    B[1:-1, ::2] = A[:-2, ::2] - A[2:, ::2]
    i, j = np.arange(A.shape[0])[:, None], np.arange(A.shape[1])
    B[:] = np.where(A > 0, 2 * i + A, B - j)


def plain_swapped(A: Any, B: Any) -> None:
    old = A.copy()
    A[:], B[:] = B + 1.0, 2.0 * old


def plain_choices(A: Any, B: Any, C: Any) -> Any:
    m = np.max(A)
    B[:] = np.where(m - 1.0 < A, np.minimum(A, 2.0), B * np.float32(2)) ** 2
    A[:] = A * A + C
    return np.max(A), np.zeros(A.shape)


def plain_around(A: Any, steps: int) -> None:
    for _ in range(steps):
        A[1:-1, 1:-1] = 0.25 * (A[2:, 1:-1] + A[:-2, 1:-1] + A[1:-1, 2:] + A[1:-1, :-2])
        A[0, :] = A[-2, :]
        A[-1, :] = A[1, :]


def grid(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape or (33, 20))


CASES: dict[str, tuple[Any, Callable[..., Any], tuple[Any, ...]]] = {
    "heat": (heat, heat.f, (7, 0.1, grid(1), grid(2))),
    "halves": (halves, halves.f, (grid(1), 1e-3)),
    "choices": (choices, plain_choices, (grid(1), grid(2).astype(np.float32), grid(3, 20))),
    "fdtd_2d": (fdtd_2d, fdtd_2d.f, (90, grid(1), grid(2), grid(3), grid(4, 90))),
    "around": (around, plain_around, (grid(1), 5)),
    "points": (points, plain_points, (grid(1), grid(2))),
    "swapped": (swapped, plain_swapped, (grid(1), grid(2))),
}
PROGRAMS = {name: cpufree.dace.compile(case[0]) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_program_gives_the_bits_of_plain_numpy(name: str) -> None:
    program = PROGRAMS[name]
    _, plain, arguments = CASES[name]
    wanted = copy.deepcopy(arguments)
    expected = plain(*wanted)
    for pes in (1, 2, 4):
        ours = copy.deepcopy(arguments)
        found = program.run(ours, engine="cpu_threads", pes=pes)
        assert program.pes == pes
        for mine, other in zip(ours, wanted, strict=True):
            np.testing.assert_array_equal(mine, other)
        if expected is not None:
            pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [
                (found, expected)
            ]  # fmt: skip
            for mine, other in pairs:
                np.testing.assert_array_equal(mine, other)


@dace.program
def handed_on(A: dace.float64[N], B: dace.float64[N], C: dace.float64[N], D: dace.float64[N]):
    t = A * 2.0
    C[:] = t + B
    D[:] = t[:]
    u = t + C
    C[:] = u * 2.0
    D[:] = D + u


def test_values_of_fused_maps_go_out_for_those_who_need_them_later() -> None:
    given = [np.random.default_rng(k).standard_normal(40) for k in range(4)]
    wanted = copy.deepcopy(given)
    program = cpufree.dace.compile(handed_on)
    program.run(tuple(given), engine="cpu_threads", pes=2)
    assert "__map_fusion" in program._graph_for({}).tree.as_string()
    handed_on.f(*wanted)
    for ours, theirs in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@dace.program
def parts_joined(A: dace.float64[N, M], x: dace.float64[M], y: dace.float64[M], z: dace.float64[N]):
    y[0] = A[2, :] @ x
    y[1:] = x[1:] / np.sqrt(x @ x)
    z[1:] = A[1:, 2:5] @ x[2:5]
    z[2:4] = np.sum(A[2:4, :], axis=1) + np.max(A[:, 3])
    A[:] = np.reshape(z, (N, 1)) @ np.reshape(y, (1, M))


def test_products_and_sums_of_parts() -> None:
    g = np.random.default_rng(5)
    given = [g.standard_normal(shape) for shape in ((40, 33), 33, 33, 40)]
    wanted = copy.deepcopy(given)
    cpufree.dace.compile(parts_joined).run(tuple(given), engine="cpu_threads")
    A, x, y, z = wanted
    y[0], y[1:], z[1:] = A[2] @ x, x[1:] / np.sqrt(x @ x), A[1:, 2:5] @ x[2:5]
    z[2:4] = np.sum(A[2:4], axis=1) + np.max(A[:, 3])
    A[:] = np.outer(z, y)
    for ours, theirs in zip(given, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@dace.program
def stacks(A: dace.float64[3, 3, 5, 4], B: dace.float64[3, 4, 6], C: dace.float64[3, 3, 5, 6]):
    C[:] = A @ B


@dace.program
def one_for_all(A: dace.float64[1, 5, 4], B: dace.float64[3, 4, 6], C: dace.float64[3, 5, 6]):
    C[:] = A @ B


def test_stacks_of_matrices_are_aligned_at_the_last_one() -> None:
    g = np.random.default_rng(6)
    A, B, C = g.random((3, 3, 5, 4)), g.random((3, 4, 6)), np.zeros((3, 3, 5, 6))
    cpufree.dace.compile(stacks).run((A, B, C), engine="cpu_threads", pes=3)
    np.testing.assert_allclose(C, A @ B, rtol=1e-13)


def test_stacks_of_which_one_is_repeated_are_refused() -> None:
    arrays = [np.zeros(shape) for shape in ((1, 5, 4), (3, 4, 6), (3, 5, 6))]
    with pytest.raises(ProgramError, match="a product of stacks, one of which is repeated"):
        cpufree.dace.compile(one_for_all).lower(*arrays)


def test_the_decorator_takes_a_plain_def() -> None:
    program = cpufree.dace.persistent(heat)
    assert program.name == "heat" and program.graph.name.endswith("heat")
    with pytest.raises(ValueError, match="use one of"):
        cpufree.dace.compile(dace.program(_unsigned)).lower(np.zeros((4, 4), np.uint8))


def _unsigned(A: dace.uint8[N, M]):
    A[:] = A + 1


def test_rows_that_cannot_be_divided_run_on_one_pe() -> None:
    A, B = grid(1, 20, 20), grid(2, 20, 20)
    wanted = A.T + A
    program = cpufree.dace.compile(turned_over)
    program(A, B)
    assert program.pes == 1
    np.testing.assert_array_equal(B, wanted)
    np.testing.assert_array_equal(A, wanted.T)
    with pytest.raises(ProgramError, match="transposed array"):
        program.run((A, B), pes=2)
    with pytest.raises(ProgramError, match="on one PE, not on 2"):
        program.run((A, B), gpus=[0, 1])


def test_a_graph_is_taken() -> None:
    A, B = grid(1), grid(2)
    wanted = copy.deepcopy((A, B))
    cpufree.dace.compile(heat.to_sdfg(simplify=True)).run(
        (), {"TSTEPS": 3, "alpha": 0.1, "A": A, "B": B}, engine="cpu_threads"
    )
    heat.f(3, 0.1, *wanted)
    np.testing.assert_array_equal(A, wanted[0])
    np.testing.assert_array_equal(B, wanted[1])


def test_the_interpreter_gives_the_same() -> None:
    A, B = grid(1), grid(2)
    wanted = copy.deepcopy((A, B))
    PROGRAMS["heat"].interpret(4, 0.1, A, B)
    heat.f(4, 0.1, *wanted)
    np.testing.assert_array_equal(A, wanted[0])


def test_arrays_that_communication_touches_become_symmetric() -> None:
    from dace_programs import fetches, jacobi_2d

    from cpufree.dace.graph.frontend import graph_of
    from cpufree.dace.messages.storage import SymmetricArrays, symmetric_arrays

    graph = graph_of(jacobi_2d, {})
    assert symmetric_arrays(graph) == {"lA", "lB"}
    assert SymmetricArrays().apply_pass(graph, {}) == {"lA", "lB"}
    assert graph.arrays["lA"].storage == dace.StorageType.Symmetric
    again = dace.SDFG.from_json(graph.to_json())
    assert again.arrays["lB"].storage == dace.StorageType.Symmetric
    graph = graph_of(fetches, {})
    assert symmetric_arrays(graph) == {"src", "dst", "one", "flags"}
    assert SymmetricArrays().apply_pass(graph_of(heat, {}), {}) is None
    # Marked graphs compile as others do.
    A, B = np.ones(8), np.ones(8)
    program = cpufree.dace.compile(graph)
    given = [{"src": A, "dst": B, "one": np.zeros(4), "TSTEPS": 3, "rank": 0, "size": 1, "lN": 8}]
    program.run_ranks(lambda r, n: given[r], 1, engine="cpu_threads")
    np.testing.assert_array_equal(B, np.full(8, 5.0))
