"""The CPU engine's kernels come in versions for several instruction sets; each of them is right."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cpufree
from cpufree.extension import load_core
from cpufree.options.variables import CPU_LEVELS

pytestmark = pytest.mark.cpu_only
core = load_core()
FOLDER = Path(str(core.__file__)).parent
LEVELS = [level for level in CPU_LEVELS if level.startswith("x86-64")]

# Solves with each method, and iterates on a grid, in a process of its own: a process has one level.
PROGRAM = """
import hashlib
import numpy as np
import cpufree
from cpufree.extension import load_core

A = cpufree.load_matrix("gen:poisson2d?nx=40,ny=30")
solution = np.sin(np.arange(1200.0))
bits = hashlib.sha256()
for method in ("cg", "prcg", "pipecg"):
    for dtype, rtol in ((np.float64, 1e-10), (np.float32, 1e-4)):
        with cpufree.Solver(A, pes=2, blocks=1, dtype=dtype) as solver:
            result = solver.solve((A @ solution).astype(dtype), method=method, rtol=rtol)
        assert result.converged, result.reason
        assert np.abs(result.x - solution).max() < 1e3 * rtol * np.abs(solution).max()
        bits.update(result.x.tobytes())
grid = np.zeros((40, 50))
grid[0] = 1.0
fixed = cpufree.stencil.jacobi(grid, 20_000, tol=1e-12, pes=2, blocks=1)
inside = fixed.u[1:-1, 1:-1]
mean = (fixed.u[:-2, 1:-1] + fixed.u[2:, 1:-1] + fixed.u[1:-1, :-2] + fixed.u[1:-1, 2:]) / 4
assert np.abs(inside - mean).max() < 1e-11
print(load_core().cpu_level(), bits.hexdigest())
"""


def run_at(level: str) -> subprocess.CompletedProcess[str]:
    """Run PROGRAM with CPUFREE_CPU_LEVEL."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "CPUFREE_CPU_LEVEL": level},
        capture_output=True,
        text=True,
    )


needs_levels = pytest.mark.skipif(
    core.cpu_levels() not in (LEVELS[:1], LEVELS),
    reason="this build has one version of the kernels",
)


@needs_levels
def test_every_level_of_this_processor_solves_and_all_give_the_same_bits() -> None:
    said = {}
    for level in core.cpu_levels():
        done = run_at(level)
        assert done.returncode == 0, done.stderr
        name, said[level] = done.stdout.split()
        assert name == level
    assert len(set(said.values())) == 1


@needs_levels
def test_best_level_is_taken_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for unset in ("", "auto"):
        monkeypatch.setenv("CPUFREE_CPU_LEVEL", unset)
        assert core.cpu_level() == core.cpu_levels()[-1]


@needs_levels
def test_level_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_CPU_LEVEL", "avx9000")
    with pytest.raises(cpufree.InvalidInputError, match="auto, x86-64-v2, x86-64-v3"):
        core.cpu_level()


@needs_levels
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
@pytest.mark.parametrize("file", [Path(str(core.__file__)).name, "_cpu_v2.so", "_cpu_v3.so"])
def test_no_instruction_is_above_the_level_of_its_file(file: str) -> None:
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", FOLDER / file],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    above = r"%zmm|%k[1-7]\b" if file == "_cpu_v3.so" else r"%[yz]mm|\bv[a-z]+[sp][sd] "
    assert not re.search(above, code)
    if file == "_cpu_v3.so":
        assert "%ymm" in code


@needs_levels
@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm")
@pytest.mark.parametrize("file", ["_cpu_v2.so", "_cpu_v3.so"])
def test_a_level_exports_its_table_alone(file: str) -> None:
    names = subprocess.run(
        ["nm", "-D", "--defined-only", FOLDER / file], capture_output=True, text=True, check=True
    ).stdout
    assert [line.split()[-1] for line in names.splitlines()] == ["cpufree_cpu_kernels"]
