"""Names in the text of kernels: any that Python takes, for arrays, numbers and programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grid_on_cpu import call, call_on_chip, kernel_for
from grid_programs import assert_same, copies
from random_programs import program_of

from cpufree.compiler.emit import emit
from cpufree.compiler.emit.names import in_ascii
from cpufree.compiler.launch import passes

NAMES = {
    "Greek": ("φ", "ψ", "δ", "ω"),
    "like those that are written by numbers": ("φ", "_0u3c6_", "_0u5f_0u3c6_", "é"),
    "words of C++": ("double", "int", "NULL", "std"),
    "the kernel's own": ("port", "N", "args", "heap"),
}
_TEXT = """
import cpufree

@cpufree.program
def p({a}, {b}, {c}, steps):
    {d} = 0.5
    for {d}_ in range(steps):
        {a}[1:-1] = {c} * ({b}[2:] + {b}[:-2]) + {d}
        {b}[0] = {b}[-2]
        {a}, {b} = {b}, {a}
        {d} = 0.5 * {a}[1, 1]
    for {a} in range(2):
        {b} += {a}
    return {d}
"""


def program_with(names: tuple[str, ...], folder: Path) -> Any:
    a, b, c, d = names
    return program_of(_TEXT.format(a=a, b=b, c=c, d=d), folder, "named")


def arguments() -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    return rng.standard_normal((9, 4)), rng.standard_normal((9, 4)), 0.25, 3


@pytest.mark.parametrize("kind", NAMES)
def test_programs_with_any_names_have_the_bits_of_python(kind: str, tmp_path: Path) -> None:
    program = program_with(NAMES[kind], tmp_path)
    plain = copies(arguments())
    program.function(*plain)
    ours = copies(arguments())
    program.run(ours, pes=2, engine="cpu_threads")
    assert_same("for CPUs", plain, ours)
    for how in (call, call_on_chip):
        ours = copies(arguments())
        how(program, ours, 1, 2)
        assert_same(f"for GPUs, {how.__name__}", plain, ours)


def test_texts_of_kernels_are_ascii(tmp_path: Path) -> None:
    program = program_with(NAMES["Greek"], tmp_path)
    assert emit(passes(program.lower(*arguments()))).text.isascii()
    _, _, kernel = kernel_for(program, arguments(), 1)
    assert kernel.text.text.isascii()


def test_names_that_differ_stay_so() -> None:
    names = ["φ", "_0u3c6_", "_0u5f_0u3c6_", "__0u3c6_", "φ_0u3c6_", "_0u3c6φ", "φ0u3c6_", "_φ"]
    assert len({in_ascii(name) for name in names}) == len(names)


def test_text_in_ascii_is_as_it_was() -> None:
    assert in_ascii("v_new_u_1 + 0x1.0p-1 + 10ull") == "v_new_u_1 + 0x1.0p-1 + 10ull"
