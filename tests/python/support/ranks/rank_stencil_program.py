"""A member of a team that iterates on grids: what it does is named by its first argument."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from typing import Any

import numpy as np
from rank_program import main, say

from cpufree import distributed
from cpufree.stencil import StencilResult, jacobi

ENGINE = os.environ.get("CPUFREE_TEST_RANKS", "cpu_processes")
FOREVER = 2**40


def grid(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape).astype(dtype)


def same(part: StencilResult, one: StencilResult) -> bool:
    """Return whether a part has the bits of all the grid, and tells the same of the run."""
    values = np.ascontiguousarray(one.u[part.box])
    told = [(r.iterations, r.reason, str(r.residual), r.plan["checks"]) for r in (part, one)]
    return values.tobytes() == part.u.tobytes() and told[0] == told[1]


def compare(u0: np.ndarray, iters: int, **how: Any) -> None:
    """Run in all processes, and on the CPU engine in this one."""
    part = jacobi(u0, iters, engine=ENGINE, wait_limit=300, **how)
    team = distributed.current()
    assert team is not None
    assert (part.engine, part.pes, part.shape) == (ENGINE, team.size, u0.shape)
    how.pop("gather", None)
    assert same(part, jacobi(u0, iters, engine="cpu_threads", **how)), (u0.shape, iters, how)


def boundaries(team: distributed.Team) -> None:
    """Both boundaries, in both types and numbers of dimensions, with and without a source."""
    for shape, dtype in itertools.product([(41, 33), (12, 11, 14)], [np.float32, np.float64]):
        source = grid(*shape, dtype=dtype, seed=1)
        for boundary, term in itertools.product(["dirichlet", "periodic"], [None, source]):
            compare(grid(*shape, dtype=dtype), 12, boundary=boundary, source=term)
    say("the same")


def steps(team: distributed.Team) -> None:
    """Layers of halos that are exchanged once in as many iterations."""
    for halo_steps in (1, 2, 4):
        for blocks in (1, 2):
            u0 = grid(60, 44)
            compare(u0, 23, halo_steps=halo_steps, blocks=blocks, boundary="periodic")
    say("the same")


def tolerance(team: distributed.Team) -> None:
    """Runs that end where no point changes by more."""
    for check_every in (1, 7):
        compare(grid(24, 30), FOREVER, tol=1e-4, check_every=check_every)
        compare(grid(24, 30), 10, tol=1e-9, check_every=check_every)
    say("the same")


def own_parts(team: distributed.Team) -> None:
    """No rank gets all of the values; together they are all."""
    result = jacobi(grid(40, 30), 9, engine=ENGINE, gather=False)
    assert result.u.shape == tuple(axis.stop - axis.start for axis in result.box)
    boxes = team.tell_all("boxes", {"box": [[axis.start, axis.stop] for axis in result.box]})
    owners = np.zeros((40, 30), int)
    for facts in boxes:
        owners[tuple(slice(*axis) for axis in facts["box"])] += 1
    assert (owners == 1).all()
    compare(grid(40, 30), 9, gather=False)
    say("the same")


def by_function(team: distributed.Team) -> None:
    """First values and a source from functions, which are asked for what a process stores."""
    u0, source = grid(300, 20), grid(300, 20, seed=1)
    points = 0

    def first(box: tuple[slice, ...]) -> np.ndarray:
        nonlocal points
        points += u0[box].size
        return u0[box]

    result = jacobi(first, 9, source=lambda box: source[box], engine=ENGINE, shape=u0.shape,
                    halo_steps=1, boundary="periodic")  # fmt: skip
    assert 0 < points <= (300 // team.size + 2) * (20 + 2) < u0.size
    expected = jacobi(u0, 9, source=source, boundary="periodic", engine="cpu_threads")
    assert same(result, expected)
    say("the same")


def again(team: distributed.Team) -> None:
    """Runs one after another, on grids of several sizes."""
    for rows in (50, 20, 90, 50):
        compare(grid(rows, 40, dtype=np.float32), 15)
    say("the same")


def other_values(team: distributed.Team) -> None:
    """Rank 1 has other first values."""
    jacobi(grid(20, 20, seed=int(team.rank == 1)), 9, engine=ENGINE)


def other_options(team: distributed.Team) -> None:
    """Rank 1 is asked for more iterations."""
    jacobi(grid(20, 20), 9 + (team.rank == 1), engine=ENGINE)


def bad_values(team: distributed.Team) -> None:
    """Rank 1 has a value that is not finite."""
    u0 = grid(20, 20)
    u0[3, 4] = np.nan if team.rank == 1 else 0.0
    jacobi(u0, 9, engine=ENGINE)


def bad_function(team: distributed.Team) -> None:
    """The function of rank 1 returns an array of another shape."""

    def first(box: tuple[slice, ...]) -> np.ndarray:
        values = grid(40, 20)[box]
        return values[1:] if team.rank == 1 else values

    jacobi(first, 9, engine=ENGINE, shape=(40, 20))


def lost_file(team: distributed.Team) -> None:
    """The function of rank 1 raises an error of its own."""

    def first(box: tuple[slice, ...]) -> np.ndarray:
        if team.rank == 1:
            raise OSError("the disk has gone")
        return grid(40, 20)[box]

    jacobi(first, 9, engine=ENGINE, shape=(40, 20))


def too_many(team: distributed.Team) -> None:
    """There are more processes than rows."""
    jacobi(grid(3, 4), 9, engine=ENGINE)


def other_pes(team: distributed.Team) -> None:
    """Another number of PEs is asked for than there are processes."""
    jacobi(grid(30, 40), 9, engine=ENGINE, pes=team.size + 1)


def killed(team: distributed.Team) -> None:
    """Rank 1 is killed by itself in the middle of a run."""

    def progress(iteration: int, update: float) -> None:
        if team.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    jacobi(grid(200, 200), FOREVER, engine=ENGINE, progress=progress)


def time_limit(team: distributed.Team) -> None:
    """A run ends after its time, at the same iteration in all processes."""
    result = jacobi(grid(100, 100), FOREVER, engine=ENGINE, time_limit=0.3)
    told = team.tell_all("iterations", {"iterations": result.iterations})
    assert len({facts["iterations"] for facts in told}) == 1
    say(result.reason, result.iterations > 0)


def short_wait(team: distributed.Team) -> None:
    """A wait outlasts its limit; all processes are told of the blocks of all."""
    from cpufree import WaitTimeoutError

    try:
        jacobi(grid(2000, 2000), FOREVER, engine=ENGINE, blocks=2, wait_limit=1e-9)
    except WaitTimeoutError as error:
        say("waited", "halo arrival" in str(error))


if __name__ == "__main__":
    sys.exit(main(globals()))
