"""SciPy's own tests of cg, minres and bicgstab, with ours in their place; complex ones, too."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

PLUGIN = """
import warnings

import scipy.sparse.linalg._isolve as theirs

import cpufree

theirs.cg, theirs.minres, theirs.bicgstab = cpufree.cg, cpufree.minres, cpufree.bicgstab
warnings.simplefilter("ignore", cpufree.CpufreeWarning)
"""
# A test that expects bicgstab to fail on a system which ours solves, by a start from b - A x.
SOLVED = "test_convergence and sym-nonpd-bicgstab"


def _own_tests() -> list[Path]:
    found = importlib.util.find_spec("scipy.sparse.linalg._isolve")
    assert found is not None and found.origin is not None
    folder = Path(found.origin).parent / "tests"
    files = [folder / "test_minres.py", folder / "test_iterative.py"]
    return files if all(file.exists() for file in files) else []


@pytest.mark.skipif(not _own_tests(), reason="this SciPy came without its tests")
@pytest.mark.cpu_only
def test_scipys_own_tests_pass_with_ours_in_place(tmp_path: Path) -> None:
    (tmp_path / "ours_in_place.py").write_text(PLUGIN)
    path = os.pathsep.join([str(tmp_path), str(Path(ROOT) / "python")])
    chosen = f"(minres or bicgstab or -cg or [cg) and not ({SOLVED}) and not cgs"
    alone = ["-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "ours_in_place", *alone, "-k", chosen,
         *map(str, _own_tests())],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "passed" in done.stdout
