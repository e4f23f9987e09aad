"""Runs of tests are compared with the interpreter; those of test_check.py with DaCe's own code."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def runs_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare all runs without messages with the interpreter."""
    monkeypatch.setattr("cpufree.dace.check", "interpreter")
