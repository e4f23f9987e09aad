"""`cpufree solve`: what it prints, what it writes, and with which code it ends."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_runner import POISSON, Run, runner
from fake_core import FakeCore

from cpufree.cli import endings
from cpufree.engines.progress_bar import ProgressBar
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
