"""Grids of ranks, their arguments, and what plain NumPy makes of the same: no DaCe is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
GRIDS = {1: (1, 1), 2: (2, 1), 3: (3, 1), 4: (2, 2), 5: (1, 5), 6: (3, 2), 7: (7, 1), 8: (4, 2)}
GRIDS_3D = {1: (1, 1, 1), 2: (2, 1, 1), 4: (2, 2, 1), 6: (1, 3, 2), 8: (2, 2, 2)}
PROC_NULL = -1


def start(shape: tuple[int, ...], seed: int) -> Array:
    """Return values to begin with."""
    return np.random.default_rng(seed).standard_normal(shape)


def jacobi_1d_of(n: int, steps: int) -> Any:
    """Return the arguments of each rank of jacobi_1d, n points each."""

    def of_rank(rank: int, size: int) -> dict[str, Any]:
        arrays = (start((n * size,), k) for k in (1, 2))
        lA, lB = (np.concatenate([[0.0], a[rank * n : (rank + 1) * n], [0.0]]) for a in arrays)
        return {"TSTEPS": steps, "lA": lA, "lB": lB, "rank": rank, "size": size, "lN": n}

    return of_rank


def jacobi_1d_plain(n: int, steps: int, size: int) -> tuple[Array, Array]:
    """Return what all ranks have in the end."""
    A, B = (start((n * size,), k) for k in (1, 2))
    for _ in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])
    return A, B


def neighbours(place: tuple[int, ...], grid: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Return the rank beside a place along (axis, direction), PROC_NULL at the border."""
    found = {}
    for axis in range(len(grid)):
        for direction in (-1, 1):
            other = list(place)
            other[axis] += direction
            inside = 0 <= other[axis] < grid[axis]
            found[axis, direction] = (
                int(np.ravel_multi_index(tuple(other), grid)) if inside else PROC_NULL
            )
    return found


def local(whole: Array, place: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Return a rank's part of an array, with a layer of zeros around."""
    part = tuple(slice(p * n, (p + 1) * n) for p, n in zip(place, shape, strict=True))
    return np.pad(whole[part], 1)


def jacobi_2d_of(shape: tuple[int, int], steps: int) -> Any:
    """Return the arguments of each rank of jacobi_2d, `shape` points each."""

    def of_rank(rank: int, size: int) -> dict[str, Any]:
        grid = GRIDS[size]
        place = (rank // grid[1], rank % grid[1])
        whole = (shape[0] * grid[0], shape[1] * grid[1])
        beside = neighbours(place, grid)
        lA, lB = (local(start(whole, k), place, shape) for k in (1, 2))
        ends = {"nn": (0, -1), "ns": (0, 1), "nw": (1, -1), "ne": (1, 1)}
        offsets = {"noff": (0, -1), "soff": (0, 1), "woff": (1, -1), "eoff": (1, 1)}
        return {
            "TSTEPS": steps,
            "lA": lA,
            "lB": lB,
            "lNx": shape[0],
            "lNy": shape[1],
            **{name: beside[key] for name, key in ends.items()},
            **{name: int(beside[key] < 0) for name, key in offsets.items()},
        }

    return of_rank


def jacobi_2d_plain(shape: tuple[int, int], steps: int, size: int) -> tuple[Array, Array]:
    """Return what all ranks have in the end."""
    grid = GRIDS[size]
    A, B = (start((shape[0] * grid[0], shape[1] * grid[1]), k) for k in (1, 2))
    for _ in range(1, steps):
        for x, y in ((A, B), (B, A)):
            y[1:-1, 1:-1] = 0.2 * (
                x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]
            )
    return A, B


def halo_columns_of(shape: tuple[int, int], steps: int) -> Any:
    """Return the arguments of each rank of halo_columns, ranks side by side."""

    def of_rank(rank: int, size: int) -> dict[str, Any]:
        whole = (shape[0], shape[1] * size)
        lA, lB = (local(start(whole, k), (0, rank), shape) for k in (1, 2))
        ends = {"nw": rank - 1, "ne": rank + 1 if rank + 1 < size else PROC_NULL}
        return {"TSTEPS": steps, "lA": lA, "lB": lB, "lNx": shape[0], "lNy": shape[1], **ends}

    return of_rank


def heat_3d_of(shape: tuple[int, int, int], steps: int) -> Any:
    """Return the arguments of each rank of heat_3d, `shape` points each."""

    def of_rank(rank: int, size: int) -> dict[str, Any]:
        grid = GRIDS_3D[size]
        place = tuple(int(k) for k in np.unravel_index(rank, grid))
        whole = tuple(n * g for n, g in zip(shape, grid, strict=True))
        beside = neighbours(place, grid)
        lA, lB = (local(start(whole, k), place, shape) for k in (1, 2))
        names = {f"n{axis}{'l' if d < 0 else 'h'}": v for (axis, d), v in beside.items()}
        ends = {f"o{axis}{'l' if d < 0 else 'h'}": int(v < 0) for (axis, d), v in beside.items()}
        sizes = dict(zip(("lNx", "lNy", "lNz"), shape, strict=True))
        return {"TSTEPS": steps, "lA": lA, "lB": lB, **sizes, **names, **ends}

    return of_rank


def heat_3d_plain(shape: tuple[int, int, int], steps: int, size: int) -> tuple[Array, Array]:
    """Return what all ranks have in the end."""
    grid = GRIDS_3D[size]
    A, B = (start(tuple(n * g for n, g in zip(shape, grid, strict=True)), k) for k in (1, 2))
    c = slice(1, -1)
    for _ in range(1, steps):
        for x, y in ((A, B), (B, A)):
            y[c, c, c] = (
                0.125 * (x[2:, c, c] - 2.0 * x[c, c, c] + x[:-2, c, c])
                + 0.125 * (x[c, 2:, c] - 2.0 * x[c, c, c] + x[c, :-2, c])
                + 0.125 * (x[c, c, 2:] - 2.0 * x[c, c, c] + x[c, c, :-2])
                + x[c, c, c]
            )
    return A, B


def whole_of(parts: list[Array], grid: tuple[int, ...]) -> Array:
    """Return the array of all ranks from local ones, whose outer layer is left out."""
    inner = [p[(slice(1, -1),) * p.ndim] for p in parts]
    shape = inner[0].shape
    found = np.empty(tuple(n * g for n, g in zip(shape, grid, strict=True)))
    for rank, part in enumerate(inner):
        place = np.unravel_index(rank, grid)
        found[tuple(slice(p * n, (p + 1) * n) for p, n in zip(place, shape, strict=True))] = part
    return found


CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    # arguments of ranks, plain NumPy, points of a rank, grids
    "jacobi_1d": (jacobi_1d_of, jacobi_1d_plain, 13, {p: (p,) for p in range(2, 9)}),
    "jacobi_2d": (jacobi_2d_of, jacobi_2d_plain, (9, 14), GRIDS),
    "jacobi_2d_signals": (jacobi_2d_of, jacobi_2d_plain, (9, 14), GRIDS),
    "heat_3d": (heat_3d_of, heat_3d_plain, (7, 5, 6), GRIDS_3D),
}
