"""Calls that are alike are lowered once, and others are not taken for them."""

from __future__ import annotations

import enum
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from grid_programs import CASES, case

import cpufree
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.front.outside import NoKey, value_key

factors = [2.0]
factor = 3.0
table = {"factor": 2.0}
weights = np.array([1.0, 2.0])
config = SimpleNamespace(factor=2.0, inner=SimpleNamespace(factor=2.0))


class Pair(NamedTuple):
    """Of numbers."""

    first: float
    second: float


class Mode(enum.Enum):
    """Of a program."""

    FAST = 1
    SLOW = 2


class Holder:
    """Of a number that may change."""

    value = 2.0

    @property
    def computed(self) -> float:
        """What user's code gives."""
        return self.value


holder = Holder()


@cpufree.program
def scaled(u: Any, by: Any) -> None:
    u *= by


@cpufree.program
def by_global(u: Any) -> None:
    u *= factor


@cpufree.program
def by_list(u: Any) -> None:
    u *= factors[0]


@cpufree.program
def by_varying_item(u: Any, k: int) -> None:
    u *= factors[k]


@cpufree.program
def by_table(u: Any) -> None:
    u *= table["factor"]


@cpufree.program
def by_class(u: Any) -> None:
    u *= Holder.value


@cpufree.program
def by_attribute(u: Any) -> None:
    u *= config.inner.factor


@cpufree.program
def by_argument(u: Any, given: Any) -> None:
    u *= given.factor


@cpufree.program
def by_property(u: Any) -> None:
    u *= holder.computed


@cpufree.program
def by_weights(u: Any) -> None:
    u *= weights


@cpufree.program
def by_first_weight(u: Any) -> None:
    u *= np.cumsum(weights)[0]


@cpufree.program
def calls_by_global(u: Any) -> None:
    by_global(u)


def _lowered(program: Any, *args: Any) -> Any:
    return program._lowered(Arguments.of(program.signature, program.name, args, {}))


def test_a_call_is_lowered_once() -> None:
    u = np.ones((3, 4))
    assert _lowered(scaled, u, 2.0) is _lowered(scaled, u + 1, 2.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((np.ones(3), 2.0), (np.ones(4), 2.0)),
        ((np.ones(3), 2.0), (np.ones(3, np.float32), 2.0)),
        ((np.ones(3), 2.0), (np.ones(3), 3.0)),
        ((np.ones(3), 0.0), (np.ones(3), -0.0)),
        ((np.ones(3), 1), (np.ones(3), 1.0)),
        ((np.ones(3), 1), (np.ones(3), True)),
        ((np.ones(3), 1.0), (np.ones(3), np.float32(1.0))),
    ],
)
def test_other_calls_are_others(one: Any, other: Any) -> None:
    assert _lowered(scaled, *one) is not _lowered(scaled, *other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2.0), (1, 2)),
        (Pair(1.0, 2.0), (1.0, 2.0)),
        (slice(1, -1), slice(1, -2)),
        (range(3), range(4)),
        (np.dtype("float32"), np.dtype("float64")),
        (np.sqrt, np.exp),
        (Mode.FAST, Mode.SLOW),
        ("a", b"a"),
        (np.ones(2), np.ones(2)),
    ],
)
def test_values_have_keys_that_tell_them_apart(one: Any, other: Any) -> None:
    assert value_key(one) == value_key(one) != value_key(other)


@pytest.mark.parametrize("value", [[1.0], {"a": 1}, (1, [2]), config, Holder, np.ones(9999)])
def test_values_that_may_change_unseen_have_no_key(value: Any) -> None:
    with pytest.raises(NoKey):
        value_key(value)


@pytest.mark.parametrize("program", [by_property, by_varying_item])
def test_what_may_change_unseen_is_lowered_anew(program: Any) -> None:
    arguments = (np.ones(2), 0)[: len(program.signature.parameters)]
    assert _lowered(program, *arguments) is not _lowered(program, *arguments)


CHANGES: list[tuple[Any, Any, Any]] = [
    (by_global, globals(), "factor"),
    (calls_by_global, globals(), "factor"),
    (by_list, factors, 0),
    (by_varying_item, factors, 0),
    (by_table, table, "factor"),
    (by_class, Holder, "value"),
    (by_property, Holder, "value"),
    (by_attribute, config.inner, "factor"),
    (by_argument, config, "factor"),
    (by_weights, weights, 0),
    (by_first_weight, weights, 0),
]


@pytest.mark.parametrize(
    ("program", "owner", "name"), CHANGES, ids=lambda c: getattr(c, "name", "")
)
def test_a_value_that_has_changed_is_seen_by_the_next_call(
    program: Any, owner: Any, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"k": 0, "given": config}
    rest = [arguments[p] for p in list(program.signature.parameters)[1:]]
    for value in (4.0, 5.0, 4.0):
        if isinstance(owner, np.ndarray | list):
            owner[name] = value
        elif isinstance(owner, dict):
            monkeypatch.setitem(owner, name, value)
        else:
            monkeypatch.setattr(owner, name, value)
        u = np.ones(2)
        program.interpret(u, *rest)
        plain = np.ones(2)
        (by_global if program is calls_by_global else program).function(plain, *rest)
        np.testing.assert_array_equal(u, plain)
        assert u[0] == value


@pytest.mark.parametrize(
    "program", [by_list, by_table, by_class, by_attribute, by_weights, calls_by_global]
)
def test_what_can_be_compared_is_lowered_once(program: Any) -> None:
    assert _lowered(program, np.ones(2)) is _lowered(program, np.ones(2))


@pytest.mark.parametrize("name", CASES)
def test_programs_as_people_write_them_are_remembered(name: str) -> None:
    program, arguments = case(name, 20)
    assert _lowered(program, *arguments) is _lowered(program, *arguments)
