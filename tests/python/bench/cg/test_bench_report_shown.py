"""Reports on benchmarks: tables, plots, and what records cannot say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_cases import FILE, FOUR, ONE, Lines, cells, median_of
from matplotlib import image

from cpufree.bench.cg import plots, tables
from cpufree.bench.cg.configuration import Configuration, Group
from cpufree.bench.cg.problems import Case
from cpufree.bench.cg.results import Results
from cpufree.bench.core.plan import Task
from cpufree.bench.report.captions import machine_text, warnings
from cpufree.bench.report.document import markdown
from cpufree.cli import app as cli
from cpufree.errors import FileFormatError, InvalidInputError


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
