"""What reaches a program from outside: arrays that are no arguments, objects, methods, lists."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.errors import InvalidInputError, ProgramError

TABLE = np.array([1.0, 2.0, 3.0])


def _state(**more: Any) -> SimpleNamespace:
    return SimpleNamespace(u=np.arange(3.0), dt=0.5, part=SimpleNamespace(v=np.ones(3)), **more)


# --- arrays that are no arguments are read ---


@cpufree.program
def add_global(u):
    u += TABLE[::-1][::-1] if False else TABLE


@cpufree.program
def add_part_of_global(u):
    part = TABLE[1:]
    u[1:] += part * TABLE.sum() + TABLE.max() + np.cumsum(TABLE)[-1]


@cpufree.program
def add_of_object(u, state):
    v = state.part.v
    u += state.dt * state.u + v


@cpufree.program
def add_all(u, fields):
    for q in fields:
        u += q


@cpufree.program
def add_rest(u, *rest, **named):
    for q in rest:
        u += q
    u += named["w"]


@cpufree.program
def scaled_copy(state):
    v = state.u.copy()
    w = 2.0 * state.u
    x = np.copy(state.u)
    v += 1.0
    w += v
    x[1:] = w[:-1]
    return v, w, x


@cpufree.program
def copy_in_loop(n):
    u = TABLE
    for _ in range(n):
        u = u + 1.0
    return u


@cpufree.program
def copy_in_branch(u):
    g = TABLE
    if u[0] > 0.0:
        g = g + 1.0
    u += g


@cpufree.program
def own_array_in_loop(u, n):
    for t in range(n):
        w = np.array([1.0, 2.0, 3.0])
        w[0] = t
        x = np.linspace(0.0, 1.0, 3)
        y = x
        y *= 2.0
        u += w + x


@cpufree.program
def own_array(u):
    w = np.linspace(0.0, 1.0, 3)
    x = w
    x *= 2.0
    u += w
    return w


READING: list[tuple[Any, Any]] = [
    (add_global, lambda: (np.ones(3),)),
    (add_part_of_global, lambda: (np.ones(3),)),
    (add_of_object, lambda: (np.ones(3), _state())),
    (add_all, lambda: (np.ones(3), [np.ones(3), TABLE])),
    (add_all, lambda: (np.ones(3), (np.ones(3), 2.0, TABLE))),
    (scaled_copy, lambda: (_state(),)),
    (copy_in_loop, lambda: (3,)),
    (copy_in_loop, lambda: (0,)),
    *((copy_in_branch, lambda k=k: (np.full(3, k),)) for k in (1.0, -1.0)),
    *((own_array_in_loop, lambda n=n: (np.ones(3), n)) for n in (0, 1, 3)),
    (own_array, lambda: (np.ones(3),)),
]


@pytest.mark.parametrize(("program", "make"), READING, ids=lambda c: getattr(c, "name", ""))
def test_arrays_from_outside_are_read(program: Any, make: Any) -> None:
    _compare(program, program.interpret, make)


@pytest.mark.parametrize("program", [add_of_object, scaled_copy])
def test_kernels_read_arrays_from_outside(program: Any) -> None:
    _compare(program, program, next(make for p, make in READING if p is program))


def _compare(program: Any, way: Any, make: Any) -> None:
    table = TABLE.copy()
    found_arguments, plain_arguments = make(), make()
    found = way(*found_arguments)
    plain = program.function(*plain_arguments)
    for a, b in zip(
        _leaves((found, found_arguments)), _leaves((plain, plain_arguments)), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(TABLE, table)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, SimpleNamespace):
        value = list(vars(value).values())
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value] if value is not None else []


def test_arrays_in_starred_arguments_are_read() -> None:
    u = np.ones(3)
    add_rest.interpret(u, TABLE, np.ones(3), w=TABLE)
    np.testing.assert_array_equal(u, 2.0 + 2 * TABLE)


# --- and not written ---


@cpufree.program
def write_of_object(state):
    u = state.u
    u += 1.0


@cpufree.program
def write_of_object_directly(state):
    state.u += 1.0


@cpufree.program
def write_into_part_of_object(state):
    state.u[1:] = 0.0


@cpufree.program
def write_in_loop(state, n):
    u = state.u
    for _ in range(n):
        u += 1.0


@cpufree.program
def write_point_in_loop(state, n):
    u = state.u
    for _ in range(n):
        u[0] += 1.0
        u = u + 0.5


@cpufree.program
def write_all(fields):
    for q in fields:
        q *= 2.0


@cpufree.program
def write_item(fields):
    u = fields[0]
    u[...] = 0.0


@cpufree.program
def write_item_of_dict(fields):
    u = fields["u"]
    u *= 3.0


@cpufree.program
def write_unpacked(fields):
    a, b = fields
    a += b


@cpufree.program
def rolled_by(u, shifts):
    u[...] = np.roll(u, int(shifts[1][0]))


@cpufree.program
def write_global(u):
    g = TABLE
    g += u


@cpufree.program
def write_view_of_global(u):
    g = TABLE[1:]
    g += u[1:]


@cpufree.program
def write_rest(*fields):
    for q in fields:
        q += 1.0


@cpufree.program
def write_out(state):
    np.add(state.u, 1.0, out=state.u)


@cpufree.program
def write_out_of_host(u):
    u += np.cumsum(TABLE, out=TABLE)


@cpufree.program
def write_asarray(u):
    g = np.asarray(TABLE)
    g += u


@cpufree.program
def write_copyto(state):
    np.copyto(state.u, 1.0)


@cpufree.program
def write_fill(state):
    state.u.fill(1.0)


@cpufree.program
def add_one(v):
    v += 1.0


@cpufree.program
def write_by_other_program(state):
    add_one(state.u)


@cpufree.program
def write_in_tuple(state):
    pair = (state.u, 1.0)
    u, by = pair
    u += by


@cpufree.program
def swap_with_object(u, state, n):
    v = state.u
    for _ in range(n):
        v[1:] = u[:-1]
        u, v = v, u


@cpufree.program
def write_number(state):
    s = state.s
    s += 1.0


@cpufree.program
def write_list(u, numbers):
    numbers *= 2
    u += len(numbers)


@cpufree.program
def write_array_of_one(u, s):
    s += 1.0
    u += s


WRITING: list[tuple[Any, Any]] = [
    *((p, lambda: (_state(),)) for p in (write_of_object, write_of_object_directly)),
    *((p, lambda: (_state(),)) for p in (write_into_part_of_object, write_out, write_copyto)),
    *((p, lambda: (_state(),)) for p in (write_fill, write_by_other_program, write_in_tuple)),
    (write_in_loop, lambda: (_state(), 100)),
    (write_point_in_loop, lambda: (_state(), 100)),
    (write_item_of_dict, lambda: ({"u": np.ones(3)},)),
    *((p, lambda: (np.ones(3),)) for p in (write_global, write_view_of_global)),
    *((p, lambda: (np.ones(3),)) for p in (write_out_of_host, write_asarray)),
    (swap_with_object, lambda: (np.ones(3), _state(), 100)),
    (write_number, lambda: (_state(s=np.array(1.0)),)),
    (write_list, lambda: (np.ones(3), [1, 2])),
    (write_array_of_one, lambda: (np.ones(3), np.array(1.0))),
]


@pytest.mark.parametrize("program", [write_all, write_item, write_unpacked])
@pytest.mark.parametrize("kind", [list, tuple])
def test_arrays_in_lists_and_tuples_are_arguments(program: Any, kind: Any) -> None:
    ours, plain = (kind([np.ones(3), np.arange(3.0)]) for _ in range(2))
    program.interpret(ours)
    program.function(plain)
    np.testing.assert_array_equal(ours, plain)


def test_arrays_of_starred_parameters_are_arguments() -> None:
    ours = np.ones(3), np.arange(3.0)
    write_rest.interpret(*ours)
    np.testing.assert_array_equal(ours, [[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])


def test_what_is_known_beforehand_of_arrays_in_lists_stays_so() -> None:
    u = np.arange(5.0)
    rolled_by.interpret(u, [np.array([1, 2]), np.array([3])])
    np.testing.assert_array_equal(u, [2.0, 3.0, 4.0, 0.0, 1.0])


def test_an_array_twice_in_a_list_that_is_written_is_refused() -> None:
    u = np.ones(3)
    with pytest.raises(InvalidInputError, match="shares memory"):
        write_all.interpret([u, u])


@pytest.mark.parametrize(("program", "make"), WRITING, ids=lambda c: getattr(c, "name", ""))
def test_writing_what_is_no_argument_is_refused(program: Any, make: Any) -> None:
    table = TABLE.copy()
    with pytest.raises(ProgramError) as caught:
        program.interpret(*make())
    assert f", in {caught.value.args[0].split(', in ')[1].split(':')[0]}:" in str(caught.value)
    np.testing.assert_array_equal(TABLE, table)


@pytest.mark.parametrize(
    ("program", "argument", "name"),
    [
        (write_of_object, _state(), "state.u is no argument"),
        (write_item_of_dict, {"u": np.ones(3)}, r"fields\['u'\] is no argument"),
        (write_global, np.ones(3), "TABLE is no argument"),
        (write_by_other_program, _state(), "state.u is no argument"),
    ],
)
def test_an_array_from_outside_has_its_name_in_errors(
    program: Any, argument: Any, name: str
) -> None:
    with pytest.raises(ProgramError, match=name):
        program.interpret(argument)
