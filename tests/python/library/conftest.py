"""libcpufree, built in the build folder of the package and installed for tests."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cpufree.extension import BUILD_FOLDER


@pytest.fixture(scope="session")
def cmake() -> Callable[..., str]:
    """Return a function that runs the CMake of the tests' environment, and returns what it says."""
    program = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("needs cmake")

    def run(*words: str | Path) -> str:
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def prefix(cmake: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where libcpufree is installed, as `cmake --install` does it for users."""
    rules = BUILD_FOLDER / "build.ninja"
    if not rules.exists() or "cpufree_solver" not in rules.read_text(encoding="utf-8"):
        pytest.skip("needs a build with all kernels: make .venv/.installed-all")
    with (BUILD_FOLDER / ".part").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes one builds it
        cmake("--build", BUILD_FOLDER, "--target", "cpufree_solver", "cpufree_cpu_threads")
    folder = tmp_path_factory.mktemp("installed")
    cmake("--install", BUILD_FOLDER, "--component", "development", "--prefix", folder)
    return folder


@pytest.fixture(scope="session")
def library(prefix: Path) -> Path:
    """Return the file of libcpufree."""
    (found,) = prefix.glob("lib*/**/libcpufree.so")
    return found.resolve()
