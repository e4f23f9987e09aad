"""Iterations on grids in several processes: values, parts, errors, and the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from paths import SUPPORT
from ranks_here import (
    LIMIT,
    PATIENCE,
    all_say,
    children,
    clean,
    cli,
    finish,
    launched,
    start,
    team,
    wait_until_at_work,
)

from cpufree.stencil import jacobi

PROGRAM = SUPPORT / "ranks/rank_stencil_program.py"
SMALL = ("stencil", "jacobi2d", "--grid", "100x70")

runs = partial(team, program=PROGRAM)


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ranks", [3, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 2, 4, 5))]
)
@pytest.mark.parametrize("what", ["boundaries", "steps", "tolerance"])
def test_processes_have_the_bits_of_one_process(what: str, ranks: int, place: str) -> None:
    assert [end.out for end in runs(what, place, ranks)] == ["the same\n"] * ranks


@pytest.mark.parametrize("what", ["own_parts", "by_function", "again"])
def test_processes_have_the_bits_of_one_process_in_parts(what: str, place: str) -> None:
    assert [end.out for end in runs(what, place)] == ["the same\n"] * 3


def test_a_time_limit_ends_all_processes_at_one_iteration(place: str) -> None:
    assert [end.out for end in runs("time_limit", place)] == ["TIME_LIMIT True\n"] * 3


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("other_values", "rank 1 has another first values than rank 0"),
        ("other_options", "rank 1 has another option iterations than rank 0"),
    ],
)
def test_calls_that_differ_are_told_in_all_processes(what: str, words: str, place: str) -> None:
    all_say(runs(what, place), words, [0, 1, 2])


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("bad_values", "u0[3, 4] is nan: values must be finite"),
        ("bad_function", "u0 returns values of shape"),
        ("lost_file", "the disk has gone"),
    ],
)
@pytest.mark.few(1)
def test_values_that_one_rank_alone_finds_wrong_end_all(what: str, words: str, place: str) -> None:
    ended = runs(what, place)
    all_say(ended, "rank 1: ", [0, 2])
    all_say(ended, words, [0, 2])
    assert ended[1].code != 0


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("too_many", "the grid has rows for 2 PEs, and there are 3 processes"),
        ("other_pes", "pes is 4, but there are 3 processes"),
    ],
)
def test_numbers_of_processes_that_do_not_fit_are_refused(
    what: str, words: str, place: str
) -> None:
    for end in runs(what, place):
        assert end.code != 0
        assert words in end.out + end.err


def test_a_rank_killed_in_mid_run_ends_all(place: str) -> None:
    ended = runs("killed", place)
    assert [end.code for end in ended] == [4, -9, 4]
    for rank in (0, 2):
        assert "rank 1 (" in ended[rank].out


def test_a_wait_that_is_too_long_is_told_in_all_processes(place: str) -> None:
    assert [end.out for end in runs("short_wait", place)] == ["waited True\n"] * 3


# --- the command ---------------------------------------------------------------------------------


def test_the_command_writes_the_bits_of_one_process(tmp_path: Path) -> None:
    file, report = tmp_path / "u.npy", tmp_path / "report.json"
    words = ("stencil", "jacobi2d", "--grid", "1000x700", "--iters", "500")
    ended = launched(*words, "--out", str(file), "--json", str(report), ranks=4)
    assert ended.code == 0, ended
    assert ended.out.count("jacobi2d: 500 iterations") == 1
    assert "written by 4 ranks" in ended.out
    u0 = np.zeros((1000, 700))
    u0[0] = 1.0
    assert np.load(file).tobytes() == jacobi(u0, 500, engine="cpu_threads", pes=4).u.tobytes()
    facts = json.loads(report.read_text())
    assert (facts["engine"], facts["pes"]) == ("cpu_processes", 4)
    assert facts["shape"] == [1000, 700]
    assert sorted(tmp_path.iterdir()) == [report, file]


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.few(1)
def test_random_values_are_those_of_one_process(precision: str, tmp_path: Path) -> None:
    file = tmp_path / "u.npy"
    words = (*SMALL, "--iters", "9", "--init", "random:3", "--precision", precision)
    assert launched(*words, "--out", str(file)).code == 0
    dtype = np.float32 if precision == "single" else np.float64
    u0 = np.random.default_rng(3).random((100, 70), dtype=dtype)
    assert np.load(file).tobytes() == jacobi(u0, 9, engine="cpu_threads").u.tobytes()


def test_values_of_a_file_are_read_by_all(tmp_path: Path) -> None:
    u0 = np.random.default_rng(1).random((40, 30), dtype=np.float32)
    np.save(tmp_path / "u0.npy", u0)
    words = ("stencil", "jacobi2d", "--init", str(tmp_path / "u0.npy"), "--iters", "9")
    assert launched(*words, "--out", str(tmp_path / "u.npy")).code == 0
    expected = jacobi(u0, 9, engine="cpu_threads").u
    assert np.load(tmp_path / "u.npy").tobytes() == expected.tobytes()


def test_check_compares_all_of_the_values() -> None:
    ended = launched(*SMALL, "--iters", "20", "--check")
    assert ended.code == 0, ended
    assert ended.out.count("equal to the serial reference, bit for bit") == 1


def test_the_command_gives_the_exit_code_of_the_run() -> None:
    assert launched(*SMALL, "--iters", "5", "--tol", "1e-9", "-q").code == 10


def test_the_command_tells_once_what_is_wrong_with_an_option() -> None:
    ended = launched("stencil", "jacobi2d", "--grid", "8y8", "--iters", "5")
    assert ended.code == 2
    assert ended.err.count("is no grid") == 1


def test_the_command_tells_once_of_a_file_that_is_not_there() -> None:
    ended = launched("stencil", "jacobi2d", "--init", "nowhere.npy", "--iters", "5")
    assert ended.code == 3
    assert ended.err.count("cpufree: error:") == 1
    assert "nowhere.npy" in ended.err


def test_the_command_tells_once_of_more_processes_than_rows() -> None:
    ended = launched("stencil", "jacobi2d", "--grid", "3x4", "--iters", "5")
    assert ended.code == 3
    assert ended.err.count("cpufree: error:") == 1
    assert "start no more than it has" in ended.err


def test_commands_with_different_options_end_with_one_message(place: str) -> None:
    ended = finish([start(cli([*SMALL, "--iters", str(5 + k)]), k, 2, place) for k in range(2)])
    assert [end.code for end in ended] == [4, 4]
    said = "".join(end.err for end in ended)
    assert said.count("cpufree: error:") == 1
    assert "rank 1 has another option iterations than rank 0" in said


def test_an_engine_of_one_process_keeps_ranks_apart(place: str) -> None:
    words = cli([*SMALL, "--iters", "5", "--engine", "cpu_threads"])
    ended = finish([start(words, rank, 2, place) for rank in range(2)])
    assert [end.out.count("jacobi2d: 5 iterations") for end in ended] == [1, 1]


def test_an_engine_of_many_processes_needs_a_launcher() -> None:
    words = cli([*SMALL, "--iters", "5", "--engine", "cpu_processes"])
    (ended,) = finish([start(words, 0, 1, "", CPUFREE_RANK="", CPUFREE_RANKS="")])
    assert ended.code == 4
    assert "cpufree run -n N" in ended.err


def test_ctrl_c_ends_all_ranks_and_keeps_the_values_so_far(tmp_path: Path) -> None:
    file = tmp_path / "u.npy"
    words = ["run", "-n", "2", *SMALL, "--iters", str(10**12), "--out", str(file)]
    launcher = subprocess.Popen(
        [sys.executable, *cli(words)],
        env=clean() | {"CPUFREE_JOIN_LIMIT": LIMIT},
        start_new_session=True,  # so that the signal reaches it and its ranks, as from a terminal
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_at_work(lambda: children(launcher.pid), 2)
    os.killpg(launcher.pid, signal.SIGINT)
    _, said = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 130, said
    assert np.load(file).shape == (100, 70)
