"""`cpufree predict` and `cpufree model compare`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_runner import Run, runner
from paths import ROOT

from cpufree.cli.model.predict_command import numbers_of
from cpufree.cli.model.predict_report import advice

MATRIX = "gen:poisson2d?nx=40,ny=40"

run = pytest.fixture(runner)
GRIDS = str(ROOT / "bench/results/stencil-baselines-2x-2026-11-23.jsonl")
RECORD = str(ROOT / "bench/results/cg-8x-2026-11-22.jsonl")


def test_numbers_of_gpus_are_a_list_or_a_range() -> None:
    assert numbers_of("1-64") == [1, 2, 4, 8, 16, 32, 64]
    assert numbers_of("3-9,1") == [1, 3, 6, 9]
    assert numbers_of("6") == [6]


@pytest.mark.parametrize("text", ["", "a", "0", "4-1", "1-2-3", "5000", "-1"])
def test_other_lists_are_refused_with_an_example(run: Run, text: str) -> None:
    done = run("predict", MATRIX, f"--pes={text}")
    assert done.code == 2
    assert "--pes" in done.err


def test_predict_says_time_efficiency_and_what_bounds_it(run: Run, tmp_path: Path) -> None:
    report, plot = tmp_path / "a.json", tmp_path / "a.png"
    words = ["predict", MATRIX, "--pes", "1-16", "--json", str(report), "--plot", str(plot)]
    done = run(*words)
    assert done.code == 0, done.out
    assert "efficiency" in done.out and "sums (" in done.out
    assert "beyond the 8 GPUs of a node" in done.out
    lines = json.loads(report.read_text())["iterations"]
    assert [line["pes"] for line in lines] == [1, 2, 4, 8, 16]
    assert all(line["low"] < line["seconds"] < line["high"] for line in lines)
    assert lines[0]["halo_values"] == 0 and lines[1]["halo_values"] > 0
    assert plot.stat().st_size > 10_000


def test_mixed_precision_reads_fewer_bytes_of_the_matrix(run: Run, tmp_path: Path) -> None:
    import scipy.io
    import scipy.sparse as sp

    random = np.random.default_rng(0)
    a = sp.random_array((3000, 3000), density=0.005, rng=random)
    scipy.io.mmwrite(tmp_path / "a.mtx", (a + a.T + 50 * sp.eye_array(3000)).tocoo())
    found = {}
    for precision in ("double", "mixed", "single"):
        report = str(tmp_path / f"{precision}.json")
        words = ["predict", str(tmp_path / "a.mtx"), "--pes", "1", "--precision", precision]
        assert run(*words, "--json", report).code == 0
        found[precision] = json.loads(Path(report).read_text())["iterations"][0]
    stored = {name: one["matrix_bytes"] for name, one in found.items()}
    assert stored["mixed"] == stored["single"] < 0.7 * stored["double"]
    assert [one["value_bytes"] for one in found.values()] == [8, 8, 4]


def test_what_was_not_measured_is_said_and_refused_beyond_a_node(run: Run) -> None:
    done = run("predict", MATRIX, "--pes", "1,2", "--method", "bicgstab")
    assert done.code == 0 and "bicgstab has no constants of its own: those of cg" in done.out
    done = run("predict", MATRIX, "--pes", "16", "--method", "minres")
    assert done.code == 2 and "give fewer PEs" in done.err
    done = run("predict", "grid:64x64", "--precision", "mixed")
    assert done.code == 2 and "single precision" in done.err


def test_predictions_are_those_of_the_machine_that_is_named(run: Run, tmp_path: Path) -> None:
    times = {}
    for name in ("h100", "h200"):
        report = tmp_path / f"{name}.json"
        done = run(
            "predict", "grid:4096x4096", "--pes", "1", "--machine", name, "--json", str(report)
        )
        assert done.code == 0 and name[1:] in done.out
        times[name] = json.loads(report.read_text())["iterations"][0]["seconds"]
    assert times["h100"] > times["h200"]


def test_beyond_a_node_predict_says_what_simulate_says(run: Run, tmp_path: Path) -> None:
    report, simulated = tmp_path / "p.json", tmp_path / "s.json"
    words = ["--pes", "64", "--json"]
    assert run("predict", MATRIX, "--machine", "h200", *words, str(report)).code == 0
    done = run("simulate", "prcg", "--matrix", MATRIX, "--way", "native", *words, str(simulated))
    assert done.code == 0
    one = json.loads(report.read_text())["iterations"][0]
    other = json.loads(simulated.read_text())["points"][0]
    assert one["bound"] == "network"
    assert one["seconds"] == pytest.approx(other["seconds"], rel=0.3)
    assert one["low"] < other["seconds"] < one["high"]


def test_predict_in_one_line(run: Run) -> None:
    done = run("predict", MATRIX, "--pes", "1", "-q")
    assert done.code == 0
    assert done.out.strip().endswith("on 1 GPU, at 100% efficiency")


def test_prediction_advises_gpus_that_are_worth_it_and_names_the_fastest() -> None:
    assert advice([1, 2, 4, 8], [80e-6, 50e-6, 45e-6, 60e-6]) == (
        "50 µs on 2 GPUs, at 80% efficiency; the fastest: 45 µs on 4 GPUs, at 44% efficiency"
    )
    assert advice([2, 4], [80e-6, 41e-6]) == "41 µs on 4 GPUs, at 98% efficiency"


def test_more_gpus_than_rows_are_refused(run: Run) -> None:
    done = run("predict", "gen:poisson2d?nx=2,ny=2", "--pes", "8")
    assert done.code == 3
    assert "4 rows" in done.err


def test_grids_are_predicted_too(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "a.json"
    done = run("predict", "grid:512^3", "--pes", "1-4", "--json", str(report))
    assert done.code == 0, done.out
    assert "bound by" in done.out
    times = [line["seconds"] for line in json.loads(report.read_text())["iterations"]]
    assert times[0] > times[1] > times[2]
    assert run("predict", "grid:8192x8192", "-q").out.strip().endswith("efficiency")


@pytest.mark.parametrize(("words", "code", "message"), [
    (("grid:512",), 3, "1 dimension"),
    (("grid:8x8", "--pes", "64"), 3, "6 rows to update: give fewer PEs"),
    (("grid:8x8", "--method", "cg"), 2, "grids have no methods"),
    (("grid:8xb",), 2, "'8xb' is no grid"),
    (("grid:0x8",), 2, "no points"),
    (("grid:8x8", "--plot", "a.png"), 2, "grids have no plot"),
])  # fmt: skip
def test_what_is_no_grid_is_refused(
    run: Run, words: tuple[str, ...], code: int, message: str
) -> None:
    done = run("predict", *words)
    assert (done.code, message in done.err) == (code, True), done.err


def test_records_of_both_kinds_are_compared_together(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "a.json"
    done = run("model", "compare", RECORD, GRIDS, "--json", str(report))
    assert done.code == 0 and "grids, 2 GPUs" in done.out and "systems, " in done.out
    lines = json.loads(report.read_text())["lines"]
    assert {"measured", "predicted", "error"} == {key for line in lines for key in line}
    alone = run("model", "compare", GRIDS, "-q")
    assert alone.code == 0 and alone.out.startswith("median error")
