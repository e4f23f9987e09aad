"""libcpufree as programs see it: answers, what it needs, what it shows, and the examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpufree
from tools.library import abi as library_abi
from tools.library.called import HEADER, NUMBERS, Handle, struct

ROOT = Path(__file__).parents[3]
WAYS = [
    ("cg", "jacobi", 1, 1, None),
    ("prcg", "none", 3, 1, "contiguous"),
    ("pipecg", "jacobi", 2, 2, "scattered"),
    ("cg", "chebyshev", 2, 1, "contiguous"),
    ("prcg", "fsai", 2, 1, "scattered"),
    ("cg", "amg", 2, 1, "contiguous"),
    ("cg", "amg", 3, 1, "scattered"),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("method", "pc", "pes", "blocks", "partition"), WAYS)
def test_bits_are_those_from_python(
    library: Path, method: str, pc: str, pes: int, blocks: int, partition: str | None, dtype: Any
) -> None:
    A = cpufree.generate.generate("poisson2d", nx=45, ny=37).astype(dtype)
    generator = np.random.default_rng(5)
    b = generator.standard_normal(A.shape[0]).astype(dtype)
    part = generator.integers(0, pes, A.shape[0]).astype(np.int32)
    given = {"part": part} if partition == "scattered" else {}
    handle = Handle(
        library, A, pes=pes, blocks=blocks, method=NUMBERS[f"CPUFREE_{method.upper()}"],
        preconditioner=NUMBERS[f"CPUFREE_{pc.upper()}"], **given,
    )  # fmt: skip
    shared = part if given else "contiguous"
    where: Any = {"engine": "cpu_threads", "pes": pes, "blocks": blocks, "reorder": False}
    with cpufree.Solver(A, pc=pc, partition=shared, **where) as solver:
        for factor in (1, 3):
            if factor > 1:
                solver.update(factor * A)
                handle.update(factor * A)
            x, result = handle.solve(b, rtol=1e-4)
            expected = solver.solve(b, rtol=1e-4, method=method)
            assert x.tobytes() == expected.x.tobytes()
            assert result.iterations == expected.iterations
            assert result.true_residual == expected.true_residual
            assert result.converged
    handle.close()


def test_values_at_an_end_of_the_range_have_the_bits_from_python(library: Path) -> None:
    A = cpufree.generate.generate("poisson2d", nx=12, ny=9) * 2.0**-900
    b = np.arange(1.0, 109.0)
    handle = Handle(library, A, blocks=1)
    x, _ = handle.solve(b, rtol=1e-9)
    result = cpufree.solve(
        A, b, rtol=1e-9, engine="cpu_threads", blocks=1, method="cg", pc="jacobi"
    )
    assert x.tobytes() == result.x.tobytes()
    handle.close()


def test_it_needs_neither_python_nor_a_compiler(library: Path, tmp_path: Path) -> None:
    parts = [library, *(library.parent / "cpufree").glob("*.so")]
    assert len(parts) > 1
    for part in parts:
        needed = subprocess.run(["readelf", "-d", part], capture_output=True, text=True, check=True)
        names = re.findall(r"\(NEEDED\).*\[(.*)\]", needed.stdout)
        assert names and all(
            re.match(r"(libstdc\+\+|libm|libgcc_s|libc|libdl|libpthread|ld-linux\S*)\.so", name)
            for name in names
        ), names


def test_the_binary_interface_is_that_of_the_last_release(library: Path) -> None:
    now = [*library_abi.shown(library), *library_abi.described(HEADER)]
    assert now == library_abi.KEPT.read_text(encoding="utf-8").splitlines()
    symbols, functions = (
        sum(line.startswith(kind) for line in now) for kind in ("symbol ", "function ")
    )
    assert symbols == functions > 0


def test_what_breaks_programs_is_told_from_what_is_new() -> None:
    old = ["symbol f V1", "function int f(int a)", "struct s 16", "member s.a 0 8", "constant C 1"]
    assert library_abi.broken(old, [*old, "symbol g V2", "constant D 2"]) == []
    grown = ["struct s 24", "member s.b 16 8"]
    assert library_abi.broken(old, [*old[:2], *old[3:], *grown]) == []
    assert library_abi.broken(old, [*old[:2], "struct s 8", *old[3:]]) == ["struct s 16"]
    for lost in (0, 1, 3, 4):
        assert library_abi.broken(old, old[:lost] + old[lost + 1 :]) == [old[lost]]


def test_fortran_has_the_structs_and_numbers_of_c(prefix: Path, tmp_path: Path) -> None:
    (source,) = prefix.glob("include/cpufree/cpufree.f90")
    text = re.sub(r"!.*|&\s*\n", "", source.read_text(encoding="utf-8"))
    fortran = {n: int(v) for n, v in re.findall(r"\b(CPUFREE_\w+) = (-?\d+)\b", text)}
    assert fortran == NUMBERS
    kinds = {"c_size_t": 8, "c_int32_t": 4, "c_int64_t": 8, "c_double": 8}
    for name, members in library_abi.structs_of(HEADER).items():
        body = re.search(rf"type, bind\(C\), public :: {name}\n(.*?)end type", text, re.DOTALL)
        assert body is not None
        found = []
        for line in filter(None, (line.strip() for line in body[1].splitlines())):
            kind, _, names = line.partition(" :: ")
            size = kinds.get(re.findall(r"\((\w+)\)", kind)[-1], 8)
            found += [(re.findall(r"\w+", one)[0], size) for one in names.split(", ")]
        c = struct(name)
        assert found == [(member, getattr(c, member).size) for member in members]


@pytest.fixture(scope="session")
def programs(
    prefix: Path, cmake: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the build folder of the example, away from our own headers."""
    folder = tmp_path_factory.mktemp("programs")
    shutil.copytree(ROOT / "examples" / "15_library", folder / "source")
    cmake("-S", folder / "source", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    cmake("--build", folder / "build")
    return folder / "build"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("time_steps", "all plates keep their heat"),
        ("solve_c", "as expected: the matrix is not symmetric"),
        ("solve_fortran", "as expected: b and x must not be null pointers"),
    ],
)
def test_examples_run_against_an_installation(programs: Path, program: str, said: str) -> None:
    if program == "solve_fortran" and shutil.which("gfortran") is None:
        pytest.skip("needs gfortran")
    clean = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        [programs / program], capture_output=True, text=True, timeout=300, env=clean
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout
