"""Programs whose names stand for other things on one way than on another, with their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

import cpufree

W = np.arange(4.0)


@cpufree.program
def two_steps(u, n):
    prev = None
    for _t in range(n):
        rate = 0.1 * u
        if prev is None:
            u += rate
        else:
            u += 1.5 * rate - 0.5 * prev
        prev = rate


@cpufree.program
def three_steps(u, n):
    p1 = None
    p2 = None
    for _t in range(n):
        r = 0.1 * u
        if p1 is None:
            u += r
        elif p2 is None:
            u += 1.5 * r - 0.5 * p1
        else:
            u += (23 * r - 16 * p1 + 5 * p2) / 12
        p2 = p1
        p1 = r


@cpufree.program
def text_that_changes(u, n):
    m = "first"
    for _t in range(n):
        if m == "first":
            u += 1.0
        else:
            u *= 2.0
        m = "later"
    return m


@cpufree.program
def tuple_of_a_branch(u):
    c = (1.0, 2.0)
    if u[0] > 0:
        c = (5.0, 6.0)
    return c[0] + c[1], c


@cpufree.program
def none_or_largest(u, n):
    best = None
    for _t in range(n):
        u += 1.0
        m = np.max(u)
        if best is None or m > best:
            best = m
    return best


@cpufree.program
def name_of_an_argument(u, v, n):
    best = 1.0 * u
    for _t in range(n):
        v += 1.0
        best = v
    return np.max(best)


@cpufree.program
def name_in_a_branch(u, v, n):
    s = 1.0 * u
    for t in range(n):
        if t % 2 == 0:
            s = v
        v += 1.0
        u += s
    return s


@cpufree.program
def tuple_of_arrays_that_swap(u, v, n):
    pair = (u, v)
    for _t in range(n):
        u, v = v, u
        u += 1.0
    pair[0][0] = 50.0
    return u


@cpufree.program
def written_before_it_is_another(u, n):
    for _t in range(n):
        u[0] += 1.0
        u = u + 0.5
        if np.max(u) > 3.0:
            break
    return u


@cpufree.program
def another_in_each_turn(u, v, n):
    for _t in range(n):
        u = u + v
    u[0] = 9.0
    return u


@cpufree.program
def another_while(u, tol):
    while np.max(u) < tol:
        u = u + 1.0
    return u


@cpufree.program
def another_while_far(u, tol):
    err = 1.0
    while err > tol:
        new = 0.5 * u
        err = np.max(np.abs(new - u))
        u = new
    return u, err


def o(*shape: int) -> Any:
    """Return an array of ones."""
    return np.ones(shape)


def z(*shape: int) -> Any:
    """Return an array of zeros."""
    return np.zeros(shape)


CASES = [
    (two_steps, lambda: (o(3), 3)),
    (two_steps, lambda: (o(3), 0)),
    (two_steps, lambda: (o(3), 100)),
    (three_steps, lambda: (o(3), 7)),
    (three_steps, lambda: (o(3), 100)),
    (text_that_changes, lambda: (o(3), 4)),
    (text_that_changes, lambda: (o(3), 0)),
    (text_that_changes, lambda: (o(3), 100)),
    (tuple_of_a_branch, lambda: (o(3),)),
    (tuple_of_a_branch, lambda: (z(3),)),
    (none_or_largest, lambda: (o(3), 4)),
    (name_of_an_argument, lambda: (z(2), z(2), 10)),
    (name_of_an_argument, lambda: (z(2), z(2), 0)),
    (name_in_a_branch, lambda: (z(2), z(2), 5)),
    (name_in_a_branch, lambda: (z(2), z(2), 500)),
    (tuple_of_arrays_that_swap, lambda: (z(2), o(2), 3)),
    (tuple_of_arrays_that_swap, lambda: (z(2), o(2), 103)),
    (written_before_it_is_another, lambda: (z(3), 100)),
    (written_before_it_is_another, lambda: (z(3), 2)),
    (another_in_each_turn, lambda: (z(3), o(3), 0)),
    (another_in_each_turn, lambda: (z(3), o(3), 3)),
    (another_while, lambda: (z(3), 3.0)),
    (another_while, lambda: (z(3), -3.0)),
    (another_while_far, lambda: (o(3), 0.01)),
]
