"""Programs as scientists write them with NumPy: bits on CPUs and by the texts of GPUs' kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import field_programs as programs
import grid_on_cpu
import numpy as np
import pytest
from any_program_values import Describer, first_difference
from built_together import kernels_of
from grid_programs import copies, plainly

from cpufree.errors import ProgramError

EACH = pytest.mark.parametrize("name", programs.CASES)


def _described(arguments: tuple[Any, ...], result: Any) -> Any:
    return Describer(dict(enumerate(arguments))).value((arguments, result))  # type: ignore[arg-type]


def _compare(name: str, call: Any) -> None:
    """Compare a call's results and arrays with those of plain Python; sums may be rounded."""
    program, given = programs.CASES[name]
    plain, ours = copies(given), copies(given)
    with np.errstate(all="ignore"):
        expected = _described(plain, plainly(program)(*plain))
    found = _described(ours, call(program, ours))
    difference = first_difference(name, expected, found, name in programs.ROUNDED)
    assert difference is None, difference


@EACH
def test_interpreted_program_is_as_in_numpy(name: str) -> None:
    _compare(name, lambda program, given: program.interpret(*given))


@pytest.mark.timeout(900)
def test_compiled_programs_are_as_in_numpy(tmp_path: Path) -> None:
    lowered = {n: p._lowered(p._arguments(a, {})) for n, (p, a) in programs.CASES.items()}
    kernels = kernels_of([one.program for one in lowered.values()], tmp_path)
    for (name, one), kernel in zip(lowered.items(), kernels, strict=True):
        programs.CASES[name][0]._kernels[one.key] = kernel
        for pes in (1, 2, 3, 4):
            _compare(name, lambda p, a, n=pes: p.run(a, engine="cpu_threads", pes=n))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in programs.QUICK else pytest.mark.slow)
        for n in programs.CASES
    ],
)
def test_texts_for_gpus_are_as_in_numpy(name: str) -> None:
    _compare(name, lambda program, given: grid_on_cpu.call(program, given, 2, 2))


@pytest.mark.parametrize("name", programs.REFUSED)
def test_what_stays_refused_says_why_and_what_to_write(name: str) -> None:
    program, arguments, words = programs.REFUSED[name]
    with pytest.raises(ProgramError, match=f"(?s){words}"):
        program.lower(*arguments)
