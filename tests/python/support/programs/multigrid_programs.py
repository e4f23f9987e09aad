"""Programs on several grids, and arguments of them: (program, arguments)."""

from __future__ import annotations

from typing import Any

import numpy as np

import cpufree

_R = np.random.default_rng(7)


def _smooth(u: Any, f: Any, hh: float, turns: int) -> None:
    for _ in range(turns):
        u[1:-1, 1:-1] = 0.25 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] + hh * f[1:-1, 1:-1]
        )


def _residual(u: Any, f: Any, hh: float) -> Any:
    r = np.zeros_like(u)
    beside = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    r[1:-1, 1:-1] = f[1:-1, 1:-1] + (beside - 4 * u[1:-1, 1:-1]) / hh
    return r


def _restricted(r: Any) -> Any:
    n = r.shape[0] // 2 + 1
    coarse = np.zeros((n, n))
    coarse[1:-1, 1:-1] = 0.5 * r[2:-2:2, 2:-2:2] + 0.125 * (
        r[1:-3:2, 2:-2:2] + r[3:-1:2, 2:-2:2] + r[2:-2:2, 1:-3:2] + r[2:-2:2, 3:-1:2]
    )
    return coarse


def _correct(u: Any, e: Any) -> None:
    u[::2, ::2] += e
    u[1::2, ::2] += 0.5 * (e[1:] + e[:-1])
    u[::2, 1::2] += 0.5 * (e[:, 1:] + e[:, :-1])
    u[1::2, 1::2] += 0.25 * (e[1:, 1:] + e[:-1, 1:] + e[1:, :-1] + e[:-1, :-1])


def _v_cycle(u: Any, f: Any, hh: float, grids: int) -> None:
    _smooth(u, f, hh, 2 if grids > 1 else 8)
    if grids > 1:
        coarse = _restricted(_residual(u, f, hh))
        e = np.zeros_like(coarse)
        _v_cycle(e, coarse, 4 * hh, grids - 1)
        _correct(u, e)
        _smooth(u, f, hh, 1)


@cpufree.program
def v_cycles(u: Any, f: Any, hh: float, grids: int, cycles: int) -> Any:
    for _ in range(cycles):
        _v_cycle(u, f, hh, grids)
    return np.max(np.abs(_residual(u, f, hh)))


@cpufree.program
def v_cycles_by_level(u: Any, f: Any, hh: float, cycles: int) -> Any:
    us, fs, n = [u], [f], u.shape[0]
    while n > 3:
        n = n // 2 + 1
        us.append(np.zeros((n, n)))
        fs += [np.zeros((n, n))]
    levels = len(us)
    for _ in range(cycles):
        for k in range(levels - 1):
            _smooth(us[k], fs[k], hh * 4**k, 1)
            fs[k + 1][...] = _restricted(_residual(us[k], fs[k], hh * 4**k))
            us[k + 1][...] = 0
        for k in range(levels - 1, -1, -1):
            _smooth(us[k], fs[k], hh * 4**k, 1)
            if k > 0:
                _correct(us[k - 1], us[k])
    return us[1], fs[2][1:]


@cpufree.program
def v_cycles_of_given_grids(us: Any, fs: Any, hh: float, cycles: int) -> Any:
    for _ in range(cycles):
        for k in range(len(us) - 1):
            _smooth(us[k], fs[k], hh * 4**k, 1)
            fs[k + 1][...] = _restricted(_residual(us[k], fs[k], hh * 4**k))
            us[k + 1][...] = 0
        for k in reversed(range(1, len(us))):
            _smooth(us[k], fs[k], hh * 4**k, 2)
            _correct(us[k - 1], us[k])
    return us[0], np.max(us[1])


@cpufree.program
def full_cycle(u: Any, f: Any, hh: float) -> Any:
    """The coarsest grid first, then each finer one with a cycle of its own."""
    sizes = [(u.shape[0] - 1) // 2**k + 1 for k in range(3)]
    rights = [f]
    for _ in sizes[1:]:
        rights.append(_restricted(rights[-1]))
    start = np.zeros((sizes[-1], sizes[-1]))
    _smooth(start, rights[-1], hh * 4 ** (len(sizes) - 1), 9)
    for k, right in reversed([(k, right) for k, right in enumerate(rights) if k < len(sizes) - 1]):
        finer = np.zeros((sizes[k], sizes[k]))
        _correct(finer, start)
        _v_cycle(finer, right, hh * 4**k, 4 - k)
        start = finer
    u[...] = start
    return np.max(np.abs(_residual(u, f, hh)))


@cpufree.program
def cells(u: Any, f: Any, n: int) -> Any:
    """Cell averages of 2 x 2 points, and back."""
    for _ in range(n):
        r = f - u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0))
        c = 0.25 * (r[::2, ::2] + r[1::2, ::2] + r[::2, 1::2] + r[1::2, 1::2])
        c += 0.2 * (np.roll(c, 1, axis=0) - np.roll(c, -2, axis=0))
        cc = 0.5 * (c[::2] + c[1::2])
        cc -= np.roll(cc, 1, axis=0)
        for i in range(2):
            c[i::2] += 0.1 * cc
            for j in range(2):
                u[i::2, j::2] += 0.5 * c
    return c, np.sum(cc > 0), np.max(c), cc[0]


@cpufree.program
def in_one_dimension(u: Any, f: Any, n: int) -> Any:
    for _ in range(n):
        r = f.copy()
        r[1:-1] += u[2:] - 2 * u[1:-1] + u[:-2]
        c = r[::2].copy()
        c[1:-1] += 0.5 * (r[1:-2:2] + r[3::2])
        e = np.zeros_like(c)
        for _ in range(4):
            e[1:-1] = 0.5 * (e[2:] + e[:-2] + c[1:-1])
        u[::2] += e
        u[1::2] += 0.5 * (e[1:] + e[:-1])
    return np.max(u), e


@cpufree.program
def given_grids(fine: Any, coarse: Any, coarser: Any, n: int) -> Any:
    """Grids that the caller has, with a row of ghosts around each; one is of every third row."""
    for _ in range(n):
        fine[0], fine[-1] = fine[-2], fine[1]
        coarse[1:-1] = 0.5 * (fine[1:-2:2] + fine[2:-1:2])
        coarse[0], coarse[-1] = coarse[-2], coarse[1]
        coarser[:] = coarse[1:-1:3] + coarse[:-2:3]
        coarse, other = coarse.copy(), coarse
        coarse[1:-1:3] += 0.5 * coarser
        fine[1:-1:2] += 0.1 * other[1:-1] - 0.05 * coarse[2:]
    return coarse, np.min(coarser)


@cpufree.program
def components(w: Any, n: int) -> Any:
    """Components first: rows of the second axis are divided."""
    for _ in range(n):
        total = w[0] - 0.5 * w[1]
        c = 0.25 * (w[:, ::2, ::2] + w[:, 1::2, ::2])
        c[:, 1:] -= total[1::2, ::2][:-1]
        cc = c[0, ::2] + c[1, 1::2]
        w[:, ::2, 1::2] += c
        w[1, 1::4, ::2] = cc
    return c, cc, np.sum(c, axis=0)


@cpufree.program
def in_three_dimensions(u: Any, n: int) -> Any:
    for _ in range(n):
        c = np.zeros((u.shape[0] // 2, u.shape[1] // 2, u.shape[2] // 2))
        for i in range(2):
            for j in range(2):
                c += 0.125 * (u[i::2, j::2, ::2] + u[i::2, j::2, 1::2])
        c[1:-1] += 0.1 * (c[2:] - c[:-2])
        u[::2, ::2, ::2] += c
        u[1::2, 1::2] *= 0.5
    return c


CASES = {
    "v_cycles": (v_cycles, (np.zeros((17, 17)), _R.standard_normal((17, 17)), 1 / 256, 4, 2)),
    "v_cycles_by_level": (
        v_cycles_by_level,
        (np.zeros((33, 33)), _R.standard_normal((33, 33)), 1 / 1024, 2),
    ),
    "v_cycles_of_given_grids": (
        v_cycles_of_given_grids,
        (
            [np.zeros((n, n)) for n in (17, 9, 5)],
            [_R.standard_normal((n, n)) for n in (17, 9, 5)],
            1 / 256,
            2,
        ),
    ),
    "full_cycle": (full_cycle, (np.zeros((17, 17)), _R.standard_normal((17, 17)), 1 / 256)),
    "cells": (cells, (_R.standard_normal((16, 8)), _R.standard_normal((16, 8)), 3)),
    "in_one_dimension": (in_one_dimension, (np.zeros(33), _R.standard_normal(33), 3)),
    "given_grids": (
        given_grids,
        (_R.standard_normal((26, 5)), np.zeros((14, 5)), np.zeros((4, 5)), 3),
    ),
    "components": (components, (_R.standard_normal((2, 16, 6)), 3)),
    "in_three_dimensions": (in_three_dimensions, (_R.standard_normal((12, 6, 8)), 3)),
}


@cpufree.program
def half_of_itself(u: Any) -> None:
    u[: u.shape[0] // 2] = u[::2]


@cpufree.program
def two_ways(u: Any, c: Any) -> None:
    c[:] = u[::2]
    c[:] += u[: c.shape[0]]


REFUSED = {
    "half_of_itself": (half_of_itself, (np.ones(8),), "every 2nd row for every row"),
    "two_ways": (two_ways, (np.ones(8), np.ones(4)), "every row for every 2nd row"),
}
