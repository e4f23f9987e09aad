"""Compiled programs in several processes: values, errors, ends, and scripts of `cpufree run`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from paths import SUPPORT
from ranks_here import all_say, launched, team

import cpufree
from cpufree.errors import UnsupportedError

runs = partial(team, program=SUPPORT / "ranks/rank_grid_program.py")
SCRIPT = """
import numpy as np
import cpufree


@cpufree.program
def spread(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])


u = np.random.default_rng(1).random((40, 9))
plain = u.copy()
spread(u, 11)
spread.function(plain, 11)
assert spread.engine == "cpu_processes" and spread.pes == 2 and np.array_equal(u, plain)
print("the same")
"""


@pytest.mark.parametrize(
    "ranks", [3, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 2, 4))]
)
@pytest.mark.timeout(600)
def test_programs_in_processes_give_the_bits_of_plain_python(ranks: int, place: str) -> None:
    assert [(end.out, end.code) for end in runs("bits", place, ranks)] == [
        ("the same\n", 0)
    ] * ranks


def test_arrays_that_differ_are_told_in_all_processes(place: str) -> None:
    all_say(runs("other_values", place), "rank 1 has another array a than rank 0", [0, 1, 2])


def test_constants_that_differ_are_told_in_all_processes(place: str) -> None:
    said = "rank 1 has another constant of the program than rank 0"
    all_say(runs("other_constants", place), said, [0, 1, 2])


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("too_many", "the arrays have too few rows for 3 processes: start"),
        ("other_pes", "pes is 4, but there are 3 processes"),
    ],
)
def test_numbers_of_processes_that_do_not_fit_are_refused(
    what: str, words: str, place: str
) -> None:
    for end in runs(what, place):
        assert end.code != 0
        assert words in end.out + end.err


@pytest.mark.parametrize(("what", "words"), [("faults", "refused"), ("stopped", "ended")])
def test_runs_that_do_not_end_well_end_in_all_processes(what: str, words: str, place: str) -> None:
    assert [end.out for end in runs(what, place)] == [f"{words}\n"] * 3


def test_a_script_of_several_processes_is_what_it_is_in_one(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    words = ("env", "CPUFREE_ENGINE=cpu_processes", sys.executable, str(script))
    ended = launched("--", *words, ranks=2)
    assert (ended.code, ended.out.count("the same")) == (0, 2), ended


def test_the_command_of_several_processes_speaks_once(tmp_path: Path) -> None:
    file, out = tmp_path / "spread.py", tmp_path / "u.npy"
    text = SCRIPT.partition("u = np")[0]
    file.write_text(f"{text}\ndef arguments():\n    return np.eye(30), 7\n")
    words = ("--engine", "cpu_processes", "--out", str(out))
    ended = launched("program", str(file), *words, ranks=2)
    assert ended.code == 0, ended
    assert ended.out.count("cpu_processes: 2 PEs") == 1, ended
    u = np.eye(30)
    for _ in range(7):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    assert np.array_equal(np.load(out), u)


def test_other_engines_are_refused_with_what_to_use_instead() -> None:
    @cpufree.program
    def nothing(u):  # type: ignore[no-untyped-def]
        u += 1

    with pytest.raises(UnsupportedError, match="choose cuda_p2p for the GPUs of a machine"):
        nothing.run((np.zeros((4, 4)),), engine="nvshmem")
