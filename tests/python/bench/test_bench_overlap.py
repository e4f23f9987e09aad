"""How much of the communication of conjugate gradients is hidden, out of made-up times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from paths import SUPPORT

from cpufree.bench.cg import plots, tables
from cpufree.bench.cg.configuration import Group
from cpufree.bench.cg.results import Results
from cpufree.bench.report.tables import overheads
from cpufree.cli import app as cli

pytestmark = pytest.mark.cpu_only
FILE = SUPPORT / "bench_synthetic.jsonl"
FOUR, ONE = (Group("small", "double", "none", pes) for pes in (4, 1))
SETTING = ("double", "none", 4)
# Seconds of an iteration without computing, and without communication.
TIMES = {
    "cpufree cg": (1e-6, 7e-6),
    "cpufree prcg": (0.5e-6, 7e-6),
    "nccl cg": (4e-6, 9e-6),
    "nccl prcg": (2e-6, 9e-6),
    "graph_while cg": (3e-6, 9e-6),
}
FULL = 10e-6


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The synthetic file, with times as above of the matrix `small`."""
    lines: list[dict[str, Any]] = []
    for text in FILE.read_text().splitlines():
        line = json.loads(text)
        name = f"{line.get('contender')} {line.get('method')}"
        if line["kind"] == "measurement" and line["case"] == "small" and name in TIMES:
            line["seconds"] = FULL * line["iterations"]
            for variant, each in zip(("no-compute", "no-comm"), TIMES[name], strict=True):
                lines.append({**line, "variant": variant, "seconds": each * line["iterations"]})
        lines.append(line)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def results(file: Path) -> Results:
    """The results of that file."""
    return Results([file])


def test_overlap_is_the_share_that_a_full_iteration_does_not_add(results: Results) -> None:
    # full 10, computing alone 9, communication alone 4: 3 of 4 are hidden.
    assert results.overlap(FOUR, "nccl cg") == pytest.approx(0.75)
    assert results.overlap(FOUR, "nccl prcg") == pytest.approx(0.5)


def test_overlap_is_between_nothing_and_all(results: Results) -> None:
    assert results.overlap(FOUR, "cpufree cg") == 0.0  # 10 is more than 1 and 7


def test_one_pe_has_nothing_to_hide(results: Results) -> None:
    assert results.find(ONE, "cpufree cg", "no-compute") is not None
    assert results.overlap(ONE, "cpufree cg") is None


def test_communication_is_compared_with_the_best_host_driven_of_the_same_method(
    results: Results,
) -> None:
    assert results.saved(FOUR, "cpufree cg") == pytest.approx(1 - 1 / 4)  # not graph_while's 3
    assert results.saved(FOUR, "cpufree prcg") == pytest.approx(1 - 0.5 / 2)
    assert results.saved(FOUR, "petsc cg") is None


def test_table_has_both_shares_in_the_order_that_was_asked_for(results: Results) -> None:
    table = overheads(results, FOUR)
    assert table is not None
    assert [row[0] for row in table.rows] == [
        *("cpufree cg", "cpufree prcg", "nccl cg", "nccl prcg", "graph_while cg"),
    ]
    shares = {row[0]: row[-2:] for row in table.rows}
    assert shares["cpufree cg"] == ("0%", "75%")
    assert shares["nccl cg"] == ("75%", tables.NOTHING)
    assert shares["graph_while cg"] == ("67%", "25%")


def test_group_without_variants_has_no_table() -> None:
    assert overheads(Results([FILE]), FOUR) is None


def test_plot_has_a_bar_for_the_fastest_method_of_each_contender(results: Results) -> None:
    figure = plots.draw_overlap(results, SETTING)
    assert figure is not None
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["small"]
    assert len(axes.patches) == 3
    assert plots.draw_overlap(Results([FILE]), SETTING) is None


def test_report_has_table_and_plot(file: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "report", str(file), "--out", str(tmp_path / "report")])
    assert not ended.value.code
    text = (tmp_path / "report/report.md").read_text()
    assert "communication less than best host-driven" in text
    assert "](overlap-double-none-4.png)" in text
    assert (tmp_path / "report/overlap-double-none-4.png").exists()
    assert not (tmp_path / "report/overlap-double-none-1.png").exists()
