"""The check of the answer by the command line: what it finds, and what follows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runner import Run, runner
from extended import residual_norm

from cpufree.cli import solve_command
from cpufree.matrix.load import as_csr
from cpufree.solvers.scipy_functions import answer_check
from cpufree.solvers.scipy_functions.answer_check import AnswerCheck, check_answer, extended_norm


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


def random_rows(n: int, longest: int) -> sp.csr_array:
    """Return a symmetric matrix with rows of all lengths, of which some have nothing."""
    rng = np.random.default_rng(4)
    A = sp.random_array((n, n), density=longest / n / 2, rng=rng, format="csr")
    return sp.csr_array(A + A.T)


def test_extended_norm_is_that_of_all_rows_whatever_the_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    A = random_rows(300, 4)
    assert (np.diff(A.indptr) == 0).any()
    rng = np.random.default_rng(5)
    b, x = rng.standard_normal(300), rng.standard_normal(300)
    expected = np.linalg.norm(b - A @ x)
    for entries in (1, 7, 100, 10**6):
        monkeypatch.setattr(answer_check, "ENTRIES", entries)
        assert extended_norm(A, b, x) == pytest.approx(expected, rel=1e-12)


def test_extended_norm_has_more_digits_than_plain_sums() -> None:
    rng = np.random.default_rng(6)
    A = sp.csr_array(rng.standard_normal((3, 5000)))
    A = sp.csr_array(sp.vstack([A, sp.eye_array(5000).tocsr()[:4997]]))
    x = rng.standard_normal(5000) * 1e8
    b = (A.astype(np.longdouble).toarray() @ x.astype(np.longdouble)).astype(np.float64)
    assert extended_norm(A, b, x) == pytest.approx(residual_norm(A, b, x), rel=1e-3)


def test_residuals_are_those_of_the_type_of_x() -> None:
    A = as_csr(random_rows(5000, 9))
    b, x = np.ones(5000), np.linspace(0, 1, 5000)
    for dtype in (np.float64, np.float32):
        exact = A.to_scipy().astype(dtype).astype(np.float64)
        found = check_answer(A, b.astype(dtype), x.astype(dtype), 1e9).double
        expected = np.linalg.norm(b - exact @ x.astype(dtype).astype(np.float64))
        assert found == pytest.approx(expected, rel=1e-12)


def test_sums_in_extended_precision_are_taken_only_where_scipy_is_above_the_tolerance() -> None:
    A = as_csr(sp.eye_array(4).tocsr())
    b = np.ones(4)
    assert check_answer(A, b, b, 1e-9) == AnswerCheck(0.0)
    above = check_answer(A, b, np.zeros(4), 1e-9)
    assert above.double == above.extended == pytest.approx(2.0)


def test_an_answer_that_the_check_contradicts_is_not_called_converged(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve_command, "check_answer", lambda *_: AnswerCheck(3.0, 2.5))
    report, x = tmp_path / "report.json", tmp_path / "x.npy"
    ended = run("solve", "gen:poisson2d?nx=9,ny=9", "--json", report, "--out", x)
    assert ended.code == 18
    assert "NOT converged" in ended.out and "(UNCONFIRMED)" in ended.out
    assert "the check of the answer 2.500e+00, above the tolerance" in " ".join(ended.out.split())
    found = json.loads(report.read_text())
    assert found["converged"] is False
    assert found["reason"] == "UNCONFIRMED"
    assert found["check"] == {"double": 3.0, "extended": 2.5}
    assert np.load(x).shape == (81,)
    quiet = run("solve", "gen:poisson2d?nx=9,ny=9", "--quiet")
    assert quiet.code == 18 and "UNCONFIRMED" in quiet.out


def test_scipy_above_the_tolerance_by_its_own_rounding_contradicts_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve_command, "check_answer", lambda *_: AnswerCheck(3.0, 1e-9))
    ended = run("solve", "gen:poisson2d?nx=9,ny=9")
    assert ended.code == 0
    assert "in extended precision" in ended.out


def test_a_long_row_is_confirmed_or_not_converged(run: Run, tmp_path: Path) -> None:
    n = 20_000
    v = np.random.default_rng(0).standard_normal(n) * 0.5
    column = sp.csr_array(v[:, None])
    A = sp.block_array([[sp.eye_array(n), column], [column.T, sp.csr_array([[v @ v + 0.01]])]])
    matrix, b, report = tmp_path / "A.npz", tmp_path / "b.npy", tmp_path / "report.json"
    sp.save_npz(matrix, sp.csr_array(A))
    np.save(b, np.ones(n + 1))
    for rtol in (1e-9, 1e-11, 1e-14):
        ended = run("solve", matrix, "--rhs", b, "--rtol", rtol, "--pes", 2, "--json", report)
        found = json.loads(report.read_text())
        assert (ended.code, found["reason"]) in ((0, "CONVERGED_RTOL"), (11, "STAGNATED"))
        assert found["check"]["double"] > 1e-10 * found["bnorm"]  # its sums round by that much
        extended = found["check"]["extended"]
        assert (ended.code == 0) == (extended is None or extended <= 1.01 * rtol * found["bnorm"])
