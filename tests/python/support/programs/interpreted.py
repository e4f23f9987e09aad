"""Programs that passes for GPUs have been through, by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grid_programs import as_tuple, assert_same, copies

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.grid import returned_fields
from cpufree.compiler.interpret import interpret


def checked(
    program: Any, arguments: tuple[Any, ...], passes: Callable[..., ir.Program]
) -> ir.Program:
    """Return a program after passes, which has given the bits of plain Python."""
    plain, ours = copies(arguments), copies(arguments)
    expected = as_tuple(program.function(*plain))
    call = Arguments.of(program.signature, program.name, ours, {})
    lowered = program._lowered(call)
    made = passes(lowered.program, returned_fields(lowered.result))
    left, scalars = interpret(made, call.arrays, lowered)
    assert_same(program.name, _flat(plain), _flat(ours))
    assert_same(program.name, expected, as_tuple(call.returned(lowered, left, scalars)))
    return made


def _flat(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments, with the arrays of lists in their places."""
    return tuple(item for v in values for item in (v if isinstance(v, list) else [v]))
