"""What a statement reads is what the statements before it wrote, whatever the graph's order."""

from __future__ import annotations

from typing import Any

import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

from dace_check import grid, require_numpys  # noqa: E402

M, N = (dace.symbol(n, dace.int64) for n in "MN")


@dace.program
def ends(u: dace.float64[16], v: dace.float64[16]):
    u[1:-1] = 0.9 * v[1:-1]
    v[1:-1] = u[2:] - u[:-2]
    u[0] = -u[1]


@dace.program
def shifts(u: dace.float64[16], v: dace.float64[16]):
    v[3:11] = u[5:13] * 2
    u[1:15] = v[2:16] * 2
    v[15] = v[12] * 0.5


@dace.program
def copied_over(u: dace.float64[16], v: dace.float64[16]):
    v[:] = u * 2.0
    v[0] = v[1] + 1.0
    v[2:4] = u[2:4]


@dace.program
def copied_after_reading(u: dace.float64[16], v: dace.float64[16], w: dace.float64[16]):
    w[:] = u + v
    v[0:8] = u[4:12]
    v[0] = v[3] * 0.5
    u[0:8] = w[4:12]


@dace.program
def copied_within(u: dace.float64[16], v: dace.float64[16]):
    v[:] = u + 1.0
    u[0:4] = u[8:12]
    u[4:8] = v[0:4]
    v[0] = u[5] + v[9]


@dace.program
def rows(u: dace.float64[N, M], v: dace.float64[N, M]):
    v[1:-1, :] = u[2:, :] * 2
    u[0, :] = v[1, :]
    u[1:, 1:] = v[:-1, :-1] + 1.0
    v[0, :] = u[0, :] * 2.0
    v[2, 3] = -v[1, 2]
    u[1:3, 0] = v[2:4, 1]


@dace.program
def numbers(u: dace.float64[N], v: dace.float64[N]):
    s = u[0]
    u[:] = u - s
    u[0] = s * 2.0
    t = u[1] + s
    v[:] = u * t
    u[1] = t
    v[1] = u[1] * s
    s = v[0]
    u[2] = s


@dace.program
def borders(u: dace.float64[N, M], v: dace.float64[N, M]):
    for _t in range(4):
        u[1:-1, 1:-1] = 0.25 * (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2])
        u[0, :] = u[1, :]
        u[-1, :] = u[-2, :]
        u[:, 0] = u[:, 1]
        u[:, -1] = u[:, -2]
        v[1:-1, 1:-1] = u[2:, 1:-1] - u[:-2, 1:-1]
        v[0, :] = -u[0, :]
        u[0, :] = v[1, :]


CASES = {
    "ends": (ends, (grid(1, 16), grid(2, 16))),
    "shifts": (shifts, (grid(1, 16), grid(2, 16))),
    "copied over": (copied_over, (grid(1, 16), grid(2, 16))),
    "copied after reading": (copied_after_reading, (grid(1, 16), grid(2, 16), grid(3, 16))),
    "copied within": (copied_within, (grid(1, 16), grid(2, 16))),
    "rows": (rows, (grid(1, 9, 8), grid(2, 9, 8))),
    "numbers": (numbers, (grid(1, 16), grid(2, 16))),
    "borders": (borders, (grid(1, 9, 8), grid(2, 9, 8))),
}


@pytest.mark.parametrize("name", CASES)
def test_later_writes_come_after_earlier_reads(name: str) -> None:
    program, arguments = CASES[name]
    require_numpys(program, arguments)


def test_program_is_as_it_was_after_its_statements_have_been_ordered() -> None:
    import cpufree.dace

    program = cpufree.dace.compile(ends)
    before: Any = program.graph.to_json()
    program.run((grid(1, 16), grid(2, 16)), engine="cpu_threads")
    assert program.graph.to_json() == before


@dace.program
def masked(u: dace.float64[N], v: dace.float64[N]):
    u[1:] = (u + v)[:-1]
    u[v > 0.0] += 1.0
    return u + v


def test_points_under_a_mask_are_read_afterwards_as_they_are() -> None:
    require_numpys(masked, (grid(1, 12), grid(2, 12)), (1, 2))
