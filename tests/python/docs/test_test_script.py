"""Tests in parts, in shares of files, and side by side by tools/test_python.py."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from paths import ROOT

SUPPORT = str(ROOT / "tests/python/support")
CONFTEST = f"""
import sys
sys.path.insert(0, {SUPPORT!r})
import shares

def pytest_addoption(parser):
    shares.add_options(parser.getgroup("cpufree"))

def pytest_collection_modifyitems(config, items):
    shares.keep_what_is_asked_for(config, items)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder of three files of tests, with the options of the project's."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow: s\n  alone: a\n")
    for name in "abc":
        text = f"def test_{name}():\n    print('said by {name}')\n"
        (tmp_path / f"test_{name}.py").write_text(text)
    return tmp_path


def collected(project: Path, *options: str) -> list[str]:
    """Return the tests that pytest finds with some options."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_parts_and_shares_have_each_test_once(project: Path) -> None:
    for name in "abc":
        with (project / f"test_{name}.py").open("a") as more:
            more.write("def test_one_more():\n    pass\n")
    whole = collected(project)
    parts = [collected(project, f"--part={k}/2") for k in (1, 2)]
    assert len(whole) == 6
    assert whole == [test for part in parts for test in part]
    assert all(parts)
    assert collected(project, "--share=1/2") == whole[:2] + whole[4:]  # files stay together
    assert collected(project, "--share=2/2") == whole[2:4]


@pytest.mark.parametrize("option", ["--share=3", "--share=0/2", "--share=3/2", "--part=a/b"])
def test_shares_that_cannot_be_are_refused(project: Path, option: str) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", option]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project)
    assert done.returncode == 4
    assert f"{option.replace('=', ' ')}: give two numbers, such as 2/3" in done.stderr


def begin(project: Path, *options: str) -> subprocess.Popen[str]:
    """Start the script in a folder."""
    command = [sys.executable, str(ROOT / "tools/test_python.py"), *options]
    kind = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=project, text=True, start_new_session=True, **kind)  # type: ignore[call-overload,no-any-return]


def test_tests_side_by_side_pass_where_all_pass(project: Path) -> None:
    with (project / "test_a.py").open("a") as more:
        more.write("import pytest\n@pytest.mark.alone\ndef test_alone():\n    pass\n")
    process = begin(project, "--jobs", "2")
    told = process.communicate(timeout=60)[0]
    assert process.returncode == 0, told
    assert re.findall(r"(\d) passed", told) == ["2", "1", "1"]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_failure_in_any_share_is_shown_and_is_the_exit_status(project: Path, name: str) -> None:
    with (project / f"test_{name}.py").open("a") as more:
        more.write("    assert 1 + 1 == 3, 'sums are wrong'\n")
    process = begin(project, "--jobs", "2")
    told = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert f"said by {name}" in told and "sums are wrong" in told
    share = {"a": 1, "b": 2}[name]
    assert f"test_python: share {share} of 2: pytest ended with status 1" in told


def test_no_tests_at_all_are_no_success(project: Path) -> None:
    process = begin(project, "--jobs", "2", "-k", "nothing")
    assert process.communicate(timeout=60)[0]
    assert process.returncode == 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_shares(project: Path, number: signal.Signals) -> None:
    for name in "ab":
        (project / f"test_{name}.py").write_text(
            "import pathlib, time\n"
            f"def test_{name}():\n"
            f"    pathlib.Path('started_{name}').touch()\n"
            "    try:\n"
            "        time.sleep(100)\n"
            "    finally:\n"
            f"        pathlib.Path('ended_{name}').touch()\n"
        )
    process = begin(project, "--jobs", "2")
    limit = time.monotonic() + 60
    while not all((project / f"started_{name}").exists() for name in "ab"):
        assert time.monotonic() < limit
        time.sleep(0.05)
    if number == signal.SIGINT:  # as a terminal does it
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    told = process.communicate(timeout=60)[0]
    assert process.returncode == 130
    assert "test_python: interrupted" in told
    assert told.count("KeyboardInterrupt") >= 2  # what either said is shown
    assert all((project / f"ended_{name}").exists() for name in "ab")
