"""The command `cpufree stencil`: what it prints, what it writes, and with which code it ends."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpufree import stencil
from cpufree.cli import app as cli
from cpufree.cli.commands import check_can_write
from cpufree.engines.progress_bar import ProgressBar
from cpufree.stencil import jacobi

pytestmark = pytest.mark.cpu_only

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs `cpufree stencil` with given words."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["stencil", *(str(word) for word in words)])
        seen = capsys.readouterr()
        return int(ended.value.code or 0), seen.out, seen.err

    return call


def test_run_reports_time_rate_and_bytes(run: Run) -> None:
    code, out, _ = run("jacobi2d", "--grid", "64x50", "--iters", 30, "--pes", 2)
    assert code == 0
    assert "jacobi2d: 30 iterations" in out
    assert "64 × 50, float64, 2 976 points updated" in out
    for word in ("per iteration", "GLUP/s", "GB/s at this rate", "cpu_threads: 2 PEs"):
        assert word in out


@pytest.mark.parametrize(
    "words",
    [
        ("jacobi2d", "--grid", "33x20", "--precision", "single", "--halo-steps", 3),
        ("jacobi3d", "--grid", "9^3", "--boundary", "periodic,dirichlet,periodic"),
        ("jacobi3d", "--grid", "8x9x10", "--init", "random:7", "--pes", 3),
    ],
)
def test_check_compares_with_the_reference(run: Run, words: tuple[object, ...]) -> None:
    code, out, _ = run(*words, "--iters", 20, "--check")
    assert code == 0
    assert "equal to the serial reference, bit for bit" in out


def test_check_that_fails_ends_with_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stencil, "reference", lambda u0, *_, **__: u0)
    code, _, err = run("jacobi2d", "--grid", "9x9", "--iters", 5, "--check")
    assert code == 4
    assert "differ from the serial reference" in err


def test_values_are_read_and_saved(run: Run, tmp_path: Path) -> None:
    u0 = np.random.default_rng(1).random((12, 11)).astype(np.float32)
    np.save(tmp_path / "u0.npy", u0)
    words = ("--init", tmp_path / "u0.npy", "--iters", 9, "--out", tmp_path / "u.npy")
    code, out, _ = run("jacobi2d", *words)
    assert code == 0
    assert f"values in {tmp_path / 'u.npy'}" in out
    saved = np.load(tmp_path / "u.npy")
    assert saved.dtype == np.float32
    assert np.array_equal(saved, jacobi(u0, 9).u)


def test_values_may_be_saved_in_the_file_that_they_came_from(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "u.npy"
    u0 = np.random.default_rng(3).random((12, 9))
    np.save(path, u0)
    words = ("jacobi2d", "--iters", 4, "--init", path, "--out", path, "--check")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "equal to the serial reference" in out
    np.testing.assert_array_equal(np.load(path), jacobi(u0, 4).u)


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "."),
        ("--json", "/proc/cpufree.json"),
        ("--json", "no/such/folder/a.json"),
        ("--out", "/proc/cpufree.npy"),
        ("--out", "no/such/folder/u.npy"),
    ],
    ids=str,
)
def test_outputs_are_checked_before_the_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str]
) -> None:
    monkeypatch.setattr(stencil, "jacobi", None)  # nothing may be computed
    code, _, err = run("jacobi2d", "--grid", "8x8", "--iters", 2, *words)
    assert code == 3
    assert f"cannot write '{words[1]}'" in err


def test_check_of_an_output_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("kept")
    for path in (old, new):
        check_can_write(str(path))
    assert old.read_text() == "kept" and not new.exists()


def test_values_are_rescued_where_they_cannot_be_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    words = ("jacobi2d", "--grid", "8x8", "--iters", 2, "--out", tmp_path / "u.npy")
    code, _, err = run(*words)
    assert code == 3
    saved = re.findall(r"No space left on device; the values are saved in '(.*)'", err)[0]
    assert np.load(saved).shape == (8, 8)


def test_json_on_stdout_is_all_there_is(run: Run) -> None:
    code, out, _ = run("jacobi2d", "--grid", "20x20", "--iters", 5, "--json", "-")
    assert code == 0
    content: dict[str, Any] = json.loads(out)
    assert content["stencil"] == "jacobi2d"
    assert content["iterations"] == 5
    assert content["reason"] == "CONVERGED_ITS"
    assert content["command"] == [
        "cpufree",
        "stencil",
        "jacobi2d",
        "--iters",
        "5",
        "--grid",
        "20x20",
        "--json",
        "-",
    ]
    used = content["options"]["resolved"]
    assert (used["grid"], used["precision"], used["init"]) == ("20x20", "double", "hot-wall")


@pytest.mark.parametrize("kind", ["jacobi2d", "jacobi3d"])
def test_picture_of_the_values_is_written(run: Run, tmp_path: Path, kind: str) -> None:
    plot = tmp_path / "heat.svg"
    grid = "20x20" if kind == "jacobi2d" else "8^3"
    code, out, _ = run(kind, "--grid", grid, "--iters", 5, "--plot", plot)
    assert code == 0
    assert f"plot in {plot}" in out
    assert f"{kind}: 5 iterations" in plot.read_text()  # its title, as a comment beside its glyphs


def test_quiet_leaves_one_line_that_says_how_it_ended(run: Run) -> None:
    words = ("jacobi2d", "--grid", "30x30", "--iters", 5, "--tol", "1e-9", "--quiet")
    code, out, err = run(*words)
    assert (code, err, out.count("\n")) == (10, "", 1)
    assert out.startswith("jacobi2d: 5 iterations") and out.endswith("(DIVERGED_ITS)\n")


def test_tolerance_that_is_met_ends_with_code_0(run: Run) -> None:
    code, out, _ = run("jacobi2d", "--grid", "9x9", "--iters", 10**6, "--tol", "1e-6")
    assert code == 0
    assert "CONVERGED_ATOL" in out


def test_time_limit_has_its_exit_code(run: Run) -> None:
    code, _, _ = run("jacobi2d", "--grid", "50x50", "--iters", 10**12, "--time-limit", 0.05)
    assert code == 12


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("jacobi2d", "--iters", 5), 2, "give the points along each axis"),
        (("jacobi2d", "--grid", "8y8", "--iters", 5), 2, "'8y8' is no grid"),
        (("jacobi3d", "--grid", "8x8", "--iters", 5), 2, "has 2 dimensions, the stencil 3"),
        (("jacobi2d", "--grid", "8^3", "--iters", 5), 2, "'8^3' is no grid"),
        (("jacobi2d", "--grid", "0x8", "--iters", 5), 2, "no points along an axis"),
        (("jacobi2d", "--grid", "8x8"), 2, "missing option '--iters'"),
        (("jacobi4d", "--grid", "8x8", "--iters", 5), 2, "jacobi2d"),
        (("jacobi2d", "--grid", "8x8", "--iters", 5, "--init", "hot"), 2, "'hot' is none of"),
        (("jacobi2d", "--grid", "8x8", "--iters", 5, "--init", "a.npy"), 2, "leave it out"),
        (("jacobi2d", "--init", "missing.npy", "--iters", 5), 3, "missing.npy"),
        (
            ("jacobi2d", "--grid", "8x8", "--iters", 5, "--pes", "no"),
            2,
            "--pes is 'no': give 'auto' or",
        ),
        (("jacobi2d", "--grid", "8x8", "--iters", 5, "--boundary", "x"), 2, "--boundary is 'x'"),
        (
            ("jacobi2d", "--grid", "8x8", "--iters", 5, "--boundary", "periodic,periodic,periodic"),
            2,
            "boundary has 3 names",
        ),
        (("jacobi2d", "--grid", "8x8", "--iters", 5, "--out", "u.txt"), 3, "must end in"),
        (("jacobi2d", "--grid", "9999999999x9999999999", "--iters", 5), 5, "not enough memory"),
        (("jacobi2d", "--grid", "8x8", "--iters", 5, "--gpus", "one"), 2, "device numbers"),
    ],
)
def test_wrong_words_are_told(run: Run, words: tuple[object, ...], code: int, message: str) -> None:
    ended, out, err = run(*words)
    assert ended == code
    assert message in " ".join(err.replace("│", " ").split())
    assert out == ""


def test_file_that_is_no_array_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.npy"
    path.write_bytes(b"not an array")
    code, _, err = run("jacobi2d", "--init", path, "--iters", 5)
    assert code == 3
    assert "broken.npy" in err
    np.save(path, np.zeros((3, 3, 3)))
    code, _, err = run("jacobi2d", "--init", path, "--iters", 5)
    assert code == 3
    assert "has 3 dimensions, and jacobi2d takes 2" in err


def test_file_of_no_real_numbers_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "u0.npy"
    np.save(path, np.zeros((3, 3), complex))
    code, _, err = run("jacobi2d", "--init", path, "--iters", 1)
    assert code == 3
    assert f"error: '{path}' holds complex128: give real numbers" in err


def test_archive_of_arrays_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "several.npy"
    with path.open("wb") as file:
        np.savez(file, u=np.zeros((3, 3)))
    code, _, err = run("jacobi2d", "--init", path, "--iters", 5)
    assert code == 3
    assert "archive of arrays" in err


def test_ctrl_c_ends_with_130_and_saves_the_values(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(follow: object, iteration: int, update: float) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return True

    monkeypatch.setattr(ProgressBar, "__call__", press)
    path = tmp_path / "u.npy"
    code, out, _ = run("jacobi2d", "--grid", "100x100", "--iters", 10**12, "--out", path)
    assert code == 130
    assert "INTERRUPTED" in out
    assert np.load(path).shape == (100, 100)
