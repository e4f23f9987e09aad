"""`cpufree simulate`: reports, files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import Run, runner

from cpufree.simulate import options as simulate_options
from cpufree.simulate import study
from cpufree.simulate.sweep import PROGRAMS
from cpufree.simulate.ways import WAYS


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


def test_the_command_has_the_options_of_the_schema(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    text = run("simulate", "--help").out
    for option in simulate_options.SIMULATE:
        assert option.spelling in text and option.help in text, option.name


def test_the_schema_names_the_programs_and_ways_that_there_are() -> None:
    assert set(simulate_options.PROGRAM_NAMES) == set(PROGRAMS)
    assert set(simulate_options.WAY_NAMES) == set(WAYS)


def test_a_sweep_reports_and_writes_all_its_files(run: Run, tmp_path: Path) -> None:
    plot, line, goal, report = (tmp_path / n for n in ("p.png", "t.json", "g.goal", "r.json"))
    words = ("simulate", "cg", "--matrix", "gen:poisson2d?nx=40,ny=40", "--pes", "2-4", "--way",
             "tn,hdn", "--rounds", "4", "--plot", plot, "--timeline", line, "--goal", goal,
             "--json", report)  # fmt: skip
    found = run(*words)
    assert found.code == 0 and "halo plan" in found.out
    assert found.out.count("fastest: ") == 1
    points = json.loads(report.read_text())["points"]
    assert [(one["way"], one["pes"]) for one in points] == [
        ("tn", 2), ("tn", 4), ("hdn", 2), ("hdn", 4),
    ]  # fmt: skip
    assert json.loads(line.read_text())["traceEvents"]
    assert goal.read_text().startswith("num_ranks 2\n") and plot.stat().st_size > 10_000


def test_programs_run_on_the_machine_that_the_environment_names(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("simulate", "allreduce", "--pes", "4", "--way", "nccl", "--json", str(tmp_path / "a"))
    own = tmp_path / "own.json"  # without a section of clusters
    own.write_text('{"format": "cpufree machine", "version": 1, "machine": "M", "choices": {}}')
    seconds = []
    for name in ("h200", "summit-2020", str(own)):
        monkeypatch.setenv("CPUFREE_MACHINE", name)
        assert run(*words).code == 0
        seconds.append(json.loads((tmp_path / "a").read_text())["points"][0]["seconds"])
    assert seconds[0] == seconds[2] != seconds[1]


def test_programs_run_on_a_machine_of_today_unless_another_is_named(run: Run) -> None:
    words = ("simulate", "message", "--pes", "2", "--way", "hdn")
    assert run(*words).out.startswith("8 NVIDIA H200")
    assert "Portals 4" in run(*words, "--machine", "gpu-tn-2017").out


@pytest.mark.parametrize("program", ["message", "jacobi", "allreduce", "training", "pipecg"])
def test_each_program_can_be_simulated(run: Run, program: str, tmp_path: Path) -> None:
    words = ("simulate", program, "--pes", "4", "--way", "gds", "--bytes", "4096", "--points",
             "256", "--rows", "10000", "--entries", "50000", "-q")  # fmt: skip
    found = run(*words, "--timeline", tmp_path / "t.png")
    assert found.code == 0 and found.out.startswith("fastest: gds on 4 PEs")


@pytest.mark.parametrize(
    ("value", "code", "line"), [(0.5, 0, "1 of 1 hold"), (2.0, 4, "0 of 1 hold")]
)
def test_a_study_ends_with_its_verdict(
    run: Run, monkeypatch: pytest.MonkeyPatch, value: float, code: int, line: str
) -> None:
    findings = [study.Finding("8", "some ratio", value, 0.0, 1.0)]
    monkeypatch.setattr(study, "check_paper", lambda cluster: findings)
    found = run("simulate", "check-paper")
    assert found.code == code and found.out.splitlines()[-1] == line
    assert "17" in found.out and "some ratio" in found.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("jacobi", "--way", "tm"), 2, "--way is 'tm'"),
        (("jacobi", "--matrix", "A.mtx"), 2, "jacobi takes no matrix"),
        (("allreduce", "--bytes", "-1"), 2, "--bytes is '-1'"),
        (("allreduce", "--bytes", "0.5"), 2, "from 1 to 1e12"),
        (("message", "--pes", "1"), 3, "a message needs 2 PEs"),
        (("jacobi", "--points", "2", "--pes", "64"), 3, "give each PE a point"),
        (("cg", "--rows", "10", "--entries", "1000"), 3, "1000 entries in 10 rows"),
        (("cg", "--rows", "1000", "--entries", "10"), 3, "has its diagonal"),
        (("check-paper", "--goal", "g.goal"), 2, "check-paper takes none"),
        (("check-scaling", "--machine", "h200"), 2, "check-scaling takes none"),
        (("fft",), 2, "fft"),
        (("jacobi", "--pes", "2-32768"), 3, "numbers of PEs are 1 to 16384"),
        (("jacobi", "--machine", "no.json"), 3, "no machine 'no.json'"),
        (("jacobi", "--timeline", "t.txt"), 3, "t.txt"),
        (("check-measured", "--records", "nowhere"), 3, "none of the records"),
    ],
)
def test_what_is_wrong_is_told(run: Run, words: tuple[str, ...], code: int, said: str) -> None:
    found = run("simulate", *words)
    assert found.code == code and said in found.err
