"""A member of a team, as a program: what the tests have it do is named by its first argument."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import numpy as np

from cpufree import distributed
from cpufree.distributed import team as team_module
from cpufree.errors import OutOfMemoryError, RankFailedError
from cpufree.matrix.problem import CsrMatrix


def say(*words: object) -> None:
    """Print a line at once, in one piece: other ranks print, too."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def identity(n: int) -> CsrMatrix:
    """Return the unit matrix, without SciPy: it takes longer to import than most ranks work."""
    return CsrMatrix(np.arange(n + 1), np.arange(n, dtype=np.int32), np.ones(n))


def talk(team: distributed.Team) -> None:
    """Use every call."""
    assert team.all_gather("a", bytes([team.rank])) == [bytes([k]) for k in range(team.size)]
    large = bytes([team.rank]) * 3_000_000
    got = team.gather("b", large)
    assert [part[:1] for part in got] == [bytes([k]) for k in range(team.size)][: len(got)]
    assert len(got) == (team.size if team.rank == 0 else 0)
    team.barrier("c")
    parts = [bytes([team.rank, k]) * (k + 1) for k in range(team.size)]
    mine = [bytes([k, team.rank]) * (team.rank + 1) for k in range(team.size)]
    assert team.exchange("parts", parts) == mine
    assert team.exchange("nothing", [b""] * team.size) == [b""] * team.size
    arrays = team.from_first("d", lambda: {"rows": np.arange(5), "name": np.array("metis")})
    assert arrays["rows"].tolist() == [0, 1, 2, 3, 4]
    assert str(arrays["name"]) == "metis"
    assert [f["rank"] for f in team.tell_all("e", {"rank": team.rank})] == list(range(team.size))
    assert team.size_here == team.size
    assert team.local_rank == team.rank
    say("talked")


def call_another(team: distributed.Team) -> None:
    """Rank 1 comes to something else."""
    with team.working():
        team.barrier("here" if team.rank != 1 else "there")


def too_few_parts(team: distributed.Team) -> None:
    """Rank 1 has no part for one of the others."""
    with team.working():
        team.exchange("parts", [b"part"] * (team.size - (team.rank == 1)))


def disagree(team: distributed.Team) -> None:
    """Rank 1 has other facts."""
    with team.working():
        team.agree("facts", {"colour": "red", "size": 3 if team.rank != 1 else 4})


def leave_early(team: distributed.Team) -> None:
    """Rank 1 leaves while the others wait for it."""
    if team.rank == 1:
        distributed.leave()
        return
    team.barrier("the end")


def stay(team: distributed.Team) -> None:
    """Work until there is a file."""
    team.barrier("all are here")
    say("here")
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.05)
    team.barrier("the end")
    say("stayed")


def die(team: distributed.Team) -> None:
    """Rank 1 is killed while the others wait for it."""
    if team.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with team.working():
        team.barrier("the end")


def first_dies(team: distributed.Team) -> None:
    """Rank 0 is killed while the others wait for it."""
    team.barrier("all are here")
    if team.rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    with team.working():
        team.barrier("the end")


def hang(team: distributed.Team) -> None:
    """Rank 1 fails while the others are where no error reaches them."""
    team_module.GRACE = 0.5
    with team.working():
        team.barrier("all are at work")
        if team.rank == 1:
            raise ValueError("rank 1 cannot go on")
        time.sleep(600.0)


def solve(team: distributed.Team) -> None:
    """Solve by the interface of Python, twice, with a right-hand side of one's own."""
    import scipy.sparse as sp

    import cpufree

    a = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(3000, 3000)).tocsr()
    b = np.sin(np.arange(3000.0))
    with cpufree.Solver(a, engine="cpu_processes") as solver:
        for _ in range(2):
            result = solver.solve(b, rtol=1e-9)
    assert result.converged
    assert (result.engine, result.pes) == ("cpu_processes", team.size)
    known = np.isfinite(result.x)
    assert known.all() == (team.rank == 0)
    assert known.sum() >= 3000 // (2 * team.size)
    if team.rank == 0:
        assert np.linalg.norm(b - a @ result.x) <= 1e-8 * np.linalg.norm(b)
    say("solved")


def other_vector(team: distributed.Team) -> None:
    """Rank 1 has another right-hand side."""
    import cpufree

    cpufree.solve(identity(100), np.full(100, 1.0 + (team.rank == 1)),
                  engine="cpu_processes")  # fmt: skip


def bad_vector(team: distributed.Team) -> None:
    """Rank 1 has a right-hand side that is too short."""
    import cpufree

    b = np.ones(100 - (team.rank == 1))
    cpufree.solve(identity(100), b, engine="cpu_processes")


def bad_matrix(team: distributed.Team) -> None:
    """Rank 1 has a matrix that is not symmetric."""
    import scipy.sparse as sp

    import cpufree

    a = sp.eye_array(100).tolil()
    a[0, 1] = float(team.rank == 1)
    cpufree.solve(a.tocsr(), np.ones(100), engine="cpu_processes")


def no_matrix(team: distributed.Team) -> None:
    """Rank 1 has no matrix at all."""
    import cpufree

    a = "nowhere.mtx" if team.rank == 1 else identity(100)
    cpufree.solve(a, np.ones(100), engine="cpu_processes")


def closed_rows(team: distributed.Team) -> None:
    """Ask a Solver for its rows before and after its end."""
    import cpufree

    with cpufree.Solver(identity(100), engine="cpu_processes") as solver:
        rows = solver.rows
    assert 0 < len(rows) < 100
    assert np.array_equal(solver.rows, rows)
    say("the same")


def update(team: distributed.Team) -> None:
    """Give a Solver new values, and make a new one of them: the same bits."""
    import cpufree

    a = cpufree.generate.poisson2d(30, 20)
    b = np.sin(np.arange(600.0))
    with cpufree.Solver(a, engine="cpu_processes", partition="metis") as solver:
        solver.solve(b)
        solver.update(3.0 * a)
        found, rows = solver.solve(b, rtol=1e-9), solver.rows
    with cpufree.Solver(3.0 * a, engine="cpu_processes", partition="metis") as solver:
        expected = solver.solve(b, rtol=1e-9)
        assert np.array_equal(solver.rows, rows)
    assert found.converged
    assert found.x.tobytes() == expected.x.tobytes()
    say("the same bits")


def given_partition(team: distributed.Team) -> None:
    """Share a matrix out by part numbers."""
    import cpufree

    part = np.arange(100) // 5 % team.size
    with cpufree.Solver(identity(100), engine="cpu_processes", partition=part) as solver:
        assert np.array_equal(solver.rows, np.flatnonzero(part == team.rank))
        assert solver.solve(np.ones(100)).converged
    say("its rows")


def rows_by_parts(team: distributed.Team) -> None:
    """Solve from a file of rows by parts, of which one is empty: the bits of the whole matrix."""
    import cpufree
    from cpufree.matrix.cache import write_cache
    from cpufree.matrix.load import as_csr
    from cpufree.matrix.row_permutation import RowPermutation
    from cpufree.partition.methods import choose_order

    a = cpufree.generate.poisson2d(9, 10)
    part = (2 * (np.random.default_rng(3).random(90) < 0.4)).astype(np.int32)
    file = os.path.join(os.environ["TEST_FOLDER"], "A.cpufree")
    if team.rank == 0:
        order = choose_order(as_csr(a), part, "rcm").order
        write_cache(file, as_csr(a), RowPermutation.of(part, team.size, order))
    team.barrier("the file is there")
    b, where = np.sin(np.arange(90.0)), {"pes": team.size, "engine": "cpu_threads"}
    expected = cpufree.solve(a, b, partition=part, reorder="rcm", blocks=1, rtol=1e-9, **where)
    with cpufree.Solver(cpufree.open_rows(file), engine="cpu_processes", blocks=1) as solver:
        rows = solver.rows
        assert sorted(rows) == np.flatnonzero(part == team.rank).tolist()
        result = solver.solve(b[rows], rtol=1e-9)
    assert result.iterations == expected.iterations
    assert result.x.tobytes() == expected.x[rows].tobytes()
    say("the same bits")


def columns(team: distributed.Team) -> None:
    """Solve for several right-hand sides, together and one by one: the same bits."""
    import cpufree

    a = cpufree.generate.poisson2d(30, 20)
    rights = np.sin(np.arange(1800.0)).reshape(600, 3)
    with cpufree.Solver(a, engine="cpu_processes") as solver:
        found = solver.solve(rights, rtol=1e-9)
        for number, column in enumerate(found.columns):
            alone = solver.solve(rights[:, number].copy(), rtol=1e-9)
            assert column.x.tobytes() == alone.x.tobytes()
    assert found.converged
    say("the same bits")


def other_columns(team: distributed.Team) -> None:
    """Rank 1 has more right-hand sides."""
    import cpufree

    a = identity(100)
    with cpufree.Solver(a, engine="cpu_processes") as solver:
        solver.solve(np.ones((100, 2 + team.rank)))


def other_update(team: distributed.Team) -> None:
    """Rank 1 has other new values."""
    import scipy.sparse as sp

    import cpufree

    a = sp.eye_array(100).tocsr()
    with cpufree.Solver(a, engine="cpu_processes") as solver:
        solver.update(a * (2.0 + team.rank))


def gpu_systems(team: distributed.Team) -> None:
    """Several systems at once and one after another, of several sizes, in both precisions."""
    import cpufree

    for kind in (np.float64, np.float32):
        kept = []
        for n in (40, 25, 60):
            a = cpufree.generate.poisson2d(n, n).astype(kind)
            b = np.ones(n * n, dtype=kind)
            kept.append(cpufree.Solver(a, engine="nvshmem"))
            for solver in kept[-1:] * 3:
                result = solver.solve(b, rtol=1e-4)
                assert result.converged
                if team.rank == 0:
                    assert np.linalg.norm(b - a @ result.x) <= 2e-4 * np.linalg.norm(b)
        for solver in kept:
            solver.close()
    say("solved")


def gpu_killed(team: distributed.Team) -> None:
    """Rank 1 is killed by itself in the middle of a solve."""
    import cpufree

    def progress(iteration: int, residual: float) -> None:
        if team.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    a = cpufree.generate.poisson1d(4_000_000)
    cpufree.solve(a, np.ones(4_000_000), engine="nvshmem", pc="none", rtol=1e-12,
                  progress=progress, check=False)  # fmt: skip


def gpu_too_large(team: distributed.Team) -> None:
    """Ask NVSHMEM for more than its heap may have."""
    import cpufree

    os.environ["NVSHMEM_SYMMETRIC_SIZE"] = str(32 << 20)
    os.environ["NVSHMEM_MAX_MEMORY_PER_GPU"] = str(96 << 20)  # it grows to this
    n = 40_000_000
    try:
        cpufree.solve(cpufree.generate.poisson1d(n), np.ones(n), engine="nvshmem", check=False)
    except OutOfMemoryError as error:
        say(f"refused: {error}")


def main(functions: dict[str, Callable[[distributed.Team], None]]) -> int:
    """Join, do what the first argument names, and tell of RankFailedError in one line."""
    try:
        team = distributed.join()
        functions[sys.argv[1]](team)
    except RankFailedError as error:
        say(f"failed: {error}")
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(globals()))
