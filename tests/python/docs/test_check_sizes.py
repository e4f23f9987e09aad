"""The check of sizes finds what is planted, and lets the repository pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

pytestmark = pytest.mark.cpu_only


def check(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the check on a directory tree."""
    command = [sys.executable, str(ROOT / "tools/check_sizes.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def tree(root: Path, **lines: int) -> None:
    """Write sources of a number of lines into a folder of a repository."""
    (root / "cpufree").mkdir()
    for name, count in lines.items():
        (root / f"cpufree/{name}.hpp").write_text("\n" * count)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(root), *command], check=True)


def test_a_file_that_is_too_long_is_named(tmp_path: Path) -> None:
    tree(tmp_path, long=401, short=400)
    done = check(tmp_path)
    assert done.returncode == 1
    assert "cpufree/long.hpp: 401 lines, of which there may be 400" in done.stdout
    assert "short" not in done.stdout


def test_a_folder_with_too_many_sources_is_named(tmp_path: Path) -> None:
    tree(tmp_path, **{f"part_{k}": 1 for k in range(26)})
    assert "cpufree: 26 sources, of which there may be 25" in check(tmp_path).stdout


def test_the_repository_keeps_the_limits() -> None:
    done = check(ROOT)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("sizes: a reader of solvers meets ")
