"""`cpufree solve`: what it prints, what it writes, and with which code it ends."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_runner import POISSON, Run, runner
from fake_core import FakeCore

from cpufree.cli import app as cli
from cpufree.cli import commands, display, endings, solve_command
from cpufree.errors import CpufreeError, EngineError, OutOfMemoryError
from cpufree.progress_bar import ProgressBar
from cpufree.solvers.result import Reason


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


@pytest.fixture
def indefinite(tmp_path: Path) -> Path:
    """Return the file of a symmetric matrix with positive diagonal and a negative eigenvalue."""
    path = tmp_path / "indefinite.mtx"
    block = np.array([[1.0, 2.0], [2.0, 1.0]])
    scipy.io.mmwrite(path, scipy.sparse.coo_matrix(scipy.sparse.block_diag([block] * 4)))
    return path


# --- solve ---------------------------------------------------------------------------------------


def test_solve_converges_with_code_0_and_both_residuals(run: Run, engine: str) -> None:
    ended = run("solve", POISSON, "--rtol", "1e-8", "--pes", 2)
    assert ended.code == 0
    assert re.search(r"^Converged after \d+ iterations: .*\(CONVERGED_RTOL\)$", ended.out, re.M)
    found = dict(re.findall(r"^  (\S.*?)  +\S+ +relative to ‖b‖: (\S+) *$", ended.out, re.M))
    assert set(found) == {
        "tolerance",
        "recursive residual",
        "true residual b - A x",
        "the same on the host",
    }
    assert float(found["tolerance"]) == 1e-8
    assert 0 < float(found["true residual b - A x"]) <= 1e-8
    assert float(found["the same on the host"]) == pytest.approx(
        float(found["true residual b - A x"]), rel=1e-2
    )
    assert f"{engine}: 2 " in ended.out


def test_solve_writes_solution_that_solves(run: Run, tmp_path: Path) -> None:
    matrix, b, out = tmp_path / "A.mtx.gz", tmp_path / "b.npy", tmp_path / "x.npy"
    assert run("generate", "poisson2d?nx=9,ny=7", "--out", matrix).code == 0
    np.save(b, np.arange(63.0))
    assert run("solve", matrix, "--rhs", b, "--rtol", "1e-12", "--out", out).code == 0
    exact = scipy.sparse.linalg.spsolve(scipy.io.mmread(matrix).tocsc(), np.arange(63.0))
    np.testing.assert_allclose(np.load(out), exact, rtol=1e-8)


def test_solve_starts_from_x0(run: Run, tmp_path: Path) -> None:
    x = tmp_path / "x.npy"
    first = run("solve", POISSON, "--rtol", "1e-6", "--out", x)
    again = run("solve", POISSON, "--rtol", "1e-6", "--x0", x)
    assert "Converged after 0 iterations" not in first.out
    assert "Converged after 0 iterations" in again.out


def test_solve_writes_json_report(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    run("solve", POISSON, "--json", path, "--pes", 3, "--method", "cg")
    report = json.loads(path.read_text())
    assert report["problem"] == POISSON
    assert (report["rows"], report["nnz"]) == (400, 400 * 5 - 4 * 20)
    assert (report["converged"], report["reason"]) == (True, "CONVERGED_RTOL")
    assert (report["method"], report["pc"], report["pes"]) == ("cg", "jacobi", 3)
    assert report["tolerances"]["residual"] == pytest.approx(1e-5 * 20)
    assert len(report["history"]) == report["iterations"] + 1
    assert report["true_residual"] <= report["tolerances"]["residual"]
    assert any(reason.startswith("cg: ") for reason in report["why"])
    assert "x" not in report


def test_json_report_is_enough_to_run_the_same_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPUFREE_PES", "2")
    words = ("--rtol", "1e-7", "--no-check", "--precision", "single")
    first = json.loads(run("solve", POISSON, *words, "--json", "-").out)
    asked = {"rtol": 1e-7, "check": False, "precision": "single", "json": "-"}
    assert first["options"]["given"] == asked
    used = first["options"]["resolved"]
    assert (used["pes"], used["method"], used["maxiter"]) == (2, "prcg", 4000)
    assert used["wait_limit"] == 60.0
    assert first["environment"]["CPUFREE_PES"] == "2"
    assert {"cpufree", "date", "host", "processes"} <= set(first)
    again = json.loads(run(*first["command"][1:]).out)
    assert (again["iterations"], again["history"]) == (first["iterations"], first["history"])


def test_solve_json_on_stdout_is_only_json(run: Run) -> None:
    ended = run("solve", POISSON, "--json", "-")
    assert json.loads(ended.out)["converged"] is True
    assert "Converged after" in ended.err


def test_solve_writes_plot(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "convergence.png"
    ended = run("solve", POISSON, "--plot", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert f"plot in {path}" in ended.out


def test_solve_quiet_leaves_one_line_with_the_verdict(run: Run) -> None:
    for words, code in (((), 0), (("--maxiter", 2), 10)):
        ended = run("solve", POISSON, "--quiet", *words)
        assert (ended.code, ended.err, ended.out.count("\n")) == (code, "", 1)
        assert ended.out.startswith("Converged after" if code == 0 else "NOT converged after 2")


def test_report_in_a_pipe_has_no_blanks_at_the_end_of_lines(run: Run) -> None:
    for words in (("solve", POISSON), ("info", POISSON, "--pes", 2), ("doctor",)):
        lines = run(*words).out.splitlines()
        assert [line for line in lines if line != line.rstrip()] == []


def test_solve_takes_the_options_that_python_has(run: Run, tmp_path: Path) -> None:
    x = tmp_path / "x.npy"
    words = ("--precision", "single", "--reorder", "rcm", "--wait-limit", 30, "-o", x)
    words += ("--pc", "chebyshev", "--chebyshev-degree", 3, "--replace-every", 10)
    ended = run("solve", POISSON, *words)
    assert ended.code == 0
    assert np.load(x).dtype == np.float32
    assert "RCM order: asked for" in ended.out
    few = run("solve", POISSON, "--pc", "chebyshev", "--chebyshev-degree", 8, "-q")
    assert few.out != run("solve", POISSON, "--pc", "chebyshev", "--chebyshev-degree", 1, "-q").out


def test_solve_without_terminal_shows_no_progress(run: Run) -> None:
    assert run("solve", POISSON).err == ""


def test_solve_that_does_not_converge_says_so_and_keeps_x(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "x.npy"
    ended = run("solve", POISSON, "--maxiter", 3, "--out", out)
    assert ended.code == 10
    assert "NOT converged after 3 iterations" in ended.out
    assert "DIVERGED_ITS" in ended.out
    assert "--maxiter" in ended.out
    assert np.load(out).any()


def test_report_says_what_the_right_hand_side_is(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", 3.0 * np.ones(400))
    report = tmp_path / "report.json"
    assert "all ones (the default of --rhs), ‖b‖ 2.000e+01" in run("solve", POISSON).out
    assert "random, standard normal, ‖b‖" in run("solve", POISSON, "--rhs", "random").out
    of_file = run("solve", POISSON, "--rhs", tmp_path / "b.npy", "--json", report)
    assert f"file {tmp_path / 'b.npy'}, ‖b‖ 6.000e+01" in of_file.out
    assert json.loads(report.read_text())["rhs"] == f"file {tmp_path / 'b.npy'}"


def test_higher_limit_is_advised_with_reserve_where_the_residual_has_risen(run: Run) -> None:
    chain = ("gen:poisson1d?n=400", "--pc", "none", "--rtol", 1e-9)
    rising = run("solve", *chain, "--maxiter", 3).out
    assert "14 times what it was at first" in rising
    assert "after many, a higher --maxiter will not help" in rising
    falling = run("solve", POISSON, "--rtol", 1e-9, "--maxiter", 30).out
    assert "Raise --maxiter, loosen --rtol, or try --pc fsai" in falling


def test_help_of_solve_has_every_exit_code(run: Run) -> None:
    text = run("solve", "--help").out
    for ending in endings.ENDINGS.values():
        assert f"{ending.exit_code} {ending.words.split()[0]}" in " ".join(text.split())


def test_solve_names_indefinite_matrix(run: Run, indefinite: Path) -> None:
    ended = run("solve", indefinite, "--rhs", "random")
    assert ended.code == 14
    assert "DIVERGED_INDEFINITE_MAT" in ended.out


def test_solve_random_right_hand_side_is_the_same_every_time(run: Run, tmp_path: Path) -> None:
    saved = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path in saved:
        run("solve", POISSON, "--rhs", "random", "--out", path)
    assert np.array_equal(np.load(saved[0]), np.load(saved[1]))


def test_solve_has_the_times_of_kernel_and_iteration(run: Run) -> None:
    time = re.search(r"^  time +(.*?) *$", run("solve", POISSON).out, re.M)
    assert time
    names = [part.split(" ", 2)[2] for part in time[1].split(", ")]
    assert names == ["setup", "solve", "kernel", "per iteration"]


def test_solve_on_gpus_names_them_and_says_why_so_many(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeCore(4)
    monkeypatch.setattr("cpufree._core", fake)
    ended = run("solve", POISSON, "--gpus", "0,2-3", "--engine", "cuda_p2p")
    assert ended.code == 0, ended.err
    text = " ".join(ended.out.split())
    assert "cuda_p2p: 3 × NVIDIA H200 (GPU 0, 2, 3), 3 PEs × 132 blocks" in text
    assert "3 PEs on GPUs 0, 2-3: asked for" in text
    assert "in the format in use" in text
    assert "on chip: the matrix and 5 vectors" in text


def test_solve_writes_gpus_to_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCore(2)
    monkeypatch.setattr("cpufree._core", fake)
    ended = run("solve", POISSON, "--engine", "cuda_p2p", "--gpus", "all", "--json", "-")
    report = json.loads(ended.out)
    assert (report["engine"], report["gpus"]) == ("cuda_p2p", [0, 1])
    assert report["device"] == "2 × NVIDIA H200"


@pytest.mark.parametrize(
    ("fake", "words", "code", "message"),
    [
        (FakeCore(0, note="there is no driver"), [], 4, "there is no driver"),
        (FakeCore(2), ["--gpus", "5"], 3, "gpus names device 5"),
    ],
    ids=["no GPU", "unknown"],
)
def test_gpus_that_cannot_be_had_end_with_a_code(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    fake: FakeCore,
    words: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.setattr("cpufree._core", fake)
    ended = run("solve", POISSON, "--engine", "cuda_p2p", *words)
    assert ended.code == code
    assert message in ended.err


def test_pes_share_a_gpu_that_is_named_several_times(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree._core", FakeCore(2))
    ended = run("solve", POISSON, "--engine", "cuda_p2p", "--gpus", "0,0,1,1")
    assert ended.code == 0
    assert "of the PEs, 2 share GPU 0, 2 share GPU 1" in ended.out


@pytest.mark.parametrize("pc", ["jacobi", "chebyshev", "none"])
@pytest.mark.parametrize("method", ["auto", "cg", "prcg", "pipecg"])
def test_solve_offers_every_method_and_preconditioner(run: Run, method: str, pc: str) -> None:
    assert run("solve", POISSON, "--method", method, "--pc", pc, "-q").code == 0


def test_interrupt_keeps_the_solution_and_ends_with_130(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: ProgressBar, iteration: int, norm: float) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(ProgressBar, "__call__", interrupt)
    out = tmp_path / "x.npy"
    system = "gen:poisson2d?nx=300,ny=300"
    words = ["--rtol", "0", "--pc", "jacobi", "--maxiter", 10**7]
    ended = run("solve", system, *words, "--out", out)
    assert ended.code == 130
    assert "INTERRUPTED" in ended.out
    assert np.isfinite(np.load(out)).all()


def test_verdict_tells_the_meaning_of_the_reason(run: Run) -> None:
    ended = run("solve", "gen:poisson2d?nx=20,ny=20", "--maxiter", 1)
    assert f"NOT converged after 1 iteration: {Reason.DIVERGED_ITS.meaning}" in ended.out


# --- errors --------------------------------------------------------------------------------------


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
        (("--method", "prgc"), "--method is 'prgc': give one of auto, cg, prcg, pipecg (did you"),
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
