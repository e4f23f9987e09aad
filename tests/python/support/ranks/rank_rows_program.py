"""A member of a team that has its own rows of a matrix alone."""

from __future__ import annotations

import sys

import numpy as np
from rank_program import main, say

from cpufree import distributed
from cpufree.errors import InvalidInputError


def update_own_rows(team: distributed.Team) -> None:
    """Give new values of own rows."""
    import scipy.sparse as sp

    import cpufree

    half = 50 // team.size
    rows = sp.eye_array(half * team.size).tocsr()[half * team.rank : half * (team.rank + 1)]
    slab = cpufree.RowSlab(half * team.rank, rows)
    with cpufree.Solver(slab, engine="cpu_processes") as solver:
        try:
            solver.update(slab)
        except InvalidInputError as error:
            say(f"refused: {error}")


def uneven_cuts(n: int, ranks_: int) -> list[int]:
    """Return where the rows of each rank begin, and n; from 4 ranks on, rank 2 has none."""
    cuts = [n * k * (k + 1) // (ranks_ * (ranks_ + 1)) for k in range(ranks_ + 1)]
    if ranks_ >= 4:
        cuts[3] = cuts[2]
    return cuts


def own_rows(team: distributed.Team) -> None:
    """Solve from own rows, and in one process with as many PEs: the same bits."""
    import cpufree
    from cpufree.extension import load_core

    a = cpufree.generate.from_spec(sys.argv[2])
    n = a.shape[0]
    b, x0 = np.sin(np.arange(float(n))), np.cos(np.arange(float(n)))
    cuts = uneven_cuts(n, team.size)
    first, last = cuts[team.rank], cuts[team.rank + 1]
    part = np.repeat(np.arange(team.size, dtype=np.int32), np.diff(cuts))
    whole = load_core().System(
        a.indptr.astype(np.int64), a.indices, a.data, part, None, team.size, 1, "cpu_threads"
    )
    slab = cpufree.RowSlab(first, a[first:last])
    with cpufree.Solver(slab, engine="cpu_processes", blocks=1) as solver:
        assert solver.shape == a.shape
        assert np.array_equal(solver.rows, np.arange(first, last))
        assert solver.rows.dtype == np.intp
        assert solver.plan["rows"] == np.diff(cuts).tolist()
        for pc, guess in (("jacobi", None), ("chebyshev", x0), ("none", x0)):
            options = {"method": "prcg", "pc": pc, "rtol": 1e-9, "maxiter": 10 * n}
            expected = whole.solve(b, guess, None, options, None)
            own_guess = None if guess is None else guess[first:last]
            result = solver.solve(b[first:last], own_guess, rtol=1e-9, pc=pc)
            assert result.x.tobytes() == expected["x"][first:last].tobytes()
            assert result.iterations == expected["iterations"]
            assert result.true_residual == expected["true_residual"]
            assert result.converged
    say("the same bits")


def own_rows_of_other_methods(team: distributed.Team) -> None:
    """Solve by one method from own rows, and in one process: the same bits.

    The second word names the method that the matrix suits, the third the one that is taken.
    """
    import scipy.sparse as sp

    import cpufree

    a = sp.csr_array(cpufree.generate.poisson2d(17, 13))
    n = a.shape[0]
    suits, method = sys.argv[2:]
    if suits == "minres":
        a = sp.csr_array(a - 4.5 * sp.eye_array(n))  # a negative diagonal
    else:
        a.data[a.tocoo().row < a.tocoo().col] *= 0.4
    b = np.sin(np.arange(float(n)))
    cuts = uneven_cuts(n, team.size)
    first, last = cuts[team.rank], cuts[team.rank + 1]
    slab = cpufree.RowSlab(first, a[first:last])
    try:
        solver = cpufree.Solver(slab, engine="cpu_processes", blocks=1, method=method)
    except InvalidInputError as error:
        say(f"refused: {error}")
        return
    with solver:
        result = solver.solve(b[first:last], rtol=1e-9, maxiter=5 * n)
    part = np.repeat(np.arange(team.size, dtype=np.int32), np.diff(cuts))
    how = {"method": method, "partition": part, "pes": team.size, "blocks": 1}
    expected = cpufree.solve(a, b, rtol=1e-9, maxiter=5 * n, engine="cpu_threads", **how)
    assert result.converged, result.message
    assert result.method == method
    assert result.x.tobytes() == expected.x[first:last].tobytes()
    assert result.iterations == expected.iterations
    say("the same bits")


def wrong_rows(team: distributed.Team) -> None:
    """Give rows of which something is wrong in rank 1, as the second argument says."""
    import cpufree

    n = 90
    a = cpufree.generate.poisson1d(n).tolil()
    wrong = sys.argv[2] if team.rank == 1 else ""
    first, last = team.rank * 30, team.rank * 30 + 30
    if wrong == "overlapping":
        first -= 2
    if wrong == "missing":
        first += 2
    if wrong == "unsymmetric":
        a[35, 5] = -1.0
    if wrong == "value":
        a[30, 29] = -0.5
    if wrong == "diagonal":
        a[40, 40] = -1.0
    rows = a.tocsr()[first:last]
    slab = cpufree.RowSlab(first, rows.astype(np.float32) if wrong == "dtype" else rows)
    if wrong == "columns":
        slab.indices[-1] = n
    kind = np.float32 if sys.argv[2] == "dtype" else np.float64
    b = np.ones(slab.count + (wrong == "vector"), dtype=kind)
    x0 = np.ones(slab.count) if wrong == "guess" else None
    given = a.tocsr() if wrong == "whole" else slab
    if wrong == "whole":
        b = np.ones(n)
    options = {"partition": "metis"} if wrong == "metis" else {}
    try:
        cpufree.solve(given, b, x0=x0, engine="cpu_processes", blocks=1, **options)
    except InvalidInputError as error:
        say(f"refused: {error}")


def noisy_rows(team: distributed.Team) -> None:
    """Solve what is symmetric but for noise, between ranks: the notes of the whole matrix."""
    import cpufree

    n = 60
    a = cpufree.generate.poisson1d(n).tolil()
    a[n // 2, n // 2 - 1] *= 1 + 4e-15
    whole = a.tocsr()
    first, last = n * team.rank // team.size, n * (team.rank + 1) // team.size
    slab = cpufree.RowSlab(first, whole[first:last])
    found = cpufree.solve(slab, np.ones(slab.count), engine="cpu_processes").warnings
    expected = cpufree.solve(whole, np.ones(n), engine="cpu_threads").warnings
    notes = [[note for note in notes if "symmetric" in note] for notes in (found, expected)]
    assert len(notes[1]) == 1
    assert notes[0] == notes[1], notes
    say("the same notes")


def rows_too_large(team: distributed.Team) -> None:
    """Solve in single precision what only double precision can hold, in rank 1, unchecked."""
    import cpufree

    large = 1e300 if team.rank == 1 else 1.0
    slab = cpufree.RowSlab(team.rank, ([0, 1], [team.rank], [large]), n=team.size)
    try:
        cpufree.Solver(slab, engine="cpu_processes", dtype=np.float32, check=False)
    except InvalidInputError as error:
        say(f"refused: {error}")


def own_rows_of_some_type(team: distributed.Team) -> None:
    """Solve in single precision, by rows in single precision, and with fewer checks."""
    import cpufree

    a = cpufree.generate.poisson2d(20, 20).astype(np.float32)
    first, last = 400 * team.rank // team.size, 400 * (team.rank + 1) // team.size
    slab = cpufree.RowSlab(first, a[first:last])
    ones = np.ones(last - first, dtype=np.float32)
    result = cpufree.solve(slab, ones, engine="cpu_processes", check=False)
    assert (result.x.dtype, result.x.shape) == (np.dtype(np.float32), ones.shape)
    assert result.converged
    double = cpufree.solve(slab, ones.astype(np.float64), engine="cpu_processes")
    assert double.x.dtype == np.float64
    say("solved")


if __name__ == "__main__":
    sys.exit(main(globals()))
