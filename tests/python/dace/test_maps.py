"""Maps: branches, numbers of each point, maps and loops inside, triangles, sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

from dace_check import grid, require_numpys  # noqa: E402

import cpufree.dace  # noqa: E402
from cpufree.errors import ProgramError  # noqa: E402

K, M, N = (dace.symbol(n, dace.int64) for n in "KMN")


@dace.program
def upwind(A: dace.float64[N], B: dace.float64[N], c: dace.float64):
    for i in dace.map[1 : N - 1]:
        d = 0.0
        if c > 0:  # noqa: SIM108
            d = A[i] - A[i - 1]
        else:
            d = A[i + 1] - A[i]
        B[i] = A[i] - c * d


@dace.program
def limited(A: dace.float64[N], B: dace.float64[N]):
    for i in dace.map[1 : N - 1]:
        a = A[i] - A[i - 1]
        b = A[i + 1] - A[i]
        s = 0.0
        if a * b > 0:
            if a * a < b * b:  # noqa: SIM108
                s = a
            else:
                s = b
        B[i] = s


@dace.program
def guarded(A: dace.float64[N], B: dace.float64[N]):
    for i in dace.map[0:N]:
        if i > 0:
            B[i] = A[i - 1]
        else:
            B[i] = 7.0


@dace.program
def guarded_corners(A: dace.float64[N, M], B: dace.float64[N, M]):
    for i, j in dace.map[0:N, 0:M]:
        if i > 0 and i < N - 1 and j > 0 and j < M - 1:
            B[i, j] = A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1]
        elif i == 0:
            B[i, j] = 1.0
        elif j == M - 1:
            B[i, j] = A[i, j - 1]


@dace.program
def guarded_numbers(A: dace.float64[N], B: dace.float64[N]):
    for i in dace.map[0:N]:
        left = A[i]
        if i > 0:
            left = A[i - 1]
        right = A[i]
        if i < N - 1:
            right = A[i + 1]
        B[i] = left + right


@dace.program
def guarded_write(A: dace.float64[N], B: dace.float64[N]):
    for i in dace.map[0:N]:
        if i + 1 < N:
            B[i + 1] = A[i]


@dace.program
def sums_of_rows(A: dace.float64[N, M], B: dace.float64[N]):
    for i in dace.map[0:N]:
        s = 0.0
        for j in range(M):
            s += A[i, j] * A[i, j]
        B[i] = s


@dace.program
def polynomials(A: dace.float64[N], B: dace.float64[N]):
    for i in dace.map[0:N]:
        s = 1.0
        for j in range(5):
            s = s * A[i] + j
        B[i] = s


@dace.program
def largest_of_rows(A: dace.float64[N, M], B: dace.float64[N]):
    for i in dace.map[0:N]:
        s = A[i, 0]
        for j in range(1, M):
            if A[i, j] > 0.5:
                s = max(s, A[i, j])
        B[i] = s


@dace.program
def triangles(A: dace.float64[N, N], B: dace.float64[N, N], C: dace.float64[N]):
    for i in dace.map[0:N]:
        for j in dace.map[0 : i + 1]:
            B[i, j] = A[i, j] * 2.0
        s = 0.0
        for k in range(i):
            s += A[i, k]
        C[i] = s


@dace.program
def sums_of_slices(A: dace.float64[N, M], B: dace.float64[N], x: dace.float64[M]):
    for i in dace.map[0:N]:
        B[i] = np.sum(A[i, :]) + A[i, :] @ x


@dace.program
def product(A: dace.float64[N, K], B: dace.float64[K, M], C: dace.float64[N, M]):
    for i, j in dace.map[0:N, 0:M]:
        C[i, j] = 0.0
        for k in range(K):
            C[i, j] += A[i, k] * B[k, j]


@dace.program
def product_of_one_map(A: dace.float64[N, K], B: dace.float64[K, M], C: dace.float64[N, M]):
    for i, j, k in dace.map[0:N, 0:M, 0:K]:
        C[i, j] += A[i, k] * B[k, j]


@dace.program
def own_array(A: dace.float64[N, M], B: dace.float64[N, M]):
    for i in dace.map[0:N]:
        tmp = np.zeros((M,))
        for j in dace.map[0:M]:
            tmp[j] = A[i, j] * 2
        for j in dace.map[0:M]:
            B[i, j] = tmp[M - 1 - j] + tmp[j]


@dace.program
def forward(A: dace.float64[N]):
    for i in dace.map[0 : N - 1]:
        A[i] = A[i + 1] + 1.0


@dace.program
def turned(A: dace.float64[N, M], B: dace.float64[N, M]):
    for i, j in dace.map[0:N, 0:M]:
        B[N - 1 - i, j] = A[i, M - 1 - j]


@dace.program
def stepping(A: dace.float64[N], B: dace.float64[N]):
    for i in dace.map[1:N:3]:
        B[i] = A[i - 1] * i
    for i in dace.map[0 : N // 2]:
        B[2 * i] = A[i] + i


@dace.program
def products_of_rows(A: dace.float64[N, M], B: dace.float64[N]):
    for i in dace.map[0:N]:
        p = 1.0
        for j in range(M):
            p *= A[i, j]
        B[i] = p


@dace.program
def nested_branches(A: dace.float64[N, M], B: dace.float64[N, M]):
    for i in dace.map[0:N]:
        for j in dace.map[0:M]:
            if A[i, j] > 0:
                t = A[i, j]
                if j > 0:
                    t = t + A[i, j - 1]
                B[i, j] = t
            elif A[i, j] < -1:
                B[i, j] = -1.0


@dace.program
def sum_of_some(A: dace.float64[N, M]):
    s = 0.0
    for i, j in dace.map[0:N, 0:M]:
        if A[i, j] > 0 and i != j:
            s += A[i, j]
    return s


@dace.program
def remainders(A: dace.int64[N], B: dace.float64[N], C: dace.float64[N]):
    for i in dace.map[0:N]:
        if i % 2 == 0:
            B[i] = A[i] % 3
        else:
            B[i] = A[i] // 4
    C[:] = B % 0.7


LINE, SQUARE, WIDE = (20,), (9, 9), (9, 8)
CASES: dict[str, tuple[Any, list[Any]]] = {
    "upwind": (upwind, [LINE, LINE, 0.5]),
    "upwind, the other way": (upwind, [LINE, LINE, -0.5]),
    "limited": (limited, [LINE, LINE]),
    "guarded": (guarded, [LINE, LINE]),
    "guarded corners": (guarded_corners, [WIDE, WIDE]),
    "guarded numbers": (guarded_numbers, [LINE, LINE]),
    "guarded write": (guarded_write, [LINE, LINE]),
    "sums of rows": (sums_of_rows, [(9, 80), (9,)]),
    "sums of rows of one point": (sums_of_rows, [(9, 1), (9,)]),
    "polynomials": (polynomials, [LINE, LINE]),
    "largest of rows": (largest_of_rows, [WIDE, (9,)]),
    "triangles": (triangles, [SQUARE, SQUARE, (9,)]),
    "sums of slices": (sums_of_slices, [WIDE, (9,), (8,)]),
    "product": (product, [(9, 5), (5, 8), WIDE]),
    "product of a vector": (product, [(9, 1), (1, 8), WIDE]),
    "product of one map": (product_of_one_map, [(9, 5), (5, 8), WIDE]),
    "own array": (own_array, [WIDE, WIDE]),
    "own array of one point": (own_array, [(9, 1), (9, 1)]),
    "forward": (forward, [LINE]),
    "turned": (turned, [WIDE, WIDE]),
    "stepping": (stepping, [LINE, LINE]),
    "products of rows": (products_of_rows, [WIDE, (9,)]),
    "nested branches": (nested_branches, [WIDE, WIDE]),
    "sum of some": (sum_of_some, [WIDE]),
    "remainders": (remainders, [np.arange(9) - 4, (9,), (9,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_maps_give_what_loops_give(name: str) -> None:
    program, shapes = CASES[name]
    arguments = tuple(grid(k, *s) if isinstance(s, tuple) else s for k, s in enumerate(shapes))
    require_numpys(program, arguments, rounded=True)


@dace.program
def carried_on(A: dace.float64[N], B: dace.float64[N]):
    t = 1.0
    for i in dace.map[0:N]:
        if A[i] > 0:
            t = A[i]
        B[i] = t


@dace.program
def left_by_a_map(A: dace.float64[N], B: dace.float64[N]):
    t = 1.0
    for i in dace.map[0:N]:
        t = A[i]
        B[i] = t * t
    A[0] = t


@dace.program
def one_after_the_other(A: dace.float64[N]):
    for i in dace.map[1:N]:
        A[i] = A[i - 1] + 1.0


@dace.program
def turned_in_place(A: dace.float64[N]):
    for i in dace.map[0:N]:
        A[i] = A[N - 1 - i]


@dace.program
def written_twice(A: dace.float64[N], B: dace.float64[N]):
    for i in dace.map[0 : N - 1]:
        B[i] = A[i]
        B[i + 1] = 2.0


@dace.program
def set_by_inner_points(A: dace.float64[N, M], B: dace.float64[N]):
    for i in dace.map[0:N]:
        t = 0.0
        for j in dace.map[0:M]:
            t = A[i, j]
        B[i] = t


@pytest.mark.parametrize(
    ("program", "shapes", "message", "line"),
    [
        (carried_on, [LINE, LINE], "t goes on from one point of the map to the next", "B[i] = t"),
        (left_by_a_map, [LINE, LINE], "t is set by all points of a map", "B[i] = t * t"),
        (one_after_the_other, [LINE], "another one has written before", "A[i] = A[i - 1] + 1.0"),
        (turned_in_place, [LINE], "another one has written before", "A[i] = A[N - 1 - i]"),
        (written_twice, [LINE, LINE], "several points of the map write", "B[i + 1] = 2.0"),
        (set_by_inner_points, [WIDE, (9,)], "t is set by all points of a map inside", ""),
    ],
)
def test_maps_whose_points_hang_on_their_order_are_refused(
    program: Any, shapes: Any, message: str, line: str
) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        cpufree.dace.compile(program)(*(grid(1, *s) for s in shapes))
    assert line in str(caught.value)
    assert caught.value.line > program.f.__code__.co_firstlineno
