"""Fixtures shared by the tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def find_data_dir() -> Path | None:
    """Return the directory of SuiteSparse matrices, None where there is none."""
    named = os.environ.get("CPUFREE_DATA")
    directory = Path(named) if named else ROOT.parent / "shared" / "data"
    return directory if any(directory.glob("*.mtx.gz")) else None


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """A directory of SuiteSparse matrices (.mtx.gz); tests that need it skip where it is not."""
    directory = find_data_dir()
    if directory is None:
        pytest.skip("no directory of SuiteSparse matrices; name one in CPUFREE_DATA")
    return directory


@pytest.fixture(autouse=True)
def usual_ctrl_c() -> Iterator[None]:
    """Give each test Python's own handler of SIGINT: background jobs of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
