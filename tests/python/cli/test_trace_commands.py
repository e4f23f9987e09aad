"""`cpufree trace`, and --trace of other commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_runner import Run, runner

import cpufree

SMALL = "gen:poisson2d?nx=20,ny=20"
HOW = ("--engine", "cpu_threads", "--blocks", 1, "--quiet")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("traces")
    files = [str(folder / name) for name in ("one.pftrace", "two.json")]
    A = cpufree.generate.poisson2d(20, 20)
    for pes, file in zip((2, 3), files, strict=True):
        cpufree.solve(A, np.ones(400), engine="cpu_threads", pes=pes, blocks=1, trace=file)
    return files


def test_report_tells_and_writes(run: Run, traces: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "r.json"
    ended = run("trace", "report", traces[0], "--json", str(out), "--plot", str(tmp_path / "r.png"))
    assert ended.code == 0, ended.err
    for words in ("payload in bytes", "late sender", "critical path", "what if"):
        assert words in ended.out
    told = json.loads(out.read_text())
    assert told["bytes"][0][1] > 0
    assert (tmp_path / "r.png").stat().st_size > 1000


def test_a_part_of_the_time_line_is_drawn(run: Run, traces: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "t.svg"
    ended = run("trace", "picture", traces[1], str(out))
    assert ended.code == 0, ended.err
    text = out.read_text()
    assert text.count("PE 2, block 0") >= 1
    assert "vector updates" in text and "waiting" in text


def test_compare_shows_both(run: Run, traces: list[str]) -> None:
    ended = run("trace", "compare", *traces)
    assert ended.code == 0, ended.err
    assert "time of an iteration" in ended.out


def test_a_stencil_is_traced(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    how = (*HOW, "--pes", 2, "--iters", 4, "--grid", "32x32")
    ended = run("stencil", "jacobi2d", *how, "--trace", file)
    assert ended.code == 0, ended.err
    assert file.read_text().startswith("ns,pe,block")


def test_a_solve_is_traced(run: Run, tmp_path: Path) -> None:
    ended = run("solve", SMALL, *HOW, "--pes", 2, "--trace", tmp_path / "t.pftrace")
    assert ended.code == 0, ended.err
    assert cpufree.trace.load(tmp_path / "t.pftrace").facts["pes"] == 2


def test_a_bad_name_is_refused_at_once(run: Run, tmp_path: Path) -> None:
    ended = run("solve", SMALL, "--trace", tmp_path / "t.txt")
    assert ended.code == 3
    assert "must end in one of .pftrace" in ended.err
