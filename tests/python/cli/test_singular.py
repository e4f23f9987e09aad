"""`cpufree solve` of singular systems, with their null space and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runner import Run, runner
from singular import neumann, trusses


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


def test_constants_are_taken_as_null_space(run: Run, tmp_path: Path) -> None:
    A, x = tmp_path / "A.npz", tmp_path / "x.npy"
    sp.save_npz(A, neumann(30, 20))
    ended = run("solve", A, "--rhs", "random", "--nullspace", "constant", "--out", x)
    assert ended.code == 0
    assert "in the null space" in " ".join((ended.out + ended.err).split())
    assert abs(np.load(x).sum()) < 1e-9


def test_vectors_of_a_file_are_taken_as_null_space(run: Run, tmp_path: Path) -> None:
    A, modes = trusses(3, 3, 3)
    sp.save_npz(tmp_path / "A.npz", A)
    np.save(tmp_path / "modes.npy", modes)
    words = ("solve", tmp_path / "A.npz", "--rhs", "random", "--nullspace", tmp_path / "modes.npy")
    assert run(*words).code == 0


def test_singular_systems_are_named(run: Run, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "A.npz", neumann(30, 20))
    ended = run("solve", tmp_path / "A.npz", "--rhs", "random")
    assert ended.code != 0
    assert "nullspace='constant'" in " ".join((ended.out + ended.err).split())


def test_missing_files_of_vectors_are_wrong_input(run: Run, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "A.npz", neumann(4, 4))
    ended = run("solve", tmp_path / "A.npz", "--nullspace", "nowhere.txt")
    assert ended.code in (2, 3) and "nowhere.txt" in ended.err
