"""Tests in parts, and those of one room."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from parts import keep_part, mark_thorough
from paths import ROOT

from tools import test_room


def kept(part: str) -> list[int]:
    """Return which of seven tests a part has."""
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    tests: list[Any] = list(range(7))
    keep_part(SimpleNamespace(getoption=lambda _: part, hook=hook), tests)  # type: ignore[arg-type]
    return tests


def test_parts_have_each_test_once() -> None:
    assert kept("") == [*range(7)]
    assert kept("1/3") + kept("2/3") + kept("3/3") == [*range(7)]
    assert kept("1/3") and kept("2/3") and kept("3/3")


@pytest.mark.parametrize("part", ["3", "0/2", "3/2", "a/b"])
def test_parts_that_cannot_be_are_refused(part: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"--part {part}: give two numbers, such as 2/3"):
        kept(part)


class Case:
    """A case of a test, with marks."""

    def __init__(self, nodeid: str, *marks: Any) -> None:
        self.nodeid, self.marks = nodeid, [mark.mark for mark in marks]

    def get_closest_marker(self, name: str) -> Any:
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark.mark)


def test_few_cases_of_a_test_are_spread_evenly_and_the_others_thorough() -> None:
    few, slow = pytest.mark.few(2), pytest.mark.slow
    cases = [Case(f"a.py::test_a[{k}]", few) for k in range(6)]
    other = [Case("a.py::test_a[slow]", few, slow), Case("a.py::test_b[0]", few), Case("a.py::c")]
    mark_thorough([*other, *cases])  # type: ignore[list-item]
    taken = [case.nodeid for case in cases + other if not case.get_closest_marker("thorough")]
    assert taken == [
        *("a.py::test_a[0]", "a.py::test_a[3]"),
        *("a.py::test_a[slow]", "a.py::test_b[0]", "a.py::c"),
    ]


@pytest.mark.parametrize(
    ("name", "python", "cpp"),
    [
        ("solvers", ["solvers"], ["solvers"]),  # one name in both languages
        ("stencil", ["stencil"], ["stencils"]),  # two names
        ("stencils", ["stencil"], ["stencils"]),
        ("cli", ["cli"], []),
        ("formats", [], ["formats"]),
    ],
)
def test_a_room_has_the_folders_of_both_languages(
    name: str, python: list[str], cpp: list[str]
) -> None:
    assert test_room.folders_of(name) == (python, cpp)


def test_folders_that_belong_together_are_there() -> None:
    for python, cpp in test_room.COUNTERPARTS.items():
        assert (ROOT / "tests/python" / python).is_dir(), python
        assert (ROOT / "tests/cpp" / cpp).is_dir(), cpp


def test_a_room_that_is_none_is_refused_with_the_rooms_that_are() -> None:
    command = [sys.executable, str(ROOT / "tools/test_room.py"), "--check", "solver"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no room 'solver'" in done.stderr
    for name in ("solvers", "stencil", "formats", "cli"):
        assert f" {name}" in done.stderr
