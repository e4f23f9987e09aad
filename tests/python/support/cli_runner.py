"""Runs the command line in this process, for the tests of commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cpufree.cli import app as cli

POISSON = "gen:poisson2d?nx=20,ny=20"


@dataclass(frozen=True)
class Ended:
    """How a run of the command line ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


def runner(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*words: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        seen = capsys.readouterr()
        return Ended(int(ended.value.code or 0), seen.out, seen.err)

    return call
