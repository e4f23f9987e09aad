"""Kernels whose values stay on chip: right on the CPU engine, as far as programs qualify."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import grid_on_cpu
import numpy as np
import nvrtc
import pytest
from grid_programs import CASES, as_tuple, assert_same, case, copies, plainly
from random_programs import random_arguments, random_program

import cpufree
from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import THREADS, choose_threads
from cpufree.compiler.grid import chosen_kernel, grid_groups, returned_fields, tile_kernel
from cpufree.compiler.passes.tiles import (
    NotOnChip,
    add_exchanges,
    check_exchanges,
    ghosts_of,
)
from cpufree.errors import EngineError, ProgramError

needs_nvrtc = pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
QUICK = ("jacobi_2d", "until_still")
REFUSED = ("batch_of_waves",)
EACH = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in CASES]


def _groups(name: str, size: int = 40) -> ir.Program:
    program, arguments = case(name, size)
    return grid_groups(program.lower(*arguments), ())


@pytest.mark.parametrize("name", EACH)
@pytest.mark.timeout(300)
def test_tiles_of_many_blocks_give_the_bits_of_plain_python(name: str) -> None:
    on_chip = 0
    for size, pes, blocks in ((13, 1, 6), (21, 2, 4), (37, 3, 6)):
        program, arguments = case(name, size)
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        try:
            found, kernel = grid_on_cpu.call_on_chip(program, ours, pes, blocks)
        except NotOnChip:
            continue
        assert kernel.text.on_chip is not None
        on_chip += kernel.text.on_chip.blocks > 1
        assert_same(name, plain, ours)
        assert_same(name, expected, as_tuple(found))
    assert on_chip > 0
