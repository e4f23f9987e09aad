"""CPU kernels that are compiled when they are first used give what those that are built in give."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree import cpu_kernels
from cpufree.extension import load_core
from cpufree.host import read_text

pytestmark = pytest.mark.cpu_only
A = cpufree.load_matrix("gen:poisson2d?nx=23,ny=17")
B = np.cos(np.arange(A.shape[0], dtype=np.float64))


def solve(**asked: object) -> np.ndarray:
    """Return x of a solve on two PEs."""
    result = cpufree.solve(A, B, pes=2, blocks=1, rtol=1e-6, engine="cpu_threads", **asked)
    return np.asarray(result.x)


def in_float() -> np.ndarray:
    """Return x of a solve in single precision."""
    with cpufree.Solver(A, pes=2, blocks=1, engine="cpu_threads", dtype=np.float32) as solver:
        x = solver.solve(B.astype(np.float32), method="cg", pc="none", rtol=1e-3).x
    return np.asarray(x)


def together() -> np.ndarray:
    """Return the solutions for two right-hand sides."""
    with cpufree.Solver(A, pes=2, blocks=1, engine="cpu_threads") as solver:
        both = np.stack([B, B**2], axis=1)
        return np.asarray(solver.solve(both, method="cg", rtol=1e-6, columns="together").x)


def on_grid() -> np.ndarray:
    """Return a grid after some iterations with a source term."""
    start = np.zeros((20, 30))
    start[0] = 1.0
    source = np.full((20, 30), 0.01)
    return np.asarray(cpufree.stencil.jacobi(start, 40, source=source, pes=2, blocks=1).u)


CASES: dict[str, Callable[[], np.ndarray]] = {
    "prcg with preconditioner jacobi, double": lambda: solve(method="prcg", pc="jacobi"),
    "cg with preconditioner none, float": lambda: in_float(),
    "pipecg with preconditioner fsai, double": lambda: solve(method="pipecg", pc="fsai"),
    "cg with preconditioner amg, double": lambda: solve(method="cg", pc="amg"),
    "cg of 2 right-hand sides with preconditioner jacobi, double": lambda: together(),
    "jacobi2d with a source term, double": lambda: on_grid(),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Take no kernel from the build; return the names of those that are asked for."""
    names: list[str] = []
    real = cpu_kernels.solver_kernel

    def noted(name: str, text: str, flags: str, built_in_all: bool) -> int:
        names.append(name)
        return real(name, text, flags, built_in_all)

    monkeypatch.setattr(cpu_kernels, "solver_kernel", noted)
    load_core().take_built_in_kernels(False)
    yield names
    load_core().take_built_in_kernels(True)


@pytest.mark.usefixtures("users_compiler")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(3)
def test_compiled_kernel_has_the_bits_of_one_that_is_built_in(name: str, asked: list[str]) -> None:
    compiled = CASES[name]()
    assert asked == [name]
    load_core().take_built_in_kernels(True)
    assert (CASES[name]() == compiled).all()


def test_waits_for_compilers_are_told(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    here = cpu_kernels.solver_kernel

    def slowly(*kernel: Any) -> int:
        time.sleep(0.05)
        return here(*kernel)

    monkeypatch.setattr(cpu_kernels, "solver_kernel", slowly)
    with cpufree.Solver(A, pes=1, blocks=1, engine="cpu_threads") as solver:
        first = solver.solve(B, method="cg", pc="none").timings
        second = solver.solve(B, method="cg", pc="none").timings
    assert len(asked) >= 1
    assert 0.05 <= first["kernel_compile"] <= first["setup"] + first["solve"]
    assert second["kernel_compile"] < 0.05 + first["kernel_compile"]
    load_core().take_built_in_kernels(True)
    assert cpufree.solve(A, B, pes=1, blocks=1).timings["kernel_compile"] == 0.0


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
@pytest.mark.skipif(load_core().cpu_level() != "native", reason="kernels are not native here")
@pytest.mark.skipif("avx2" not in read_text("/proc/cpuinfo"), reason="a processor without AVX2")
def test_native_kernels_use_the_instructions_of_this_processor() -> None:
    file = Path(str(load_core().__file__)).with_name("_cpu_native.so")
    code = subprocess.run(["objdump", "-d", file], capture_output=True, text=True, check=True)
    assert "%ymm" in code.stdout
