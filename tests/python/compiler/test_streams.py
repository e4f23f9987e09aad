"""Kernels whose warps stream rows through registers: right on the CPU engine, and compiled."""

from __future__ import annotations

import grid_on_cpu
import nvrtc
import pytest
from grid_programs import as_tuple, assert_same, case, copies, plainly

from cpufree.compiler import ir
from cpufree.compiler.grid import grid_groups

needs_nvrtc = pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
QUICK = ("jacobi_2d", "fdtd_2d")
STREAMED = (
    "jacobi_2d",
    "fdtd_2d",
    "acoustic_2",
    "acoustic_4",
    "shallow_water",
    "gray_scott",
    "life",
)
EACH = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in STREAMED]


def _groups(name: str, size: int = 40) -> ir.Program:
    program, arguments = case(name, size)
    return grid_groups(program.lower(*arguments), ())


@pytest.mark.parametrize("name", EACH)
@pytest.mark.timeout(300)
def test_streams_give_the_bits_of_plain_python(name: str) -> None:
    for size, pes, turns, strip, chunks in (
        (23, 1, 1, 16, 3),
        (37, 2, 2, 16, 2),
        (40, 3, 1, 64, 1),
    ):
        program, arguments = case(name, size)
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        found, kernel = grid_on_cpu.call_streams(program, ours, pes, 2, turns, strip, chunks)
        assert kernel.text.on_chip.turns == turns and kernel.layout.slabs.pes == pes
        assert_same(name, plain, ours)
        assert_same(name, expected, as_tuple(found))
