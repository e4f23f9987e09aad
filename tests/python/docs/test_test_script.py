"""Tests in parts, and those of one room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT, SUPPORT

from tools import test_room

CONFTEST = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
import parts

def pytest_addoption(parser):
    parts.add_option(parser.getgroup("cpufree"))

def pytest_collection_modifyitems(config, items):
    parts.keep_part(config, items)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder of three files of tests, with the option of the project's."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}():\n    pass\n")
    return tmp_path


def collect(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Have pytest find the tests, with some options."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=project)


def test_parts_have_each_test_once(project: Path) -> None:
    found = []
    for options in ([], ["--part=1/2"], ["--part=2/2"]):
        lines = collect(project, *options).stdout.splitlines()
        found.append([line for line in lines if "::" in line])
    whole, first, second = found
    assert len(whole) == 3
    assert first and second and first + second == whole


@pytest.mark.parametrize("part", ["3", "0/2", "3/2", "a/b"])
def test_parts_that_cannot_be_are_refused(project: Path, part: str) -> None:
    done = collect(project, f"--part={part}")
    assert done.returncode == 4
    assert f"--part {part}: give two numbers, such as 2/3" in done.stderr


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
