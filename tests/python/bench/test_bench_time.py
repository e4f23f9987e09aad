"""`cpufree bench time`: programs in processes of their own, their phases, and the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Run, runner

from cpufree.bench.declared import Call
from cpufree.bench.declared.process import ProcessError
from cpufree.bench.time import tables
from cpufree.bench.time.measure import TIMES
from cpufree.bench.time.programs import program

SMALL = "gen:poisson2d?nx=12,ny=12"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


def calls(kind: str, **changed: str) -> Mapping[str, Call]:
    """Return the programs of a small measurement."""
    asked = {"matrix": SMALL, "method": kind, "engine": "cpu_threads", "solves": "3", **changed}
    axes = TIMES.chosen({k: [v] for k, v in asked.items()}, on_gpus=False, quick=False)
    (case,) = TIMES.cases(axes)
    return next(iter(TIMES.set_up(case)))


def test_each_kind_has_the_programs_that_there_are() -> None:
    assert set(calls("command")) == {"cpufree"}
    assert set(calls("script")) == set(calls("repeat")) == {"cpufree", "scipy", "cupy"}


def test_only_cpufree_has_a_command() -> None:
    assert program("scipy", "command", SMALL, 1e-8, 10, 1, "auto") is None


@pytest.mark.parametrize(
    ("kind", "contender", "names"),
    [
        ("command", "cpufree", {"imports", "generating", "solve_kernel", "outside"}),
        ("script", "cpufree", {"imports", "set-up", "solve 1", "outside"}),
        ("repeat", "scipy", {"imports", "matrix", "set-up", "solve 3", "outside"}),
    ],
)
def test_phases_of_a_program_add_up_to_its_wall_time(
    kind: str, contender: str, names: set[str]
) -> None:
    found: Any = calls(kind)[contender]()
    assert names <= set(found["phases"])
    assert sum(found["phases"].values()) == pytest.approx(found["seconds"], rel=0.02, abs=0.03)
    assert found["error"] <= 1e-8
    assert found["iterations"] > 5


def test_a_program_that_fails_tells_why() -> None:
    with pytest.raises(ProcessError, match="no-such-thing"):
        calls("script", matrix="gen:no-such-thing")["cpufree"]()


def line(contender: str, seconds: float, number: int, kind: str = "script") -> dict[str, Any]:
    """Return a line of a measurement."""
    phases = {"imports": 0.5, "solve 1": seconds, "solve 2": seconds / 2}
    one = {"case": f"A.mtx, {kind}", "matrix": "A.mtx", "method": kind, "contender": contender}
    facts = {"seconds": seconds, "phases": phases, "iterations": 7, "error": 0.0}
    return {"kind": "measurement", **one, "round": number, **facts}


def test_the_table_has_medians_and_ratios_of_one_run() -> None:
    lines = [line("cpufree", s, k) for k, s in enumerate((1.0, 1.1, 0.9, 1.05, 0.95))]
    lines += [line("scipy", 3 * s, k) for k, s in enumerate((1.0, 1.1, 0.9, 1.05, 0.95))]
    ours, theirs = tables.rows(lines)
    assert ours[:6] == ("A.mtx", "script", "cpufree", "1", "7", "1.00×")
    assert theirs[:7] == ("A.mtx", "script", "scipy", "3", "7", "3.00×", "faster")
    assert "imports 0.5" in theirs[7]


def test_of_many_solves_the_first_does_not_count() -> None:
    assert tables.seconds_of("repeat", line("cpufree", 4.0, 0, "repeat")) == 2.0
    assert tables.seconds_of("script", line("cpufree", 4.0, 0)) == 4.0


def test_the_command_writes_a_record_and_goes_on_with_it(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "times.jsonl"
    words = ["bench", "time", SMALL, "--kinds", "script", "--contenders", "cpufree", "-q"]
    words += ["--engine", "cpu_threads", "--quick", "--out", str(out)]
    ended = run(*words)
    assert ended.code == 0, ended.err
    assert "script" in ended.out
    lines = [json.loads(text) for text in out.read_text().splitlines()]
    kinds = ["header", "problem", "measurement", "done", "end"]
    assert [one["kind"] for one in lines] == kinds
    header = lines[0]
    assert header["benchmark"] == "time"
    assert {"machine", "versions", "date", "command", "commit", "configuration"} <= set(header)
    assert run(*words).code == 0
    again = [json.loads(text) for text in out.read_text().splitlines()]
    assert [one["kind"] for one in again].count("measurement") == 1


def test_a_contender_that_is_not_here_is_refused_with_the_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree.bench.time.programs.importlib.util.find_spec", lambda name: None)
    ended = run("bench", "time", SMALL, "--contenders", "cupy")
    assert ended.code == 2
    assert "CuPy is not installed" in ended.err


def test_the_report_of_other_benchmarks_says_where_the_table_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"kind": "header", "benchmark": "time", "schema": 1}\n')
    ended = run("bench", "report", tmp_path / "t.jsonl")
    assert ended.code == 3
    assert "shows its table" in ended.err


def test_choices_of_pes_are_programs_beside_the_one_that_chooses() -> None:
    assert list(calls("command", pes="1,2")) == ["cpufree", "cpufree on 1", "cpufree on 2"]
    words = program("cpufree on 2", "command", SMALL, 1e-8, 10, 1, "cpu_threads")
    assert words is not None and words[words.index("--pes") + 1] == "2"
    assert program("cpufree on 2", "script", SMALL, 1e-8, 10, 1, "cpu_threads") is None


def test_choices_are_compared_with_the_command_that_chooses() -> None:
    def line(contender: str, seconds: float) -> dict[str, object]:
        key = {"case": "A", "method": "command", "contender": contender}
        return {"kind": "measurement", **key, "seconds": seconds, "phases": {}, "iterations": 1}

    table = tables.rows([line("cpufree", 2.0), line("cpufree on 1", 3.0)])
    assert {row[2]: row[5] for row in table} == {"cpufree": "", "cpufree on 1": "1.50×"}
