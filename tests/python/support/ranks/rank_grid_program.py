"""A member of a team that calls compiled programs: what it does is named by its first argument."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "programs"))

from grid_programs import (
    CASES,
    as_tuple,
    assert_same,
    case,
    copies,
    grows_too_large,
    plainly,
    waves_without_end,
)
from rank_program import main, say

import cpufree
from cpufree import distributed
from cpufree.errors import ProgramError

WEIGHTS = np.ones(7)
NAMES = ("jacobi_2d", "fdtd_2d", "gray_scott", "until_still", "channel_flow", "upwind_in_place")


@cpufree.program
def weighted(u, steps):
    for _ in range(steps):
        u[1:-1] = WEIGHTS * (u[2:] + u[:-2])


def bits(team: distributed.Team) -> None:
    """Programs with halos, rings, reductions and loops that stop."""
    for name in NAMES:
        assert name in CASES
        program, arguments = case(name, 23)
        plain, ours = copies(arguments), copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        found = as_tuple(program.run(ours, engine="cpu_processes", wait_limit=300))
        assert (program.engine, program.pes) == ("cpu_processes", team.size)
        assert_same(name, plain, ours)
        assert_same(name, expected, found)
    say("the same")


def other_values(team: distributed.Team) -> None:
    """Rank 1 has other values."""
    program, (a, b, steps) = case("jacobi_2d", 23, seed=1 + (team.rank == 1))
    program.run((a, b, steps), engine="cpu_processes")


def other_constants(team: distributed.Team) -> None:
    """Rank 1 has other values in an array that the program finds in its module."""
    WEIGHTS[:] = 1.0 + (team.rank == 1)
    weighted.run((np.ones((30, 7)), 3), engine="cpu_processes")


def too_many(team: distributed.Team) -> None:
    """There are more processes than rows."""
    u = np.zeros((2, 30))
    waves_without_end.run((u, 3), engine="cpu_processes")


def faults(team: distributed.Team) -> None:
    """Python's rules for numbers are broken: all ranks say so, no array is written."""
    u = np.zeros((12, 8))
    try:
        grows_too_large.run((u, 100), engine="cpu_processes", wait_limit=300)
    except ProgramError as error:
        assert "64 bits" in str(error) and not u.any()
        say("refused")


def stopped(team: distributed.Team) -> None:
    """One rank's progress says no: all end, the arrays are as they were."""
    u = np.random.default_rng(1).random((30, 7))
    before = u.copy()

    def follow(turn: int, _: float) -> bool:
        return team.rank != team.size - 1

    waves_without_end.run((u, 10**12), engine="cpu_processes", wait_limit=300, progress=follow)
    assert np.array_equal(u, before)
    say("ended")


def other_pes(team: distributed.Team) -> None:
    """Another number of PEs is asked for than there are processes."""
    program, arguments = case("jacobi_2d", 23)
    program.run(arguments, engine="cpu_processes", pes=team.size + 1)


if __name__ == "__main__":
    sys.exit(main(globals()))
