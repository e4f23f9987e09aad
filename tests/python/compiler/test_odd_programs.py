"""What few programs use gives the bits of plain Python, too: interpreted and compiled."""

from __future__ import annotations

from typing import Any

import odd_programs
import pytest
from grid_programs import as_tuple, assert_same, copies

ALL = odd_programs.arguments()


@pytest.mark.parametrize("which", range(len(ALL)), ids=lambda k: ALL[k][0].name)
def test_odd_program_is_interpreted_as_python_runs_it(which: int) -> None:
    program, arguments = ALL[which]
    plain, ours = copies(arguments), copies(arguments)
    expected = as_tuple(program.function(*plain))
    found = as_tuple(program.interpret(*ours))
    assert_same(program.name, plain, ours)
    assert_same(program.name, expected, found)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", range(len(ALL)), ids=lambda k: ALL[k][0].name)
def test_odd_program_is_compiled_as_python_runs_it(which: int) -> None:
    program, arguments = ALL[which]
    plain = copies(arguments)
    expected: Any = as_tuple(program.function(*plain))
    for pes in (1, 2, 3):
        ours = copies(arguments)
        found = as_tuple(program.run(ours, pes=pes, wait_limit=30))
        assert_same(program.name, plain, ours)
        assert_same(program.name, expected, found)
