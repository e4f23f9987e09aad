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
