"""Where the wall time of a command goes: phases that add up, and their chart."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli_runner import Run, runner
from rich.console import Console

from cpufree.cli import timeline
from cpufree.laps import Laps

POISSON = "gen:poisson2d?nx=40,ny=40"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    monkeypatch.setattr(timeline, "_begun", [])  # of a test that has begun a command
    return runner(capsys, monkeypatch)


def test_phases_of_a_command_add_up_to_the_time_of_its_laps(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums: list[tuple[float, float]] = []
    phases = timeline.phases

    def watched(laps: Laps, timings: Mapping[str, float] | None = None) -> dict[str, float]:
        found = phases(laps, timings)
        sums.append((sum(found.values()), laps._last - laps._begin))
        return found

    monkeypatch.setattr(timeline, "phases", watched)
    run("solve", POISSON, "--timings", "--json", "-", "--engine", "cpu_threads")
    assert len(sums) == 2
    assert all(of_phases == pytest.approx(of_laps, rel=1e-9) for of_phases, of_laps in sums)


def test_phases_begin_with_the_process_and_overlap_nowhere(tmp_path: Path) -> None:
    words = ["solve", POISSON, "--json", "report.json", "--engine", "cpu_threads"]
    program = [sys.executable, "-m", "cpufree", *words]
    begin = time.perf_counter()
    subprocess.run(program, check=True, capture_output=True, cwd=tmp_path)
    wall = time.perf_counter() - begin
    phases = json.loads((tmp_path / "report.json").read_text())["phases"]
    # The report itself, and the end of the process, are not in it; starts are known to 10 ms.
    assert sum(phases.values()) < wall + 0.02
    assert list(phases)[:4] == ["interpreter", "imports", "join", "generating"]
    assert {"setup_check", "setup_partition", "solve_kernel", "check"} <= set(phases)
    assert all(seconds >= 0.0 for seconds in phases.values())


def test_timings_are_shown_after_the_report(run: Run) -> None:
    told = run("solve", POISSON, "--timings").out
    report, chart = told.split("Wall time, from the start of the process: ")
    assert "true residual" in report
    shares = [float(share) for share in re.findall(r"([0-9.]+)%", chart)]
    assert sum(shares) == pytest.approx(100.0 + 0.5, abs=1.5)  # 0.5 % is in a name
    assert "the matrix is generated" in chart


def test_timings_are_not_shown_unasked(run: Run) -> None:
    assert "Wall time" not in run("solve", POISSON).out


def test_timings_go_where_the_report_goes(run: Run) -> None:
    ended = run("solve", POISSON, "--timings", "--json", "-")
    assert json.loads(ended.out)["phases"]
    assert "Wall time" in ended.err


def test_parts_take_the_place_of_their_lap() -> None:
    laps = Laps()
    laps.seconds = {"reading": 2.0, "setup": 1.0, "solve": 3.0, "report": 0.5}
    timings = {"setup": 0.9, "setup_check": 0.75, "solve": 2.9, "kernel": 2.0, "solve_kernel": 2.0}
    assert timeline.phases(laps, timings) == {
        "reading": 2.0,
        "setup_check": 0.75,
        "setup_rest": 0.25,
        "solve_kernel": 2.0,
        "solve_rest": 1.0,
        "report": 0.5,
    }


def test_a_bar_begins_where_the_one_before_ended() -> None:
    console = Console(width=140, color_system=None, record=True, file=io.StringIO())
    console.print(timeline.chart({"reading": 1.0, "solve_kernel": 3.0, "write": 0.001}))
    _, first, second, rest = console.export_text().rstrip().splitlines()
    assert first.startswith("  the matrix is read")
    assert second.startswith("  solve: kernel")
    assert "75.0%" in second
    column = first.index("█")
    assert second[column] == " "  # the phase before was there
    assert second.rindex("█") > first.rindex("█")
    assert rest.startswith("  all that takes less than 0.5%")


def test_only_the_command_of_the_process_counts_from_its_start() -> None:
    timeline.begin()
    assert list(timeline.take().seconds) == ["interpreter"]
    assert timeline.take().seconds == {}
