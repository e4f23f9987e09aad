"""Programs whose values depend on the order of evaluation and the way taken, with arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

import cpufree

W = np.arange(4.0)


@cpufree.program
def grow(q):
    q += 1.0
    return 1.0


@cpufree.program
def product_before_a_write(u):
    return 10.0 * u + grow(u)


@cpufree.program
def view_before_a_write(u):
    return u[1:] + grow(u)


@cpufree.program
def two_names(u):
    a = b = u + 1.0
    a[0] = 50.0
    return b, a


@cpufree.program
def two_ends(u):
    u[0] = u[-1] = 0.5 * (u[0] + u[-1])


@cpufree.program
def product_before_out(u):
    return 10 * u + np.add(u, 1, out=u)


@cpufree.program
def total(a, b):
    return a + b


@cpufree.program
def arguments_before_a_write(u):
    return total(2 * u, grow(u))


@cpufree.program
def items_of_a_tuple(u):
    for d in (1.0 * u, 1.0 * u):
        u += d


@cpufree.program
def return_in_a_turn(u):
    for k in (1, 2, 3):
        u += k
        if k == 1:
            return u


@cpufree.program
def largest_or_one(u):
    m = np.max(u) or 1.0
    u /= m
    return m


@cpufree.program
def number_or_number(u, k):
    s = 0
    s += k or 10
    return s, (u[0] or 3), (u[0] and 7.0)


@cpufree.program
def variable_of_a_loop(u, n):
    k = 7
    for k in range(n):  # noqa: B007
        u += 1.0
    return k


@cpufree.program
def number_of_two_kinds(a, n):
    k = 4
    for _t in range(n):
        k = np.sum(a)
    return a * k, k


@cpufree.program
def whole_or_float(a, n):
    x = 2
    for _t in range(n):
        x = 2.5
    return a * x, x


@cpufree.program
def number_of_a_branch(a):
    x = 2
    if np.max(a) > 1:
        x = 2.5
    return x, min(x, 7.5), max(np.max(a), 1)


@cpufree.program
def float_or_float32(v):
    s = 0.0
    for _t in range(3):
        s = s + v[0]
    return v[1] + s, s


@cpufree.program
def numbers_of_numpy(u):
    c = np.float32(0.25)
    u *= c
    u += np.full(u.shape, np.float32(0.1))
    u *= u.dtype.type(0.25)


@cpufree.program
def found_in_a_loop(u, tol, n):
    for it in range(n):  # noqa: B007
        err = np.max(np.abs(u))
        u *= 0.5
        if err < tol:
            break
    return it, err


@cpufree.program
def continue_written_out(u):
    for k in range(3):
        if k == 1:
            continue
        u[k] = k
    return k


@cpufree.program
def break_of_the_run(u, n):
    s = 0
    for _t in range(n):
        if np.max(u) < 0.3:
            break
        s = s + 0.5 * np.max(u)
        u *= 0.5
    return s


@cpufree.program
def three_arrays_go_round(a, b, n):
    c = a + b
    for _t in range(n):
        a, b, c = b, c, a
        c += 1.0
    return a, b, c


@cpufree.program
def last_two(u, n):
    old = u
    for _t in range(n):
        new = 0.5 * (u + old)
        old, u = u, new
    return u, old


@cpufree.program
def swapped(a, b):
    for _t in range(2):
        a, b = b, a
        a += 1.0
    return a


@cpufree.program
def array_of_another_program(u, v):
    h = swapped(v, u)
    h[0] = 9.0
    return h


@cpufree.program
def chains_of_conditions(u, a, b):
    k = 0
    if a < np.max(u) < b:
        k = 1
    if np.max(u) and (k or np.min(u)):
        k = k + 2
    return k, a < np.max(u) < b, not (k and np.max(u))


@cpufree.program
def part_that_changes(u, n):
    part = u[1:]
    for _t in range(n):
        part += 1.0
        part = u[:-1]
    return part


@cpufree.program
def loop_without_condition(u):
    k = 0
    while True:
        k += 1
        u += 1.0
        if np.max(u) > 4:
            break
    return k


@cpufree.program
def copies_go_round(u, n):
    a = u.copy()
    b = u.copy()
    for _t in range(n):
        c = 2 * b - a
        a = b
        b = c
    return a, b


@cpufree.program
def number_while(u, n):
    s = 0
    while np.max(u) < n:
        s = s + np.max(u)
        u += 1.0
    return s


@cpufree.program
def inverse(x):
    return 1 / x


@cpufree.program
def grown(a):
    a += 1.0
    return np.max(a)


@cpufree.program
def division_where_it_is_asked_for(u):
    k = float(u[1]) - 1.0
    one = inverse(k) if k != 0 else 0.0
    all_of = np.max(u * (1 / k)) if k != 0 else 0.0
    return one, all_of, k == 0 or inverse(k) < 3, k and inverse(k), k or 2.0


@cpufree.program
def writes_in_conditions(u, w):
    if u[0] > 0 and grown(w) > 1.5 and grown(w) > 3.5:
        u += 10.0
    n = 0
    while n < 5 and grown(w) < 6.0:
        n += 1
    a = u[0] < 0 or grown(w)
    b = grown(w) if u[1] > 0 else grown(u)
    return a, b, n, 0.0 < grown(u) < grown(w)


def o(*shape: int) -> Any:
    """Return an array of ones."""
    return np.ones(shape)


def z(*shape: int) -> Any:
    """Return an array of zeros."""
    return np.zeros(shape)


CASES = [
    (division_where_it_is_asked_for, lambda: (o(3),)),
    (division_where_it_is_asked_for, lambda: (2 * o(3),)),
    (writes_in_conditions, lambda: (o(3), o(3))),
    (writes_in_conditions, lambda: (-o(3), o(3))),
    (writes_in_conditions, lambda: (o(3), 4 * o(3))),
    (product_before_a_write, lambda: (z(3),)),
    (view_before_a_write, lambda: (z(3),)),
    (two_names, lambda: (z(3),)),
    (two_ends, lambda: (np.arange(4.0),)),
    (product_before_out, lambda: (z(3),)),
    (arguments_before_a_write, lambda: (z(3),)),
    (items_of_a_tuple, lambda: (o(3),)),
    (return_in_a_turn, lambda: (z(3),)),
    (largest_or_one, lambda: (np.array([1.0, 2, 4]),)),
    (largest_or_one, lambda: (z(3),)),
    (number_or_number, lambda: (o(3), 3)),
    (number_or_number, lambda: (z(3), 0)),
    (variable_of_a_loop, lambda: (z(3), 0)),
    (variable_of_a_loop, lambda: (z(3), 4)),
    (number_of_two_kinds, lambda: (np.array([2**30], np.int32), 0)),
    (number_of_two_kinds, lambda: (np.array([2**30], np.int32), 2)),
    (whole_or_float, lambda: (np.array([3], np.int32), 0)),
    (whole_or_float, lambda: (np.array([3], np.int32), 2)),
    (number_of_a_branch, lambda: (z(3),)),
    (number_of_a_branch, lambda: (2 * o(3),)),
    (float_or_float32, lambda: (np.array([0.1, 0.2], np.float32),)),
    (numbers_of_numpy, lambda: (np.ones(4, np.float32),)),
    (found_in_a_loop, lambda: (o(4), 0.01, 100)),
    (found_in_a_loop, lambda: (o(4), 0.01, 3)),
    (continue_written_out, lambda: (o(4),)),
    (break_of_the_run, lambda: (o(4), 10)),
    (break_of_the_run, lambda: (z(4), 10)),
    (three_arrays_go_round, lambda: (o(3), z(3), 4)),
    (three_arrays_go_round, lambda: (o(3), z(3), 5)),
    (three_arrays_go_round, lambda: (o(3), z(3), 50)),
    (last_two, lambda: (o(3), 5)),
    (last_two, lambda: (o(3), 500)),
    (array_of_another_program, lambda: (o(3), z(3))),
    (chains_of_conditions, lambda: (o(3), 0.0, 2.0)),
    (chains_of_conditions, lambda: (o(3), 2.0, 0.0)),
    (part_that_changes, lambda: (o(5), 3)),
    (part_that_changes, lambda: (o(5), 100)),
    (loop_without_condition, lambda: (z(3),)),
    (copies_go_round, lambda: (np.arange(3.0), 9)),
    (copies_go_round, lambda: (np.arange(3.0), 99)),
    (number_while, lambda: (z(3), 4)),
    (number_while, lambda: (z(3), -4)),
]
