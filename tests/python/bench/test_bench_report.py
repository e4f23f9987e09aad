"""Reports on benchmarks: what follows from a small file of made-up times, and how it is shown.

bench_synthetic.jsonl was made by a formula, for 1 and 4 PEs and two matrices: an iteration takes
bytes / rate + latency, with 1.2 % of noise.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib import image
from paths import SUPPORT

from cpufree.bench.cg import plots, tables
from cpufree.bench.cg.configuration import Configuration, Group
from cpufree.bench.cg.problems import Case
from cpufree.bench.cg.results import Results, host_driven
from cpufree.bench.core.plan import Task
from cpufree.bench.report.captions import machine_text, warnings
from cpufree.bench.report.document import markdown
from cpufree.cli import app as cli
from cpufree.errors import FileFormatError, InvalidInputError

FILE = SUPPORT / "bench_synthetic.jsonl"
FOUR = Group("small", "double", "none", 4)
ONE = Group("small", "double", "none", 1)
Lines = list[dict[str, Any]]


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


def median_of(lines: Lines, case: str, pes: int, contender: str, method: str) -> float:
    """Return the median seconds per iteration, straight from the lines."""
    key = {"kind": "measurement", "case": case, "pes": pes, "contender": contender}
    key |= {"method": method, "variant": "full"}
    found = [x for x in lines if key.items() <= x.items()]
    assert len(found) == 5
    return statistics.median(x["seconds"] / x["iterations"] for x in found)


def cells(table: tables.Table, *first: str) -> dict[str, str]:
    """Return the row that begins with these cells, by head."""
    (row,) = (row for row in table.rows if row[: len(first)] == first)
    return dict(zip(table.heads, row, strict=True))


def test_times_are_medians_of_the_lines(lines: Lines) -> None:
    row = cells(tables.detail(Results([FILE]), FOUR), "nccl", "cg")
    expected = median_of(lines, "small", 4, "nccl", "cg") * 1e6
    assert row["µs per iteration"].startswith(f"{expected:.1f} (")


def test_rates_follow_from_the_counting(lines: Lines) -> None:
    row = cells(tables.detail(Results([FILE]), FOUR), "nccl", "cg")
    seconds = 200 * median_of(lines, "small", 4, "nccl", "cg")
    rows, nnz, k = 10_000, 50_000, 200
    flops = 2 * nnz * (k + 1) + 2 * rows * (k + k + 1 + 3 * k)
    moved = 20 * (nnz + rows) * (k + 1) + rows * (16 * k + 8 * (k + 1) + 72 * k)
    assert float(row["GFLOP/s"]) == pytest.approx(flops / seconds / 1e9, rel=1e-3)
    assert float(row["TB/s"]) == pytest.approx(moved / seconds / 1e12, rel=1e-2)


def test_speedup_names_its_baseline_and_is_the_ratio_of_medians(lines: Lines) -> None:
    results = Results([FILE])
    assert results.reference() == "single_gpu"
    row = cells(tables.detail(results, FOUR), "cpufree", "prcg")
    one = median_of(lines, "small", 1, "single_gpu", "cg")
    ours = median_of(lines, "small", 4, "cpufree", "prcg")
    assert row["over single_gpu cg, 1 PE"] == f"{one / ours:.2f}×"


def test_best_host_driven_leaves_out_loops_on_the_device(lines: Lines) -> None:
    results = Results([FILE])
    verdict = results.against(FOUR, host_driven)
    assert verdict is not None
    assert verdict.theirs.name == "nccl prcg"  # graph_while is faster
    expected = median_of(lines, "small", 4, "nccl", "prcg")
    expected /= median_of(lines, "small", 4, "cpufree", "prcg")
    assert verdict.speedup == pytest.approx(expected)
    assert verdict.word == "faster"


def test_winner_must_beat_loops_on_the_device_too() -> None:
    won = Results([FILE]).winner(FOUR)
    assert won is not None
    assert (won[0].name, won[1]) == ("cpufree prcg", "wins")


def test_geometric_means_are_over_the_fastest_of_each_denominator(lines: Lines) -> None:
    table = tables.summary(Results([FILE]))
    row = cells(table, "4 PEs, double precision, no preconditioner", "cg")

    def mean(others: tuple[str, ...]) -> float:
        logs = []
        for case in ("small", "large"):
            theirs = min(median_of(lines, case, 4, name, "cg") for name in others)
            logs.append(math.log(theirs / median_of(lines, case, 4, "cpufree", "cg")))
        return math.exp(sum(logs) / 2)

    assert row["over peer_copy, nccl, mpi"].startswith(f"{mean(('nccl',)):.2f}× (2 matrices")
    assert row["over all baselines"].startswith(f"{mean(('nccl', 'graph_while')):.2f}×")
    assert row["over peers"].startswith(f"{mean(('petsc',)):.2f}×")


def test_equal_times_are_within_noise_in_every_table(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> None:
    def equal(line: dict[str, Any]) -> None:
        if line["kind"] == "measurement":
            line["seconds"] = 1.0 + 0.001 * line["round"]

    results = changed(equal)
    table = tables.overview(results, ("double", "none", 4))
    assert {row[-1] for row in table.rows} == {"within noise"}
    assert all("1.00× within noise" in row for row in table.rows)


def test_who_computes_something_else_does_not_count(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> None:
    def spoil(line: dict[str, Any]) -> None:
        if line["kind"] == "check" and line["contender"] == "cpufree":
            line["true_residual"] = 0.5

    results = changed(spoil)
    won = results.winner(FOUR)
    assert won is not None and won[0].task.contender == "graph_while"
    assert results.against(FOUR, host_driven) is None
    row = cells(tables.detail(results, FOUR), "cpufree", "cg")
    assert "does not count: true residual 5.0e-01, where others have 1.1e-06" in row["note"]


def test_of_two_the_one_with_the_far_larger_residual_does_not_count(
    lines: Lines, tmp_path: Path
) -> None:
    two = [x for x in lines if x.get("contender", "nccl") in ("nccl", "petsc")]
    two = [x for x in two if x.get("method", "cg") == "cg"]
    for line in two:
        if line["kind"] == "check" and line["contender"] == "petsc":
            two[two.index(line)] = {**line, "true_residual": 1e-3}
    file = tmp_path / "two.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in two))
    assert [series.task.contender for series in Results([file]).valid(FOUR)] == ["nccl"]


def test_solvers_on_the_cpu_have_no_share_of_a_gpu(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> None:
    def on_cpu(line: dict[str, Any]) -> None:
        if line["kind"] == "load" and line["contender"] == "petsc":
            line["facts"]["device"] = "cpu"

    (series, *_) = (s for s in changed(on_cpu).of(FOUR) if s.task.contender == "petsc")
    assert changed(on_cpu).rate_for(series) is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"reason": "DIVERGED_ITS"}, "not converged: DIVERGED_ITS"),
        ({"true_residual": None}, "x is not finite"),
        ({"true_residual": 2.1e-6}, "is above the tolerance"),
    ],
)
def test_solve_to_a_tolerance_that_misses_it_does_not_count(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
    change: dict[str, Any],
    told: str,
) -> None:
    def to_tolerance(line: dict[str, Any]) -> None:
        if line["kind"] == "header":
            line["configuration"]["iterations"] = None
        if line["kind"] in ("check", "measurement"):
            line["reason"] = "CONVERGED_RTOL"
            if line["kind"] == "check":
                line["true_residual"] = 0.9e-6
            if line["contender"] == "nccl":
                line |= {key: value for key, value in change.items() if key in line}

    results = changed(to_tolerance)
    assert "nccl" not in {series.task.contender for series in results.valid(FOUR)}
    assert "cpufree" in {series.task.contender for series in results.valid(FOUR)}
    (nccl, *_) = (s for s in results.of(FOUR) if s.task.contender == "nccl")
    assert told in nccl.problems()[0]


def test_solves_to_a_tolerance_are_compared_by_their_whole_time(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> None:
    def fewer_iterations(line: dict[str, Any]) -> None:
        if line["kind"] == "header":
            line["configuration"]["iterations"] = None
        if line["kind"] in ("check", "measurement"):
            line["reason"] = "CONVERGED_RTOL"
            if line["contender"] == "petsc":
                line["iterations"] = 1000  # the more, the less an iteration takes
        if line["kind"] == "check":
            line["true_residual"] = 0.9e-6

    results = changed(fewer_iterations)
    won = results.winner(FOUR)
    assert won is not None and won[0].task.contender == "cpufree"
    assert "ms to the tolerance" in tables.detail(results, FOUR).heads


def test_share_of_the_memory_rate_is_that_of_all_gpus(lines: Lines) -> None:
    results = Results([FILE])
    (series,) = (s for s in results.of(FOUR) if s.name == "nccl cg")
    least = 12 * 50_000 + 4 * 10_000 + 10 * 8 * 10_000
    seconds = median_of(lines, "small", 4, "nccl", "cg")
    rate = results.rate_for(series)
    assert rate == 4 * 4e12
    assert series.roofline(rate) == pytest.approx(least / (4 * 4e12) / seconds)


def test_split_is_per_iteration_with_the_rest_as_other(lines: Lines) -> None:
    results = Results([FILE])
    (series,) = (s for s in results.of(FOUR) if s.name == "cpufree cg")
    split = series.split
    assert split is not None
    mean = statistics.mean(series.per_iteration)
    assert sum(split.values()) == pytest.approx(mean)
    assert split["spmv"] == pytest.approx(0.5 * mean, rel=1e-4)
    assert split["other"] == pytest.approx(0.05 * mean, rel=1e-4)
    assert next(s for s in results.of(FOUR) if s.name == "nccl cg").split is None
    rows = {row[0]: row for row in tables.splits(results, FOUR).rows}  # type: ignore[union-attr]
    assert rows["cpufree cg"][1] == tables.micro(split["spmv"]) and "nccl cg" not in rows


def test_split_of_a_solve_of_its_own_comes_before_that_of_repeats(
    lines: Lines, tmp_path: Path
) -> None:
    found = next(x for x in lines if x["kind"] == "measurement" and x["contender"] == "nccl")
    split = {"spmv": 2.0, "vector": 1.0, "halo_wait": 0.5, "reduction_wait": 0.25}
    told = {**found, "kind": "split", "seconds": 4.0, "iterations": 2, "split": split}
    file = tmp_path / "told.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, told]))
    key = (found["case"], found["pes"], found["method"])
    (series,) = (
        s
        for s in Results([file]).series.values()
        if (s.group.case, s.group.pes, s.task.method) == key and s.task.contender == "nccl"
    )
    assert series.split == {
        "spmv": 1.0,
        "vector": 0.5,
        "halo_wait": 0.25,
        "reduction_wait": 0.125,
    } | {"other": 0.125}


def test_report_has_tables_plots_and_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "report", str(FILE), "--out", str(tmp_path / "report")])
    assert not ended.value.code
    text = (tmp_path / "report/report.md").read_text()
    for heading in ("## Geometric means", "## 4 PEs, double", "### large", "## Not measured"):
        assert heading in text
    assert "| single_gpu | all | small (4 PEs), large (4 PEs) | single_gpu runs on one PE |" in text
    drawn = sorted(path.name for path in (tmp_path / "report").glob("*.png"))
    by_pes = [
        f"{k}-double-none-{p}.png" for k in ("breakdown", "roofline", "speedup") for p in (1, 4)
    ]
    assert drawn == sorted([*by_pes, "scaling-double-none.png"])
    assert all(f"]({name})" in text for name in drawn)
    for name in drawn:
        pixels = image.imread(tmp_path / "report" / name)
        assert pixels.shape[0] > 200 and pixels[..., :3].std() > 0.01
    listed = capsys.readouterr().out.split()
    assert len(listed) == 8 and all(Path(path).exists() for path in listed)


def test_bars_begin_at_zero_and_name_their_baseline() -> None:
    figure = plots.draw_speedup(Results([FILE]), ("double", "none", 4))
    assert figure is not None
    (axes,) = figure.axes
    assert axes.get_ylim()[0] == 0.0
    assert axes.get_ylabel() == "speed-up over single_gpu cg on 1 PE"
    assert [label.get_text() for label in axes.get_xticklabels()][-1] == "geometric\nmean"


def test_bars_are_as_high_as_the_speedups(lines: Lines) -> None:
    figure = plots.draw_speedup(Results([FILE]), ("double", "none", 4))
    assert figure is not None
    one = median_of(lines, "small", 1, "single_gpu", "cg")
    expected = one / median_of(lines, "small", 4, "graph_while", "cg")
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    assert any(height == pytest.approx(expected) for height in heights)


@pytest.fixture
def of_look_alikes(
    changed: Callable[[Callable[[dict[str, Any]], None]], Results],
) -> Results:
    """The results as an old record of look-alikes would have them, one of which lacks."""
    made = {"small": "ecology2", "large": "hood"}
    sources = {
        "ecology2": "gen:ecology2?m=1000",
        "hood": "gen:plate_hex?ex=236,ey=158,holes=50",
        "ldoor": "gen:plate_hex?ex=555,ey=290,holes=60",
    }

    def rename(line: dict[str, Any]) -> None:
        if line["kind"] == "header":
            line["configuration"]["cases"] = [{"name": n, "source": s} for n, s in sources.items()]
        if "case" in line:
            line["case"] = made[line["case"]]
        if line["kind"] == "end":
            line["kind"] = "some other end"

    return changed(rename)


def test_old_records_are_shown_with_the_names_of_look_alikes(of_look_alikes: Results) -> None:
    table = tables.overview(of_look_alikes, ("double", "none", 4))
    assert [row[0] for row in table.rows] == ["ecology2-like", "hood-like"]
    assert cells(table, "hood-like")["distinct values"] == "107"
    figure = plots.draw_speedup(of_look_alikes, ("double", "none", 4))
    assert figure is not None
    names = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert names[:2] == ["ecology2-like", "hood-like"]


@pytest.mark.parametrize(
    "draw", [plots.draw_speedup, plots.draw_roofline, plots.draw_breakdown, plots.draw_scaling]
)
def test_plots_say_how_many_matrices_of_which_suite_they_show(
    of_look_alikes: Results, draw: Callable[..., Any]
) -> None:
    title = draw(of_look_alikes, ("double", "none", 4)).legends[0].get_title().get_text()
    assert "2 of the 18 matrices of suite structured" in " ".join(title.split())


def test_run_that_did_not_finish_says_what_is_missing(of_look_alikes: Results) -> None:
    (line,) = [line for line in warnings(of_look_alikes) if "finish" in line]
    assert line == "the run did not finish: ldoor-like of 3 matrices not measured"
    assert not [line for line in warnings(Results([FILE])) if "finish" in line]


def test_version_that_is_not_known_is_left_out(lines: Lines) -> None:
    header: Any = {**lines[0], "versions": {**lines[0]["versions"], "cpufree": "unknown"}}
    assert "unknown" not in machine_text(header)


def test_failure_that_was_made_good_later_is_not_reported(lines: Lines, tmp_path: Path) -> None:
    failure = {"kind": "failure", "error": "oh", "unsupported": False, "contender": "nccl"}
    failure |= {"case": "small", "precision": "double", "preconditioner": "none", "pes": 4}
    file = tmp_path / "a.jsonl"
    new = [{**failure, "method": m, "variant": "full"} for m in ("cg", "pipecg")]
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *new]))
    reported = [line["method"] for line in Results([file]).failures if line["error"] == "oh"]
    assert reported == ["pipecg"]


def test_markdown_keeps_bars_in_cells() -> None:
    table = tables.Table(("a", "b"), [("x|y", "2")])
    assert markdown(table) == "| a | b |\n| --- | --- |\n| x\\|y | 2 |\n"


def test_results_that_stand_in_two_files_are_refused(tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    shutil.copy(FILE, copy)
    with pytest.raises(InvalidInputError, match="is in another of the files too"):
        Results([FILE, copy])


def test_results_of_another_machine_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(FILE.read_text().replace("no processor", "another"))
    with pytest.raises(InvalidInputError, match="is of another machine"):
        Results([FILE, other])


def test_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"kind": "measurement"}\n')
    with pytest.raises(FileFormatError, match="no results of cpufree bench cg"):
        Results([tmp_path / "a.jsonl"])
    with pytest.raises(FileFormatError, match="cannot be read"):
        Results([tmp_path / "b.jsonl"])


def test_cut_off_file_is_reported_as_far_as_it_goes(tmp_path: Path) -> None:
    text = FILE.read_text()
    (tmp_path / "a.jsonl").write_text(text[: int(0.9 * len(text))])
    results = Results([tmp_path / "a.jsonl"])
    assert 0 < len(results.series) <= len(Results([FILE]).series)


def configuration(seed: int) -> Configuration:
    """Return a configuration that differs in its seed."""
    return Configuration(
        cases=(Case("a", "gen:poisson1d"),),
        contenders=("x",),
        methods=("cg",),
        variants=("full",),
        pes=(1,),
        precisions=("double",),
        preconditioners=("none",),
        iterations=1,
        rtol=1e-6,
        max_iterations=1,
        repeats=6,
        seed=seed,
        gpus=None,
        partition="auto",
        timeout=1.0,
        tuning={},
        peers={},
    )


def test_seed_decides_the_order_of_every_round() -> None:
    tasks = [Task(name, "cg", "full") for name in "abcdefgh"]

    def order(seed: int, group: Group = ONE) -> list[list[Task]]:
        return [found for _, found in configuration(seed).rounds(group, tasks)]

    assert order(1) == order(1)
    assert order(1) != order(2) and order(1) != order(1, FOUR)
    assert all(sorted(found, key=str) == tasks for found in order(1))
    assert len({tuple(found) for found in order(1)}) > 1


def test_stored_zeros_are_told_beside_the_nonzeros() -> None:
    assert tables.nonzeros_text({"nnz": 2000}) == "2 000"
    assert tables.nonzeros_text({"nnz": 2000, "zeros": 0}) == "2 000"
    assert tables.nonzeros_text({"nnz": 2000, "zeros": 250}) == "2 000 (12.5% zeros)"
