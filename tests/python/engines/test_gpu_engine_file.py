"""The GPU engine, a shared object next to the extension: what is said where it is of no use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cpufree
from cpufree import _core

pytestmark = pytest.mark.cpu_only
PROGRAM = """
import numpy as np
import cpufree
from cpufree.extension import load_core

A = cpufree.generate.poisson2d(nx=9, ny=8)
result = cpufree.solve(A, A @ np.ones(72), rtol=1e-10, engine="cpu_threads")
assert result.converged, result
assert not load_core().gpu_vendor()
print(load_core().gpu_note())
try:
    cpufree.solve(A, np.ones(72), engine="cuda_p2p")
except cpufree.errors.UnsupportedError as error:
    print(error)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a folder with a copy of the package, without GPU engine."""
    copy = tmp_path / "cpufree"
    skipped = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(Path(cpufree.__file__).parent, copy, ignore=skipped)
    built = Path(_core.__file__).parent
    for file in [Path(_core.__file__), *built.glob("_cpu_*.so")]:
        shutil.copy(file, copy)
    return copy


def said(package: Path) -> str:
    """Solve on the CPU with the copy, ask for the GPU engine; return what is said of it."""
    # -S keeps out the hook of an editable installation; packages are those of this interpreter.
    paths = [str(package.parent), *(path for path in sys.path if path.endswith("-packages"))]
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_the_file_the_build_is_said_to_have_no_gpu_engine(package: Path) -> None:
    assert "this build of cpufree has no GPU engine" in said(package)


def test_a_file_that_does_not_load_is_named_with_the_reason(package: Path) -> None:
    (package / "_gpu.so").write_bytes(b"not a shared object")
    text = said(package)
    assert "cpufree's GPU engine" in text and "_gpu.so" in text
    assert "install cpufree again" in text


def test_a_file_of_another_version_is_refused(package: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("c++") or pytest.skip("needs a compiler")
    source = package / "other.c"
    source.write_text(
        'static const char* table[64] = {"0.0.0"};\n'
        "const void* cpufree_gpu_engine(void) { return table; }\n"
    )
    subprocess.run(
        [compiler, "-xc", "-shared", "-fPIC", source, "-o", package / "_gpu.so"], check=True
    )
    assert f"of version 0.0.0, the rest of cpufree is {cpufree.__version__}" in said(package)
