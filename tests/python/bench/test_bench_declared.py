"""Declared benchmarks: what is measured in which order, what the record holds, what is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench_script import BENCH, load
from cli_runner import runner

from cpufree.bench.core import records
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import Slope, median_of
from cpufree.bench.declared.table import means, rows
from cpufree.errors import InvalidInputError

pytestmark = pytest.mark.cpu_only


class Watched:
    """A benchmark of three contenders, and the calls that were made."""

    def __init__(self, **more: object) -> None:
        self.calls: list[str] = []
        self.closed = 0
        given = {"axes": {"size": (1, 10)}, "ours": "ours", "repeats": 5, **more}
        self.bench = Bench(name="watched", set_up=self.set_up, **given)  # type: ignore[arg-type]

    def set_up(self, case: Case) -> Iterator[Mapping[str, Call]]:
        def call(name: str, seconds: float) -> dict[str, float]:
            self.calls.append(f"{name} {case.size}")
            if name == "broken":
                raise ValueError("it broke")
            return {"seconds": seconds * case.size, "steps": 3}

        case.facts["points"] = case.size**2
        yield {
            "ours": lambda: call("ours", 1.0),
            "theirs": lambda: call("theirs", 2.0),
            "broken": lambda: call("broken", 0.0),
        }
        self.closed += 1


def run(watched: Watched, out: Path, *words: str) -> list[records.Line]:
    """Measure into a file; return its lines."""
    assert main(watched.bench, "about", [*words, "--out", str(out)]) == 0
    return records.read(out, ("watched",))[0]


def test_each_case_is_warmed_up_and_then_measured_in_rounds(tmp_path: Path) -> None:
    watched = Watched()
    run(watched, tmp_path / "a.jsonl")
    first, *_ = watched.calls
    assert first == "ours 1"
    assert watched.calls[:3] == ["ours 1", "theirs 1", "broken 1"]
    of_case = watched.calls[3:13]
    rounds = [of_case[k : k + 2] for k in range(0, 10, 2)]
    assert all(sorted(names) == ["ours 1", "theirs 1"] for names in rounds)
    assert len({tuple(names) for names in rounds}) == 2
    assert watched.closed == 2


def test_the_record_has_facts_first_calls_measurements_and_failures(tmp_path: Path) -> None:
    lines = run(Watched(), tmp_path / "a.jsonl")
    assert lines[0]["benchmark"] == "watched"
    assert lines[0]["configuration"]["axes"] == {"size": ["1", "10"]}
    assert [one["points"] for one in lines if one["kind"] == "problem"] == [1, 100]
    assert [one["contender"] for one in lines if one["kind"] == "first"] == ["ours", "theirs"] * 2
    measured = [one for one in lines if one["kind"] == "measurement" and one["size"] == "10"]
    assert sorted({one["seconds"] for one in measured}) == [10.0, 20.0]
    failed = [one for one in lines if one["kind"] == "failure"]
    assert [one["error"] for one in failed] == ["ValueError: it broke"] * 2
    assert lines[-1]["kind"] == "end"


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    whole, out = tmp_path / "whole.jsonl", tmp_path / "a.jsonl"
    run(Watched(), whole)
    kept = whole.read_text().splitlines()
    half = next(k for k, line in enumerate(kept) if '"size": "10"' in line) + 4
    out.write_text("\n".join(kept[:half]) + "\n")
    watched = Watched()
    lines = run(watched, out)
    assert not any(call.endswith(" 1") for call in watched.calls)
    measured = [one for one in lines if one["kind"] == "measurement"]
    assert len(measured) == 2 * 2 * 5


def test_the_table_compares_with_ours_by_the_rule_of_all_benchmarks(tmp_path: Path) -> None:
    watched = Watched(shown=("steps",), unit="s")
    lines = run(watched, tmp_path / "a.jsonl")
    assert rows(watched.bench, lines)[:2] == [
        ("size 1", "ours", "1", "1–1", "3", "", ""),
        ("size 1", "theirs", "2", "2–2", "3", "2.00", "faster"),
    ]
    assert list(means(watched.bench, lines)) == [
        "theirs over ours: 2.00 (geometric mean of 2), 2.00 to 2.00"
    ]


def test_what_a_benchmark_says_below_its_table_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def closing(found: Any) -> Iterator[str]:
        for case, of in found.items():
            yield f"{case}: {', '.join(of)}"

    run(Watched(closing=closing), tmp_path / "a.jsonl")
    assert "size 10: ours, theirs\n" in capsys.readouterr().out


def test_where_a_preconditioner_is_sooner_counts_set_up_and_convergence() -> None:
    won = load("preconditioners").won

    def of(whole: float, reason: str = "CONVERGED_RTOL") -> list[dict[str, Any]]:
        return [{"whole": whole, "reason": reason}]

    found = {
        "easy": {"jacobi": of(1.0), "fsai": of(2.0), "amg": of(3.0)},
        "hard": {"jacobi": of(9.0), "fsai": of(2.0), "amg": of(1.0)},
        "failing": {"jacobi": of(1.0, "DIVERGED_MAXITER"), "fsai": of(5.0)},
    }
    assert list(won(found)) == [
        "jacobi is sooner than amg on 1 of 2 (easy)",
        "fsai is sooner than jacobi on 2 of 3 (hard, failing)",
        "fsai is sooner than amg on 1 of 2 (easy)",
        "amg is sooner than jacobi on 1 of 2 (hard)",
    ]


def test_contenders_that_are_not_asked_for_are_left_out(tmp_path: Path) -> None:
    watched = Watched()
    run(watched, tmp_path / "a.jsonl", "--contenders", "ours", "--size", "7")
    assert set(watched.calls) == {"ours 7"}


def test_values_of_an_axis_with_names_are_those_names() -> None:
    bench = Watched(axes={"grid": {"small": 10, "large": 1000}}).bench
    chosen = bench.chosen({"grid": ["large"]}, on_gpus=False, quick=False)
    assert [case.grid for case in bench.cases(chosen)] == [1000]
    with pytest.raises(InvalidInputError, match=r"--grid lrge: unknown \(did you mean large\?\)"):
        bench.chosen({"grid": ["lrge"]}, on_gpus=False, quick=False)


@pytest.mark.parametrize("name", ["case", "round", "name"])
def test_an_axis_is_not_called_as_what_the_record_has(name: str) -> None:
    with pytest.raises(ValueError, match=f"an axis cannot be called {name}"):
        Watched(axes={name: (1, 2)})


def test_numbers_may_be_given_with_commas_and_others_are_refused() -> None:
    bench = Watched().bench
    chosen = bench.chosen({"size": ["3,4", "10"]}, on_gpus=False, quick=False)
    assert list(chosen["size"].values()) == [3, 4, 10]
    with pytest.raises(InvalidInputError, match="--size x: give a number"):
        bench.chosen({"size": ["x"]}, on_gpus=False, quick=False)


def test_axes_are_those_of_the_cpu_and_of_quick_runs() -> None:
    bench = Watched(axes={"size": (5, 6)}, cpu={"size": (3,)}, quick={"size": (1,)}).bench
    found = [bench.chosen({}, on_gpus=g, quick=q) for g, q in ((1, 0), (0, 0), (1, 1))]
    assert [list(one["size"].values()) for one in found] == [[5, 6], [3], [1]]


def test_no_case_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    watched = Watched()
    words = ["--seconds", "-1", "--out", str(tmp_path / "a.jsonl")]
    assert main(watched.bench, "about", words) == 4
    assert watched.calls == []


def test_a_dry_run_lists_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    watched = Watched()
    assert main(watched.bench, "about", ["--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == ["size 1", "size 10"]
    assert watched.calls == []


def test_a_slope_is_free_of_what_a_run_takes_however_short() -> None:
    slope = Slope(lambda steps: 5.0 + 0.25 * steps)
    answer = slope()
    assert answer["seconds"] == pytest.approx(0.25)
    assert json.dumps(answer)


def test_a_median_of_slopes_leaves_out_the_first_and_odd_ones() -> None:
    calls: list[int] = []

    def seconds(steps: int) -> float:
        calls.append(steps)
        return 0.25 * steps * (100.0 if len(calls) in (4, 8, 11) else 1.0)

    answer = median_of(Slope(seconds, short=20, most=20), 3)()
    assert (answer["seconds"], answer["steps"]) == (pytest.approx(0.25), 20)
    assert answer["least"] < 0.25
    assert len(calls) == 3 + 2 * (1 + 3)


def test_a_file_runs_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, call = tmp_path / "mine.py", runner(capsys, monkeypatch)
    script.write_text(
        "from cpufree.bench.declared import Bench\n"
        "BENCH = Bench(name='sums', axes={'count': (10, 100)}, repeats=5,\n"
        "    set_up=lambda case: iter([{'sum': lambda: sum(range(case.count)) / 1e9}]))\n"
    )
    ended = call("bench", "run", script, "--count", 5, "--quick")
    assert ended.code == 0
    assert ended.out.splitlines()[2].split() == ["count", "5", "sum", "1e-05", "1e-05–1e-05"]


def test_a_report_of_its_record_names_the_command_that_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a.jsonl"
    run(Watched(), out)
    capsys.readouterr()
    ended = runner(capsys, monkeypatch)("bench", "report", out)
    assert ended.code == 3
    assert "but of watched: its own command shows them by --show a.jsonl" in ended.err
    assert main(Watched().bench, "about", ["--show", str(out)]) == 0
    assert "theirs over ours: 2.00" in capsys.readouterr().out


def test_a_file_without_a_declaration_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "mine.py"
    script.write_text("")
    ended = runner(capsys, monkeypatch)("bench", "run", script)
    assert (ended.code, "declares no BENCH" in ended.err) == (3, True)


def test_calls_that_change_what_they_find_are_made_once_and_in_order(tmp_path: Path) -> None:
    watched = Watched(cold=True, ordered=True, repeats=1)
    run(watched, tmp_path / "a.jsonl", "--size", "7")
    assert watched.calls == ["ours 7", "theirs 7", "broken 7"]


def test_a_failure_of_a_strict_benchmark_is_one_of_the_command(tmp_path: Path) -> None:
    watched = Watched(strict=True)
    assert main(watched.bench, "about", ["--out", str(tmp_path / "a.jsonl")]) == 1


SCRIPTS = sorted(
    str(file.relative_to(BENCH).with_suffix(""))
    for file in BENCH.rglob("*.py")
    if "Bench(" in file.read_text("utf-8")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_declares_cases_on_gpus_on_the_cpu_and_of_quick_runs(script: str) -> None:
    bench = load(script).BENCH
    for on_gpus, quick in ((True, False), (False, False), (False, True)):
        cases = bench.cases(bench.chosen({}, on_gpus=on_gpus, quick=quick))
        assert len({case.name for case in cases}) == len(cases) > 0
