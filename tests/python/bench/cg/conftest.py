"""Fixtures of tests of `cpufree bench cg` and of its reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_cases import FILE, Lines, Run, fake, read

from cpufree.bench.cg.results import Results
from cpufree.bench.core import rates
from cpufree.cli import app as cli


@pytest.fixture(autouse=True)
def no_triad(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the triad, which takes seconds and half a gigabyte."""
    rate = {"what": "triad", "bytes_per_second": [1e9]}
    monkeypatch.setattr(rates, "measure_rate", lambda gpus, cores: rate)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that keeps matrices from test to test."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The file of results."""
    return tmp_path / "results.jsonl"


@pytest.fixture
def run(out: Path, cache: Path) -> Run:
    """Return a function that runs `cpufree bench cg`; it returns exit code and lines."""

    def call(*words: str, peers: tuple[str, ...] = ()) -> tuple[int, Lines]:
        given = [word for kind in peers for word in ("--peer", fake(kind))]
        names = ["--contenders", ",".join(peers)] if peers else []
        files = ["--out", str(out), "--cache", str(cache)]
        with pytest.raises(SystemExit) as ended:
            cli.main(["bench", "cg", *given, *names, *files, *words])
        return int(ended.value.code or 0), read(out) if out.exists() else []

    return call


@pytest.fixture(scope="module")
def lines() -> Lines:
    """The lines of the file."""
    return [json.loads(line) for line in FILE.read_text().splitlines()]


@pytest.fixture
def changed(lines: Lines, tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], None]], Results]:
    """Return a function that changes each line and returns the results of what comes out."""

    def change(what: Callable[[dict[str, Any]], None]) -> Results:
        new = json.loads(json.dumps(lines))
        for line in new:
            what(line)
        file = tmp_path / "changed.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in new))
        return Results([file])

    return change
