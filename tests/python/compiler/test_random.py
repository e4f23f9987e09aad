"""Random programs give the bits of plain Python: before and after passes, and compiled.

RANDOM_PROGRAMS says how many are interpreted, and a hundredth of that how many are compiled.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from grid_programs import as_tuple, assert_same, copies
from random_programs import random_arguments, random_program

from cpufree.compiler.interpret import interpret
from cpufree.compiler.launch import passes
from cpufree.compiler.lowering import lower
from cpufree.errors import ProgramError

COUNT = int(os.environ.get("RANDOM_PROGRAMS", "150"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs_are_interpreted_as_python_runs_them(tmp_path: Path) -> None:
    done = refused = 0
    for seed in range(COUNT):
        program, arguments = random_program(seed, tmp_path), random_arguments(seed)
        plain = copies(arguments)
        expected = as_tuple(program.function(*plain))
        for with_passes in (False, True):
            ours = copies(arguments)
            bound = program.signature.bind(*ours).arguments
            try:
                lowered = lower(program.source, bound)
            except ProgramError:  # such as a number of two kinds with float32
                refused += 1
                break
            made = passes(lowered.program) if with_passes else lowered.program
            arrays = {k: v for k, v in bound.items() if isinstance(v, np.ndarray)}
            with np.errstate(all="ignore"):
                interpret(made, arrays, lowered)
            assert_same(f"seed {seed}, passes {with_passes}", plain, ours)
        else:
            done += 1
            assert expected
    assert done > 0.8 * COUNT, (done, refused)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.timeout(600)
def test_random_programs_are_compiled_as_python_runs_them(tmp_path: Path) -> None:
    seed, left = 1000, max(2, COUNT // 100)
    while left:
        seed += 1
        program, arguments = random_program(seed, tmp_path), random_arguments(seed)
        plain = copies(arguments)
        expected = as_tuple(program.function(*plain))
        try:
            program.lower(*arguments)
        except ProgramError:
            continue
        left -= 1
        for pes in (1, 2, 4):
            ours = copies(arguments)
            found = as_tuple(program.run(ours, pes=pes, wait_limit=30))
            assert_same(f"seed {seed}, {pes} PEs", plain, ours)
            assert_same(f"seed {seed}, {pes} PEs, result", expected, found)
