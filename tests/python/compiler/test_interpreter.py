"""The interpreter of the intermediate representation gives the bits of plain Python."""

from __future__ import annotations

import pytest
from grid_programs import CASES, as_tuple, assert_same, case, copies, plainly

from cpufree.compiler.saved import from_json, to_json


@pytest.mark.parametrize("name", CASES)
def test_interpreter_gives_the_bits_of_plain_python(name: str) -> None:
    program, arguments = case(name, 13)
    plain, ours = copies(arguments), copies(arguments)
    expected = as_tuple(plainly(program)(*plain))
    found = as_tuple(program.interpret(*ours))
    assert_same(name, plain, ours)
    assert_same(name, expected, found)
    changed = any(
        (a != b).any() for a, b in zip(arguments, ours, strict=True) if hasattr(a, "shape")
    )
    assert changed, "the program does nothing"


@pytest.mark.parametrize("name", CASES)
def test_representation_survives_saving(name: str) -> None:
    program, arguments = case(name, 12)
    made = program.lower(*arguments)
    assert from_json(to_json(made)) == made
