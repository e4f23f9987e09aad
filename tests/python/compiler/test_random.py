"""Random programs give the bits of plain Python: after each kind of passes, and compiled.

Hypothesis writes them, and makes one that fails as short as it can; what it finds becomes a case of
`edge_programs`. RANDOM_PROGRAMS says how many are interpreted, and a tenth of that how many are
compiled, all in a few files: a compiler takes longer for the headers than for a program.
"""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_together import kernels_of
from grid_programs import as_tuple, assert_same, copies
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from random_programs import WRITERS, program_of, random_arguments

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.front.lower import lower
from cpufree.compiler.front.lowered import Lowered
from cpufree.compiler.grid import grid_groups, returned_fields, swept_groups
from cpufree.compiler.interpret import interpret
from cpufree.compiler.launch import cpu_runner, passes
from cpufree.engines.watch import Watch
from cpufree.errors import ProgramError
from cpufree.laps import Laps

REFUSED: list[str] = []
"""Programs that hypothesis has written and the front end has refused."""
COUNT = int(os.environ.get("RANDOM_PROGRAMS", "200"))
TOGETHER = 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for texts."""
    return tmp_path_factory.mktemp("random")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.timeout(900)
@settings(
    max_examples=COUNT,
    deadline=None,
    derandomize="RANDOM_PROGRAMS" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    numbers=st.randoms(note_method_calls=False),
    writer=st.sampled_from(WRITERS),
    seed=st.integers(0, 2**20),
)
def test_random_programs_are_interpreted_as_python_runs_them(
    folder: Path, numbers: random.Random, writer: Any, seed: int
) -> None:
    text = writer(numbers).text()
    note(text)
    program, arguments = _program(text, folder), random_arguments(seed)
    plain = copies(arguments)
    expected = as_tuple(program.function(*plain))
    bound = program.signature.bind(*arguments).arguments
    try:
        lowered = lower(program.source, bound)
    except ProgramError:  # such as a number of two kinds with float32
        REFUSED.append(text)
        assert len(REFUSED) < max(20, COUNT // 3), "most programs are refused: nothing is tested"
        assume(False)
        return
    kept = returned_fields(lowered.result)
    made = {
        "none": lowered.program,
        "for CPUs": passes(lowered.program),
        "for GPUs": grid_groups(lowered.program, kept),
        "for sweeps": swept_groups(lowered.program, kept),
    }
    for which, one in made.items():
        ours = program.signature.bind(*copies(arguments)).arguments
        arrays = {k: v for k, v in ours.items() if isinstance(v, np.ndarray)}
        with np.errstate(all="ignore"):
            interpret(one, arrays, lowered)
        assert_same(f"passes: {which}", plain, tuple(ours.values()))
    assert expected


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.timeout(900)
def test_random_programs_are_compiled_as_python_runs_them(folder: Path) -> None:
    seed, left = 1000, max(TOGETHER, COUNT // 10)
    while left > 0:
        chosen: list[tuple[str, Any, tuple[Any, ...], Lowered]] = []
        while len(chosen) < TOGETHER:
            seed += 1
            text = WRITERS[seed % len(WRITERS)](seed).text()
            program, arguments = _program(text, folder), random_arguments(seed)
            try:
                lowered = lower(program.source, program.signature.bind(*arguments).arguments)
            except ProgramError:
                continue
            chosen.append((text, program, arguments, lowered))
        part = folder / str(seed)
        part.mkdir()
        kernels = kernels_of([lowered.program for *_, lowered in chosen], part)
        for k, (kernel, (text, program, arguments, lowered)) in enumerate(
            zip(kernels, chosen, strict=True)
        ):
            plain, ours = copies(arguments), copies(arguments)
            expected = as_tuple(program.function(*plain))
            given_ = Arguments.of(program.signature, program.name, ours, {})
            values = lowered.data, lowered.scalars
            runner = cpu_runner(kernel, 1 + k % 4, returned_fields(lowered.result))
            ran = runner.run([given_], *values, 30.0, Watch(None), Laps())
            found = as_tuple(given_.returned(lowered, ran.arrays[0], ran.scalars[0]))
            assert_same(f"{1 + k % 4} PEs, {text}", plain, ours)
            assert_same(f"{1 + k % 4} PEs, {text}, result", expected, found)
        left -= TOGETHER


def _program(text: str, folder: Path) -> Any:
    """Return the program of a text, which has a file of its own."""
    return program_of(text, folder, "p" + hashlib.sha256(text.encode()).hexdigest()[:16])
