"""Programs in forms that Python offers besides loops over slices.

Inner functions, generators, else of loops, stars, lists whose items change, and more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cpufree

FORMS: dict[str, Any] = {}
DIRECTIONS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])


def form(function: Callable[..., Any]) -> Callable[..., Any]:
    """Note a program on u (7 x 5), whole numbers k of the same shape, and a number of turns."""
    FORMS[function.__name__] = cpufree.program(function)
    return function


def _apply(f, u):
    return f(u) + f(2.0 * u)


# --- functions in functions ---


@form
def inner_functions(u, k, n):
    def twice(a):
        return 2.0 * a

    for _ in range(n):

        def moved(a, by=1):
            return np.roll(a, by, axis=0)

        u += moved(twice(u)) - moved(u, by=2)


@form
def see_later_values(u, k, n):
    factor = 1.0

    def scaled(a):
        return factor * a

    u += scaled(u)
    factor = 3.0
    u -= scaled(u)
    for _ in range(n):
        factor = 0.5 * factor
        u += scaled(u)
    return factor


@form
def see_arrays_that_move(u, k, n):
    a, b = u.copy(), 2.0 * u

    def gap():
        return a - b

    for _ in range(n):
        a, b = b, 0.5 * (a + b)
        u += gap()


@form
def write_in_place(u, k, n):
    def boundaries():
        u[0] = u[-2]
        u[-1] = 0.0

    for _ in range(n):
        u[1:-1] += u[2:] - u[:-2]
        boundaries()


@form
def defaults_are_of_their_time(u, k, n):
    c = 2.0

    def f(a, c=c, *, d=c * 0.25):
        return c * a + d

    c = 7.0
    u[...] = f(u) + f(u, d=1.0)
    return c


@form
def lambdas_and_arguments(u, k, n):
    g = lambda a, s=0.5: s * a  # noqa: E731
    u += _apply(g, u)
    u -= _apply(lambda a: g(a, 0.25), u)


@form
def lists_of_lambdas(u, k, n):
    late, now = [], [(lambda a, k=k: a * k) for k in (1, 2, 3)]
    for t in (1, 2, 3):
        late.append(lambda a: a * t)  # noqa: B023
    both = [(lambda a: a * t + j) for j in (4, 5)]  # noqa: B023
    t = 7
    return tuple(f(u) for f in (*late, *now, *both))


@form
def inside_one_another(u, k, n):
    def outer(a):
        def inner(b):
            return a * b

        return inner(a) + inner(1.0)

    u[...] = outer(0.5 * u)


@form
def one_of_two(u, k, n):
    if u.shape[0] > 3:

        def f(a):
            return a + 1.0
    else:

        def f(a):
            return a - 1.0

    u[...] = f(u)


@form
def return_in_branches(u, k, n):
    def limited(a, most):
        if most > 1.0:
            return np.minimum(a, most)
        return a + 0.5

    for _ in range(n):
        u[...] = limited(u, np.max(u) - 0.5)


@form
def call_themselves(u, k, n):
    def power(a, times):
        return a if times == 0 else a * power(a, times - 1)

    u[...] = power(0.5 * u, 3)


# --- generators ---


@form
def sums_of_generators(u, k, n):
    total = sum(np.roll(u, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    u += 0.1 * total
    return sum([np.max(u), 1.0, 2]), sum((k, k), k), sum(()), sum(x for x in (1, 2, 3))


@form
def truths_of_generators(u, k, n):
    fields = [u, 2.0 * u, u - 5.0]
    some = any(np.max(f) > 3.0 for f in fields)
    every = all(np.min(f) < 0.0 for f in fields)
    none = any(np.max(f) > 1e9 for f in fields)
    return some, every, none, any(()), all([]), any([0, 2]), all((True, 0.0))


@form
def largest_of_several(u, k, n):
    largest = max(np.max(f) for f in (u, 2.0 * u, u + 1.0))
    return largest, min(np.max(u), 0.5, np.min(u)), max([n, 2]), min(u.shape), max(1, 2.5, n)


# --- else of loops ---


@form
def else_after_a_break(u, k, n):
    for t in range(100):  # noqa: B007
        u *= 0.5
        if np.max(np.abs(u)) < 0.1:
            break
    else:
        t = -1
    return t


@form
def else_without_a_break(u, k, n):
    for _ in range(n):
        u += 1.0
        if np.max(u) > 1e9:
            break
    else:
        u -= 0.5
    for _ in range(2):
        u *= 2.0
    else:
        u += 1.0


@form
def else_of_while(u, k, n):
    t = 0
    while t < n:
        t += 1
        if t == 2:
            continue
        u += t
        if np.max(u) > 2.5:
            u[0] = 7.0
            break
    else:
        u[-1] = -7.0
    return t


@form
def else_of_known_turns(u, k, n):
    for a in (1, 2, 3):
        for b in (1, 2):
            if a * b == 4:
                break
            u += a * b
        else:
            u -= 0.5
            continue
        break
    else:
        u *= 100.0


@form
def else_that_returns(u, k, n):
    for _ in range(n):
        u += 1.0
        if np.max(u) > 1e6:
            break
    else:
        return np.min(u)
    return np.max(u)


# --- tuples, lists, stars ---


@form
def stars(u, k, n):
    both = (u, 0.5)

    def scaled(a, s):
        return s * a

    made = np.zeros((n, *u.shape))
    made[1] = scaled(*both)
    extremes = [np.min(u), np.max(u)]
    return made, (0.0, *extremes, *(1, 2))


@form
def multiplied(u, k, n):
    inner = (slice(1, -1),) * 2
    u[inner] *= 2.0
    a, b = [np.max(u)] * 2
    if u.shape[1:] * 2 == (5, 5) and (1, *u.shape[1:]) == (1, 5):
        a += 1.0
    return a, b, (n,) * 2 + (0,), 2 * [1]


@form
def items_of_lists(u, k, n):
    for t in range(n):
        for axis in range(2):
            part = [slice(None)] * 2
            part[axis] = slice(1, None)
            u[tuple(part)] *= 1.5
        found = [u, np.max(u), t]
        found[1] += 1.0
        found[0] += found[1]
        found[-1] = found[2] + 1
        if np.max(u) > 2.0:
            found[1] = -1.0
        u += found[1] + found[2]
    return found[1]


@form
def arrays_in_rows(u, k, n):
    g = np.stack([u, 2.0 * u, u * u])
    for _ in range(n):
        a, b, c = g
        g += 0.1 * np.stack([b - a, c - b, a - c])
    for row in g:
        u += row
    x, y = DIRECTIONS[1]
    return g, x, y, sum(g)


@form
def directions(u, k, n):
    for (i, j), w in zip(DIRECTIONS, WEIGHTS, strict=True):
        u += w * np.roll(u, (i, j), axis=(0, 1))
    for m in range(4):
        u -= WEIGHTS[m] * np.roll(u, tuple(DIRECTIONS[m]), axis=(0, 1))
        u += 0.5 * np.roll(u, DIRECTIONS[m], axis=(0, 1))
        u *= 1.0 + 0.01 * DIRECTIONS[m][0]
    return list(DIRECTIONS[2]), tuple(WEIGHTS)


@form
def joined(u, k, n):
    wide = np.concatenate((u[:, 1:], u[:, :1], 2.0 * u), axis=1)
    last = np.stack((u, np.ones_like(u)), axis=-1)
    return wide, last, np.concatenate([np.arange(3.0), np.ones(2)]), np.stack((k, u))


@form
def known_beforehand(u, k, n):
    table = np.arange(35).reshape(7, 5)
    table[0, 0] = 3
    u += table * np.arange(5.0).repeat(7).reshape(5, 7).T
    u -= WEIGHTS.reshape(2, 2).sum() * DIRECTIONS.ravel()[1]
    return table


# --- operators and functions ---


@form
def shifts(u, k, n):
    half = n >> 1
    for t in range(n):
        half += (t << 2) - (t >> 1)
    bits = (110 >> (k & 7)) & 1
    k <<= 1
    return half, bits, k >> 3, np.left_shift(k, 70), -k >> 70, (k.astype(np.int32) << 31), 1 << n


@form
def near_and_equal(u, k, n):
    v = u.copy()
    turns = 0
    while not np.allclose(u, 0.5 * v, atol=0.05):
        v, u[...] = u.copy(), 0.75 * u
        turns += 1
    u[0, 0] = np.nan
    same = np.array_equal(u, u), np.array_equal(k, k + 0), np.array_equal(u, u[1:])
    return turns, same, np.isclose(u, v, 0.5), np.allclose(k, k), np.isclose(k, k + 1, atol=1.0)


@form
def results_in_place(u, k, n):
    np.clip(u, -0.5, 0.5, out=u)
    v = np.empty_like(u)
    w = np.clip(u, None, 0.25, v)
    v += 1.0
    return w, u


@form
def mirrored(u, k, n):
    by_edge = np.pad(u, ((2, 1), (0, 3)), mode="symmetric")
    return np.pad(u, 2, mode="reflect"), by_edge, np.pad(k, ((0, 0), (4, 4)), "reflect")


@form
def spread_and_repeated(u, k, n):
    wide = np.repeat(np.repeat(u, 2, axis=0), 3, axis=1)
    x = np.linspace(0.0, 1.0, 5)
    y = np.arange(7.0)
    a, b = np.meshgrid(x, y)
    c, d = np.meshgrid(y, x, indexing="ij")
    u += a * b + c * d
    return wide, np.outer(u[:, 0], x), np.repeat(k[0], 2)


@form
def rims_by_lists(u, k, n):
    for _ in range(n):
        u[1:-1, 1:-1] *= 0.5
        u[[0, -1]] = 0
        u[:, [0, 2, -1]] = np.max(u)
    with np.errstate(divide="ignore", invalid="ignore"):
        v = 1.0 / u
        for t in range(n):
            with np.errstate(all="ignore"):
                if t == 1:
                    break
        else:
            v += 1.0
    return v
