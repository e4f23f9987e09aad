"""Loops along an axis: refused with what to write instead, or written out where they are short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sweeping_programs as sweeping
from grid_programs import assert_same, copies, plainly

from cpufree.errors import ProgramError


@pytest.mark.parametrize(
    ("program", "arguments", "words"),
    [
        (
            sweeping.seidel_2d,
            (np.ones((90, 90)), 2),
            "a sweep from row to row, one after the other.*red points and black ones in turn",
        ),
        (
            sweeping.adi,
            (*(np.ones((200, 200)) for _ in range(4)), -1.0, 3.0, -1.0, 2),
            "v is read at row 0 alone for many rows.*rows of the first axis are divided",
        ),
        (
            sweeping.vadv_that_keeps_axes,
            sweeping.arguments_of_vadv(90),
            "a sweep from row to row.*up to 128 turns in a program",
        ),
    ],
)
def test_loops_along_an_axis_are_refused_with_what_to_write(
    program: Any, arguments: Any, words: str
) -> None:
    with pytest.raises(ProgramError, match=f"(?s){words}"):
        program.lower(*arguments)


def test_short_loops_along_an_axis_are_written_out() -> None:
    program, arguments = sweeping.vadv_that_keeps_axes, sweeping.arguments_of_vadv(4)
    plain = copies(arguments)
    plainly(program)(*plain)
    for call in (program.interpret, lambda *a: program.run(a, engine="cpu_threads", pes=2)):
        ours = copies(arguments)
        call(*ours)
        assert_same("vadv", plain, ours)
