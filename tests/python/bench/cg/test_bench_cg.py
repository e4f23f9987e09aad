"""`cpufree bench cg` from end to end: what it measures, writes, survives, goes on with, refuses."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bench_cases import SMALL, Lines, Run, fake, of_kind, read

from cpufree.bench.core import pool, processes
from cpufree.bench.core.worker_process import WorkerProcess
from cpufree.cli import app as cli

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.skipif(not processes.PROC.is_dir(), reason="needs /proc"),
]


def test_contenders_are_interleaved_checked_and_all_written(run: Run, out: Path) -> None:
    words = [SMALL, "--contenders", "cpufree,scipy", "--repeats", "3", "--iterations", "15"]
    code, lines = run(*words)
    assert code == 0
    header = lines[0]
    assert header["seed"] == 1 and header["configuration"]["repeats"] == 3
    assert header["command"].startswith("cpufree") and header["machine"]["cores"] > 0
    measured = of_kind(lines, "measurement")
    rounds = [
        {(x["contender"], x["method"]) for x in measured if x["round"] == r} for r in range(3)
    ]
    everybody = {("cpufree", m) for m in ("cg", "prcg", "pipecg")} | {("scipy", "cg")}
    assert rounds == [everybody] * 3
    assert [x["round"] for x in measured] == [0] * 4 + [1] * 4 + [2] * 4
    assert all(x["iterations"] == 15 and x["reason"] == "CONVERGED_ITS" for x in measured)
    checks = of_kind(lines, "check")
    assert len(checks) == 4
    assert all(x["true_residual"] == pytest.approx(checks[0]["true_residual"]) for x in checks)
    assert all(x["error"] == pytest.approx(checks[0]["error"]) for x in checks)


def test_solves_to_a_tolerance_reach_it_in_both_precisions(run: Run) -> None:
    words = ["--rtol", "1e-4", "--precision", "double,single", "--pc", "jacobi", "--repeats", "1"]
    code, lines = run(SMALL, "--contenders", "cpufree,scipy", "--pes", "1,2", *words)
    assert code == 0
    checks = of_kind(lines, "check")
    assert len(checks) == 2 * (4 + 3)  # SciPy has one method, and one PE
    assert all(check["reason"] == "CONVERGED_RTOL" for check in checks)
    assert all(check["true_residual"] <= 1e-4 * 1.01 for check in checks)
    (one, two) = of_kind(lines, "failure")
    assert (one["contender"], one["pes"], one["unsupported"]) == ("scipy", 2, True)
    assert two["precision"] == "single"


def test_fixed_iterations_are_cut_where_cg_has_converged(run: Run) -> None:
    _, lines = run(
        "gen:poisson1d?n=10", "--contenders", "cpufree", "--pes", "1,2", "--repeats", "1"
    )
    (cut,) = of_kind(lines, "iterations")  # once for all numbers of PEs
    assert cut["iterations"] <= 10
    assert {x["iterations"] for x in of_kind(lines, "measurement")} == {cut["iterations"]}


def test_who_crashes_or_lacks_something_is_recorded_and_the_others_go_on(run: Run) -> None:
    peers = ("good", "crash", "garbage", "flood", "few")
    words = ["--methods", "cg,prcg", "--repeats", "2", "--iterations", "5"]
    code, lines = run(SMALL, *words, peers=peers)
    assert code == 0
    failed = {(x["contender"], x["method"]): x["error"] for x in of_kind(lines, "failure")}
    assert failed.keys() == {("crash", "cg"), ("crash", "prcg"), ("few", "prcg")}
    assert all("SIGABRT" in e and "about to fall" in e for e in failed.values())
    measured = [(x["contender"], x["method"]) for x in of_kind(lines, "measurement")]
    for name in ("good", "garbage", "flood"):
        assert measured.count((name, "cg")) == measured.count((name, "prcg")) == 2
    assert measured.count(("few", "cg")) == 2


def test_who_hangs_is_recorded_after_the_deadline(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = WorkerProcess.ask

    def impatient(
        worker: WorkerProcess, request: dict[str, Any], seconds: float, stop: bool = True
    ) -> dict[str, Any]:
        waits = worker.name == "silent" or (worker.name == "hang" and request["do"] == "solve")
        return ask(worker, request, 0.5 if waits else seconds, stop)

    monkeypatch.setattr(WorkerProcess, "ask", impatient)
    words = ["--methods", "cg", "--repeats", "1"]
    code, lines = run(SMALL, *words, peers=("good", "hang", "silent"))
    assert code == 0
    failed = {x["contender"]: (x["method"], x["error"]) for x in of_kind(lines, "failure")}
    assert failed["hang"][0] == "cg" and failed["silent"][0] is None
    assert all("no answer within 0.5 s" in error for _, error in failed.values())
    assert {x["contender"] for x in of_kind(lines, "measurement")} == {"good"}


def test_who_never_starts_is_given_up(run: Run) -> None:
    matrices = [f"gen:poisson1d?n={n}" for n in (5, 6, 7)]
    peer = ["--peer", "broken={python} -c 'raise SystemExit(9)'", "--contenders", "broken"]
    code, lines = run(*matrices, *peer, "--methods", "cg")
    assert code == 4  # nothing was measured
    errors = [x["error"] for x in of_kind(lines, "failure")]
    assert ["(status 9)" in error for error in errors] == [True, True, False]
    assert errors[2] == "given up after 2 starts that failed"


def test_variants_that_a_contender_lacks_are_recorded_as_such(run: Run) -> None:
    words = ["--variant", "full,no-comm", "--methods", "cg", "--repeats", "1"]
    _, lines = run(SMALL, "--contenders", "scipy", *words)
    (failure,) = of_kind(lines, "failure")
    assert (failure["variant"], failure["unsupported"]) == ("no-comm", True)
    assert {x["variant"] for x in of_kind(lines, "measurement")} == {"full"}


def test_variants_of_cpufree_are_measured_for_the_iterations_of_the_solve(run: Run) -> None:
    words = ["--variant", "full,no-compute,no-comm", "--pes", "1,3", "--repeats", "2"]
    code, lines = run(SMALL, "--contenders", "cpufree", "--iterations", "25", *words)
    assert code == 0 and not of_kind(lines, "failure")
    measured = of_kind(lines, "measurement")
    assert len(measured) == 2 * 3 * 3 * 2
    assert {(x["iterations"], x["reason"]) for x in measured} == {(25, "CONVERGED_ITS")}
    assert all((x["residual"] is None) == (x["variant"] != "full") for x in measured)
    assert {x["variant"] for x in of_kind(lines, "check")} == {"full"}


@pytest.mark.parametrize(
    "words",
    [
        ("--variant", "full,no-compute", "--rtol", "1e-4"),
        ("--tuning", "cpufree.treads=2"),
        ("--tuning", "scipy.threads=2"),
    ],
    ids=str,
)
def test_what_cannot_be_measured_is_refused_before_there_is_a_file(
    run: Run, words: tuple[str, ...]
) -> None:
    code, lines = run(SMALL, *words)
    assert code == 2 and not lines


def test_command_that_is_corrected_begins_the_file_anew(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [SMALL, "--contenders", "cpufree", "--methods", "cg", "--repeats", "1"]
    code, lines = run(*words, "--tuning", "cpufree.threads=many")
    assert code == 4 and not of_kind(lines, "measurement")
    code, lines = run(*words)
    assert code == 0 and len(of_kind(lines, "measurement")) == 1
    assert len(of_kind(lines, "header")) == 1 and not of_kind(lines, "failure")
    assert "begun again" in capsys.readouterr().err


def test_variants_that_are_not_compiled_are_recorded_as_such(run: Run) -> None:
    words = ["--variant", "no-comm", "--methods", "cg", "--pc", "jacobi", "--repeats", "1"]
    code, lines = run(SMALL, "--contenders", "cpufree", *words)
    (failure,) = of_kind(lines, "failure")
    assert code == 4 and failure["unsupported"]
    assert "without a preconditioner alone" in failure["error"]


def test_split_is_told_by_a_solve_of_its_own(run: Run, out: Path, tmp_path: Path) -> None:
    words = [SMALL, "--contenders", "cpufree", "--pes", "2", "--repeats", "2"]
    code, lines = run(*words, "--variant", "full,no-comm", "--iterations", "20")
    assert code == 0
    assert all(x["split"] is None for x in of_kind(lines, "measurement"))
    told = of_kind(lines, "split")
    assert [x["method"] for x in told] == ["cg", "prcg", "pipecg"]
    assert {x["variant"] for x in told} == {"full"}
    for line in told:
        assert line["iterations"] == 20
        assert 0.0 < sum(line["split"].values()) <= line["seconds"]
    with pytest.raises(SystemExit):
        cli.main(["bench", "report", str(out), "--out", str(tmp_path / "report")])
    text = (tmp_path / "report/report.md").read_text()
    assert "where they go" in text and "| cpufree prcg |" in text
    assert (tmp_path / "report/breakdown-double-none-2.png").exists()


def test_split_that_is_missing_is_asked_for_when_a_run_goes_on(run: Run, out: Path) -> None:
    words = [SMALL, "--contenders", "cpufree", "--repeats", "1", "--iterations", "5"]
    _, whole = run(*words)
    text = out.read_bytes()
    out.write_bytes(text[: text.rindex(b'{"kind": "split"')])
    _, lines = run(*words)
    assert len(of_kind(lines, "split")) == len(of_kind(whole, "split")) == 3
    assert of_kind(lines, "measurement") == of_kind(whole, "measurement")


RESUMED = (SMALL, "--methods", "cg", "--iterations", "5", "--repeats", "5")


def test_run_goes_on_where_it_was_cut_off(run: Run, out: Path) -> None:
    _, whole = run(*RESUMED, peers=("good", "garbage"))
    text = out.read_bytes()
    cut = text.index(b'"round": 2') + 40  # in the middle of a line
    out.write_bytes(text[:cut])
    code, lines = run(*RESUMED, peers=("good", "garbage"))
    assert code == 0

    def keys(lines: Lines) -> list[tuple[str, int]]:
        return [(x["contender"], x["round"]) for x in of_kind(lines, "measurement")]

    assert keys(lines) == keys(whole)
    kept = text[:cut].count(b"\n")
    assert lines[:kept] == whole[:kept]
    assert len(of_kind(lines, "check")) == len(of_kind(whole, "check"))


def test_finished_run_measures_nothing_more(
    run: Run, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*RESUMED, peers=("good",))
    monkeypatch.setattr(pool.Pool, "load", None)  # no contender may be started
    before = read(out)
    code, lines = run(*RESUMED, peers=("good",))
    assert code == 0
    assert lines[:-1] == before and lines[-1]["kind"] == "end"


def test_failures_are_tried_again_only_when_asked(run: Run) -> None:
    words = [SMALL, "--methods", "cg", "--iterations", "5", "--repeats", "1"]
    assert len(of_kind(run(*words, peers=("crash",))[1], "failure")) == 1
    assert len(of_kind(run(*words, peers=("crash",))[1], "failure")) == 1
    assert len(of_kind(run(*words, "--retry", peers=("crash",))[1], "failure")) == 2


@pytest.mark.parametrize("other", [["--seed", "2"], ["--pc", "jacobi"], ["--pes", "2"]])
def test_file_of_another_configuration_is_refused_and_kept(
    run: Run, out: Path, capsys: pytest.CaptureFixture[str], other: list[str]
) -> None:
    words = [SMALL, "--methods", "cg", "--iterations", "2", "--repeats", "1"]
    if not out.exists():
        run(*words, peers=("good",))
    before = out.read_bytes()
    code, _ = run(*words, *other, peers=("good",))
    error = " ".join(capsys.readouterr().err.split())
    assert code == 3
    assert "holds results of another run" in error and " was " in error and "--out" in error
    assert out.read_bytes() == before


def test_damaged_file_is_refused_with_the_line(
    run: Run, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*RESUMED, peers=("good",))
    lines = out.read_text().splitlines()
    lines[3] = lines[3][:20]
    out.write_text("\n".join(lines) + "\n")
    code, _ = run_again(run, out)
    assert code == 3
    assert "line 4 is damaged" in capsys.readouterr().err


def run_again(run: Run, out: Path) -> tuple[int, Lines]:
    """Run the resumed command on a file that cannot be read back as lines."""
    try:
        return run(*RESUMED, peers=("good",))
    except ValueError:
        return 3, []


def test_file_whose_header_was_cut_off_is_begun_anew(run: Run, out: Path) -> None:
    out.write_text('{"kind": "hea')
    code, lines = run(*RESUMED, peers=("good",))
    assert code == 0
    assert lines[0]["kind"] == "header" and len(of_kind(lines, "measurement")) == 5


@pytest.mark.parametrize("text", ['{"my": "data"}\n', '{"my": "data"}'])
def test_file_of_something_else_is_left_alone(
    run: Run, out: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    out.write_text(text)
    code, _ = run(*RESUMED, peers=("good",))
    assert code == 3
    assert out.read_text() == text


def test_ctrl_c_ends_all_workers_and_the_run_can_go_on(tmp_path: Path, cache: Path) -> None:
    numbers, out = tmp_path / "numbers", tmp_path / "results.jsonl"
    code = (
        "from cpufree.bench.core import rates\n"
        "rates.measure_rate = lambda gpus, cores: {'what': 'triad', 'bytes_per_second': [1.0]}\n"
        "from cpufree.cli import app as cli\n"
        "cli.main()\n"
    )
    words = ["bench", "cg", SMALL, "--peer", fake("family", numbers), "--contenders", "family"]
    words += ["--cache", str(cache), "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 120
    while not (numbers.exists() and numbers.read_text().count(" ") == 2):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert "goes on" in said
    there = {pid: state for pid, (_, _, state) in processes.processes().items() if state != "Z"}
    assert not [pid for pid in map(int, numbers.read_text().split()) if pid in there]
    assert read(out)[0]["kind"] == "header"


def test_bar_is_shown_on_a_terminal_only(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(*RESUMED, "--quiet", peers=("good",))
    seen = capsys.readouterr()
    assert (seen.out, seen.err.count("\n")) == ("", 1)
    assert seen.err.startswith("written: ")
