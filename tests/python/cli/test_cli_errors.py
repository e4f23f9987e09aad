"""`cpufree solve`: what it refuses, with which words and code, and what it rescues."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_runner import POISSON, Run, runner

from cpufree.cli import app as cli
from cpufree.cli import commands, display, solve_command
from cpufree.errors import CpufreeError, EngineError, OutOfMemoryError


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["solve", "no-such-file.mtx"], 3, "no-such-file.mtx"),
        (["solve", "gen:no_such_generator"], 3, "no_such_generator"),
        (["solve", POISSON, "--rhs", "no-such-b.npy"], 3, "no-such-b.npy"),
        (["solve", POISSON, "--out", "no/such/dir/x.npy"], 3, "no directory 'no/such/dir'"),
        (["solve", POISSON, "--out", "x.xyz"], 3, ".npy, .mtx, .mtx.gz, .txt"),
        (["solve", POISSON, "--plot", "p.xyz"], 3, ".png, .svg, .pdf"),
        (["solve", POISSON, "--json", "/"], 3, "it is a directory"),
        (["generate", "poisson2d", "--out", "A.xyz"], 3, ".mtx, .mtx.gz, .npz, .cpufree"),
        (["suite", "no_such_suite"], 3, "no_such_suite"),
    ],
)
def test_input_error_is_one_line_with_code(
    run: Run, words: list[str], code: int, message: str
) -> None:
    ended = run(*words)
    assert ended.code == code
    assert message in ended.err
    assert ended.err.startswith("cpufree: error: ")
    assert ended.err.count("\n") == 1, ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ["no-such-command"],
        ["solve"],
        ["solve", POISSON, "--pes", "0"],
        ["solve", POISSON, "--blocks", "many"],
        ["solve", POISSON, "--rtol", "-1"],
        ["solve", POISSON, "--method", "gmres"],
        ["solve", POISSON, "--engine", "gpu"],
        ["solve", POISSON, "--gpus", "two"],
        ["solve", POISSON, "--gpus", ""],
        ["generate"],
        ["generate", "poisson2d"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_code_2(run: Run, words: list[str]) -> None:
    assert run(*words).code == 2


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("--method", "prgc"),
            "--method is 'prgc': give one of auto, cg, prcg, pipecg, minres, bicgstab (did you",
        ),
        (
            ("--pc", "ilu"),
            "--pc is 'ilu': give one of auto, jacobi, chebyshev, fsai, amg, none; ",
        ),
        (("--rtol", "-1"), "--rtol is '-1': give a number, 0 or more; "),
        (("--rtol", "nan"), "--rtol is 'nan': give a number, 0 or more; "),
        (("--time-limit", "0"), "--time-limit is '0': give a finite number above 0; "),
        (("--maxiter", "1e3"), "--maxiter is '1e3': give a whole number from 0; "),
        (("--pes", "9" * 5000), "give 'auto' or a whole number from 1 to 1024; "),
        (("--chebyshev-degree", "65"), "is '65': give a whole number from 1 to 64; "),
        (("--gpus", "foo"), "--gpus is 'foo': give auto, all, or device numbers such as 0,2-5 ("),
        (("--blcks", "2"), "no such option: --blcks"),
    ],
)
def test_wrong_value_is_one_line_with_the_value_and_what_may_stand_there(
    run: Run, words: tuple[str, ...], line: str
) -> None:
    ended = run("solve", POISSON, *words)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("cpufree: error: ") and line in ended.err
    assert "Value error" not in ended.err and "Input should" not in ended.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineError("engine fell over"), 4),
        (OutOfMemoryError("no room"), 5),
        (MemoryError(), 5),
        (OSError("disk is full"), 3),
        (CpufreeError("other"), 4),
        (ZeroDivisionError("oops"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_error_kind_decides_the_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(solve_command, "load_system", fail)
    ended = run("solve", POISSON)
    assert ended.code == code
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err


def test_debug_log_adds_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_LOG", "debug")
    ended = run("solve", "no-such-file.mtx")
    assert "Traceback" in ended.err
    assert "cpufree: error: " in ended.err


def test_warnings_are_one_line_on_stderr(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_ENGIN", "auto")
    ended = run("solve", POISSON)
    assert ended.code == 0
    assert ended.err.startswith("cpufree: warning: ")
    assert "CPUFREE_ENGINE" in ended.err


def test_a_warning_is_told_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_PE", "3")
    assert run("solve", POISSON, "--quiet").err.count("CPUFREE_PE is not known") == 1


def test_outputs_are_checked_before_the_solve(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> None:
        raise AssertionError("the matrix was loaded first")

    monkeypatch.setattr(solve_command, "load_system", forbidden)
    assert run("solve", POISSON, "--out", "no/such/dir/x.npy").code == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("solve", POISSON, "--out", "-"), "cannot write '-'"),
        (("generate", "poisson2d", "--out", "-"), "cannot write '-'"),
        (("stencil", "jacobi2d", "--grid", "9x9", "--iters", 1, "--out", "-"), "write '-'"),
        (("solve", POISSON, "--json", ""), "the name of a file to write is empty"),
        (("solve", POISSON, "--out", "x.txt", "--json", "./x.txt"), "'./x.txt' would be written"),
        (("solve", POISSON, "--plot", "x.png", "--json", "x.png"), "written twice"),
    ],
)
def test_outputs_that_would_be_lost_are_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run(*words)
    assert ended.code == 3
    assert message in ended.err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words", [("--out", "b.npy"), ("--rhs", "b.npy", "--json", "A.mtx"), ("--plot", "A.png")]
)
def test_files_of_the_system_are_not_written_over(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    scipy.io.mmwrite("A.mtx", scipy.sparse.eye_array(3))
    np.save("b.npy", np.ones(3))
    Path("A.png").symlink_to("A.mtx")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    ended = run("solve", "A.mtx", *words, *(() if "--rhs" in words else ("--rhs", "b.npy")))
    assert ended.code == 3
    assert "holds what is to be read" in ended.err
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("report", ["report.json", "-"])
def test_files_and_code_are_those_of_the_solve_where_nobody_reads_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: str
) -> None:
    monkeypatch.chdir(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    words = ["solve", POISSON, "--out", "x.npy", "--json", report, "--maxiter", "2"]
    with os.fdopen(writer, "w") as unread, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", unread)
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
    assert ended.value.code == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"x.npy", report} - {"-"})


def test_characters_that_stdout_does_not_have_are_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.txt"
    with path.open("w", encoding="ascii") as plain, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", plain)
        with pytest.raises(SystemExit) as ended:
            cli.main(["solve", POISSON])
    assert ended.value.code == 0
    assert r"relative to \u2016b\u2016" in path.read_text()


def test_solution_is_written_before_a_report_that_fails(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(display, "result_report", full)
    assert run("solve", POISSON, "--out", tmp_path / "x.npy").code == 3
    assert np.load(tmp_path / "x.npy").shape == (400,)


def test_suffix_of_a_file_to_write_may_be_in_upper_case(run: Run, tmp_path: Path) -> None:
    assert run("solve", POISSON, "--out", tmp_path / "x.NPY").code == 0
    assert np.load(tmp_path / "x.NPY").shape == (400,)


def test_report_that_cannot_be_written_leaves_the_old_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "report.json").write_text("old")
    monkeypatch.setattr("os.fsync", full)
    assert run("solve", POISSON, "--json", tmp_path / "report.json").code == 3
    assert (tmp_path / "report.json").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "report.json"]


def test_solution_is_rescued_when_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "there" / "x.npy"
    path.parent.mkdir()
    with pytest.raises(OSError, match=r"No space left.*x is saved in '(.*)'") as error:
        commands.save_solution(str(path), np.arange(3.0))
    saved = re.findall(r"saved in '(.*)'", str(error.value))[0]
    np.testing.assert_array_equal(np.load(saved), np.arange(3.0))
    assert not any(path.parent.iterdir())
