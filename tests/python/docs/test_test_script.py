"""Tests in parts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from paths import SUPPORT

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
