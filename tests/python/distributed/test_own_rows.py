"""Solves in processes of which each has its own rows alone: results, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from ranks_here import ROWS_PROGRAM, Ended, cli, finish, launched, start

import cpufree
from cpufree.generate import from_spec

SMALL = "gen:poisson2d?nx=40,ny=40"


def program(place: str, ranks: int, *words: str) -> list[Ended]:
    """Run the program of the tests as a number of ranks."""
    command = [str(ROWS_PROGRAM), *words]
    return finish([start(command, rank, ranks, place) for rank in range(ranks)])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.few(2)
def test_own_rows_give_the_bits_of_the_whole_matrix(place: str, ranks: int) -> None:
    ended = program(place, ranks, "own_rows", "poisson2d?nx=17,ny=13")
    assert [end.out for end in ended] == ["the same bits\n"] * ranks, ended


def test_own_rows_of_a_wide_stencil_give_the_bits_of_the_whole_matrix(place: str) -> None:
    ended = program(place, 3, "own_rows", "stencil27?nx=5,ny=6,nz=7")
    assert [end.out for end in ended] == ["the same bits\n"] * 3, ended


@pytest.mark.parametrize("method", ["minres", "bicgstab"])
def test_own_rows_of_matrices_that_are_not_positive_definite(place: str, method: str) -> None:
    ended = program(place, 3, "own_rows_of_other_methods", method, method)
    assert [end.out for end in ended] == ["the same bits\n"] * 3, ended


@pytest.mark.parametrize(
    ("suits", "method", "complaint"),
    [
        ("minres", "auto", "row 0 has the diagonal entry -0.5"),
        ("bicgstab", "auto", "Conjugate gradients need A = A.T. For a matrix that is meant so"),
        ("bicgstab", "minres", "minres needs A = A.T. For a matrix that is meant so"),
    ],
)
def test_own_rows_are_what_their_method_takes(
    place: str, suits: str, method: str, complaint: str
) -> None:
    assert complaint in program(place, 2, "own_rows_of_other_methods", suits, method)[0].out


def test_own_rows_are_solved_in_the_type_of_matrix_and_vector(place: str) -> None:
    ended = program(place, 2, "own_rows_of_some_type")
    assert [end.out for end in ended] == ["solved\n"] * 2, ended


def test_own_rows_tell_of_noise_in_the_symmetry_like_the_whole_matrix(place: str) -> None:
    ended = program(place, 2, "noisy_rows")
    assert [end.out for end in ended] == ["the same notes\n"] * 2, ended


def test_own_values_too_large_for_the_type_of_the_solve_are_refused(place: str) -> None:
    ended = program(place, 2, "rows_too_large")
    why = "entries of A are too large for float32: use float64"
    assert [end.out for end in ended] == [f"failed: rank 1: {why}\n", f"refused: {why}\n"], ended


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("overlapping", "rank 1 begins at row 28, but the ranks before it end with row 29"),
        ("missing", "rows 30 to 31 are missing: rank 1 begins at row 32"),
        ("columns", "rank 1: row 59 has column 90; columns run from 0 to 89"),
        (
            "unsymmetric",
            "entry (row 35, column 5) of rank 1 has no entry (row 5, column 35) of rank 0",
        ),
        ("value", "entry (row 29, column 30) is -1, but entry (row 30, column 29) is -0.5"),
        ("diagonal", "rank 1: row 40 has the diagonal entry -1"),
        ("dtype", "rank 1 has another type of entries than rank 0, 'float32' instead of 'float64'"),
        ("vector", "rank 1: b has shape (31,), but the matrix has 30 rows"),
        ("guess", "rank 1 has another first guess than rank 0, 'given' instead of 'none'"),
        ("whole", "rank 1 has another kind of matrix than rank 0"),
        ("metis", "rank 1: partition is 'metis', but ranks own the rows that they are given"),
    ],
)
@pytest.mark.few(4)
def test_what_is_wrong_is_told_in_all_ranks(place: str, wrong: str, complaint: str) -> None:
    ended = program(place, 3, "wrong_rows", wrong)
    for rank, end in enumerate(ended):
        said = re.sub("^(failed|refused): ", "", end.out)
        # Who has found it says so without its own name.
        expected = complaint.removeprefix("rank 1: ") if rank == 1 else complaint
        if wrong == "value":  # found from both sides
            mirrored = "entry (row 30, column 29) is -0.5, but entry (row 29, column 30) is -1"
            assert expected in said or mirrored in said, ended
        else:
            assert expected in said, ended


# -- the command line --


def solved(*words: str, ranks: int = 3) -> Ended:
    ended = launched("solve", *words, "--engine", "cpu_processes", "--blocks", "1", ranks=ranks)
    assert ended.code == 0, ended
    return ended


def test_ranks_that_make_their_own_rows_write_x_together(tmp_path: Path) -> None:
    file, report = tmp_path / "x.npy", tmp_path / "report.json"
    ended = solved(SMALL, "--input", "rows", "--out", str(file), "--json", str(report))
    assert "written by 3 ranks" in ended.out
    assert "own rows: each rank has read or made its part" in ended.out.replace("\n", " ")
    A, x = from_spec("poisson2d?nx=40,ny=40"), np.load(file)
    facts = json.loads(report.read_text())
    assert (facts["rows"], facts["nnz"]) == (A.shape[0], A.nnz)
    assert np.linalg.norm(1.0 - A @ x) == pytest.approx(facts["true_residual"], rel=1e-6)
    assert sorted(tmp_path.iterdir()) == [report, file]


def test_own_rows_of_a_file_give_the_bits_of_the_whole_file(tmp_path: Path) -> None:
    matrix, b, x0 = tmp_path / "A.cpufree", tmp_path / "b.npy", tmp_path / "x0.npy"
    cpufree.save_matrix(matrix, from_spec("poisson3d?nx=7,ny=8,nz=9"))
    np.save(b, np.sin(np.arange(504.0)))
    np.save(x0, np.cos(np.arange(504.0)))
    found = []
    for kind in ("rows", "whole"):
        file = tmp_path / f"{kind}.npy"
        words = [str(matrix), "--rhs", str(b), "--x0", str(x0), "--input", kind, "--no-check"]
        solved(*words, "--out", str(file), ranks=2)
        found.append(np.load(file))
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.thorough
def test_random_right_hand_sides_are_those_of_the_whole_system(tmp_path: Path) -> None:
    found = []
    for kind in ("rows", "whole"):
        file = tmp_path / f"{kind}.npy"
        words = ["gen:poisson1d?n=900", "--rhs", "random", "--input", kind, "--no-check"]
        solved(*words, "--rtol", "1e-9", "--out", str(file))
        found.append(np.load(file))
    assert found[0].tobytes() == found[1].tobytes()


def test_own_rows_are_not_written_by_one_process(tmp_path: Path) -> None:
    file = tmp_path / "x.mtx"
    ended = launched("solve", SMALL, "--input", "rows", "--out", str(file))
    assert ended.code == 3
    said = " ".join(ended.err.split())
    assert "write x together, into a .npy file" in said
    assert said.endswith("or use --input whole")
    assert not file.exists()


def test_rows_of_a_text_file_are_refused_with_advice(tmp_path: Path) -> None:
    file = tmp_path / "A.mtx"
    cpufree.save_matrix(file, from_spec("poisson1d?n=9"))
    ended = launched("solve", str(file), "--input", "rows")
    assert ended.code == 3, ended
    assert "rows by themselves are read from .cpufree files only" in ended.err


def test_an_engine_of_one_process_is_named_as_what_forbids_own_rows() -> None:
    ended = launched("solve", SMALL, "--input", "rows", "--engine", "cpu_threads")
    assert ended.code == 3, ended
    assert "engine 'cpu_threads' is one of a single process" in " ".join(ended.err.split())


def test_one_process_has_no_rows_of_its_own(place: str) -> None:
    ended = finish([start(cli(["solve", SMALL, "--input", "rows"]), 0, 1, "", CPUFREE_RANK="")])
    assert ended[0].code == 3
    assert "is for several processes" in ended[0].err
