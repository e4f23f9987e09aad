"""The report on `cpufree bench stencil`: who counts, what is compared, tables, plots."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from paths import SUPPORT

from cpufree.bench.core.plan import Task
from cpufree.bench.report.collected import Measured
from cpufree.bench.report.tables import overheads
from cpufree.bench.stencil import plots, tables
from cpufree.bench.stencil.plan import Group
from cpufree.bench.stencil.results import StencilResults, baseline, host_driven
from cpufree.cli import app as cli
from cpufree.errors import FileFormatError

pytestmark = pytest.mark.cpu_only
Lines = list[dict[str, Any]]

TIMES = {"cpufree": 2.0, "copy": 40.0, "p2p": 12.0, "nccl_graph": 15.0, "flags_graph": 5.0}


def synthetic(path: Path, cases: tuple[str, ...] = ("256x256 per PE", "64x64x64")) -> Path:
    """Write a file of results of GPUs, in µs as above, on 1, 2 and 4 PEs."""
    key = {"precision": "single", "boundary": "dirichlet", "method": "jacobi"}
    header = {
        "kind": "header",
        "benchmark": "stencil",
        "schema": 1,
        "date": "2026-01-02T03:04:05",
        "command": "cpufree bench stencil",
        "commit": None,
        "modified": None,
        "machine": {"gpus": "4 × Thing", "cpu": "cpu", "cores": 2},
        "versions": {"cpufree": "0"},
        "configuration": {
            **{"iterations": 100, "repeats": 5, "seed": 1, "contenders": list(TIMES)},
        },
    }
    lines: Lines = [header, {"kind": "rate", "what": "copy", "bytes_per_second": [4e12]}]
    for case, pes in itertools.product(cases, (1, 2, 4)):
        shape = [512, 512] if "per" in case else [64, 64, 64]
        group = {"case": case, "pes": pes, **key}
        lines.append({"kind": "problem", **group, "shape": shape, "updates": 10**6})
        by = {"iterations": 37, "checksum": None, "by": "agreement"}
        lines.append({"kind": "reference", **group, **by})
        for name, micro in TIMES.items():
            family = "cpufree" if name == "cpufree" else "baseline"
            load = {"contender": name, "family": family, "facts": {"notes": ["a note"]}}
            lines.append({"kind": "load", **group, **load})
            sum_ = "other" if name == "nccl_graph" and pes == 4 else "same"
            check = {"contender": name, "variant": "full", "iterations": 37, "checksum": sum_}
            lines.append({"kind": "check", **group, **check})
            variants = {"full": 1.0}
            if pes > 1:
                variants |= {"no-compute": 0.5, "no-comm": 0.75}
            for (variant, factor), number in itertools.product(variants.items(), range(5)):
                seconds = 1e-6 * micro * factor * 100 * (1 + 0.001 * number)
                line = {"contender": name, "variant": variant, "round": number}
                line |= {"seconds": seconds, "iterations": 100}
                lines.append({"kind": "measurement", **group, **line})
    lines.append({"kind": "end", "others": 0.0})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def results(tmp_path: Path) -> StencilResults:
    """The results above."""
    return StencilResults([synthetic(tmp_path / "a.jsonl")])


def group(results: StencilResults, pes: int, case: str = "64x64x64") -> Group:
    """Return a group of the results above."""
    return next(g for g in results.groups() if (g.case, g.pes) == (case, pes))


def test_speed_up_is_over_the_best_that_is_host_driven(results: StencilResults) -> None:
    verdict = results.against(group(results, 2), host_driven)
    assert verdict is not None and verdict.theirs.name == "p2p" and verdict.word == "faster"
    assert verdict.speedup == pytest.approx(6.0)
    other = results.against(group(results, 2), baseline)
    assert other is not None and other.theirs.name == "flags_graph"
    assert other.speedup == pytest.approx(2.5)


def test_who_has_other_values_than_most_does_not_count(results: StencilResults) -> None:
    names = [series.name for series in results.valid(group(results, 4))]
    assert "nccl_graph" not in names and "p2p" in names
    assert "nccl_graph" in [series.name for series in results.valid(group(results, 2))]


def test_overlap_is_what_a_full_iteration_does_not_add(results: StencilResults) -> None:
    # full 12, computing alone 9, communication alone 6: 3 of 6 are hidden.
    assert results.overlap(group(results, 2), "p2p") == pytest.approx(0.5)
    assert results.overlap(group(results, 1), "p2p") is None


def test_communication_alone_is_compared_with_the_best_that_is_host_driven(
    results: StencilResults,
) -> None:
    two = group(results, 2)  # alone: cpufree 1, flags_graph 2.5, p2p 6
    assert results.saved(two, "cpufree") == pytest.approx(1 - 1 / 6)
    assert results.saved(two, "flags_graph") == pytest.approx(1 - 2.5 / 6)
    assert results.saved(group(results, 1), "cpufree") is None
    table = overheads(results, two)
    assert table is not None
    shares = {row[0]: row[-1] for row in table.rows}
    assert shares["cpufree"] == "83%" and shares["p2p"] == tables.NOTHING


def test_rates_count_each_point_read_and_written_once(results: StencilResults) -> None:
    series = results.find(group(results, 1), "cpufree", "full")
    assert series is not None
    assert series.updates_per_second == pytest.approx(1e6 / 2.004e-6)
    assert series.bytes_per_second == pytest.approx(8e6 / 2.004e-6)


def test_tables_have_a_column_for_each_number_of_pes(results: StencilResults) -> None:
    setting = ("single", "dirichlet")
    table = tables.scaling(results, setting, "256x256 per PE")
    assert table is not None
    assert table.heads == ("µs per iteration", "1 PE", "2 PEs", "4 PEs")
    assert [row[0] for row in table.rows] == list(TIMES)
    assert table.rows[3][3] == tables.NOTHING  # other values
    alone = tables.scaling(results, setting, "256x256 per PE", "no-compute")
    assert alone is not None and [row[0] for row in alone.rows] == list(TIMES)


def test_what_communication_adds_is_told_of_grids_for_each_pe(results: StencilResults) -> None:
    setting = ("single", "dirichlet")
    for series in results.series.values():
        if series.group.pes == 4:
            for line in series.lines:
                line["seconds"] *= 1.5
    table = tables.added(results, setting, "256x256 per PE")
    assert table is not None and table.heads == ("µs more than on 1 PE", "2 PEs", "4 PEs")
    assert table.rows[0] == ("cpufree", "0", "1.00")
    assert tables.added(results, setting, "64x64x64") is None


def test_report_is_written_with_tables_and_plots(tmp_path: Path) -> None:
    path = synthetic(tmp_path / "a.jsonl")
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "report", str(path), "--out", str(tmp_path / "report")])
    assert not ended.value.code
    text = (tmp_path / "report/report.md").read_text()
    for words in ("(weak scaling)", "(strong scaling)", "Communication alone", "does not count"):
        assert words in text
    assert "8 × NVIDIA A100" in text  # context, with its source
    drawn = {file.stem for file in (tmp_path / "report").glob("*.png")}
    name = "single-dirichlet"
    assert drawn == {
        *(f"weak-2d{more}-{name}" for more in ("", "-no-compute")),
        *(f"strong-3d{more}-{name}" for more in ("", "-no-compute")),
        f"overlap-{name}",
    }


def test_results_of_solvers_and_of_stencils_do_not_mix(tmp_path: Path) -> None:
    path = synthetic(tmp_path / "a.jsonl")
    solvers_file = SUPPORT / "bench_synthetic.jsonl"
    with pytest.raises(FileFormatError, match="bench stencil"):
        StencilResults([path, solvers_file])


def test_plot_of_what_was_not_measured_is_left_out(results: StencilResults) -> None:
    setting = ("single", "dirichlet")
    assert plots.draw_scaling(results, setting, [], "full", "") is None
    nothing = plots.draw_scaling(results, ("double", "dirichlet"), ["64x64x64"], "full", "")
    assert nothing is None


def test_series_have_what_all_measurements_have() -> None:
    series = Measured(None, Task("a", "b", "full"), "peer")
    series.lines += [{"seconds": s, "iterations": 10} for s in (1.0, 2.0, 4.0)]
    assert dataclasses.is_dataclass(series) and series.per_iteration == [0.1, 0.2, 0.4]
    assert series.spread.median == 0.2 and series.iterations == 10
