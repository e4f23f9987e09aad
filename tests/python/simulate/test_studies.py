"""The studies: each band of the paper's figures, scaling, records; and SimGrid as the reference."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cpufree.errors import FileFormatError, InvalidInputError, UnsupportedError
from cpufree.machine.clusters import load_cluster
from cpufree.model.plots import save_plot
from cpufree.model.records import summary
from cpufree.simulate.graph import Graph
from cpufree.simulate.halo import coarse_shares
from cpufree.simulate.krylov import krylov
from cpufree.simulate.measured import calibrated, compare, errors_of, read_cases
from cpufree.simulate.plots import draw_paper
from cpufree.simulate.programs import jacobi, one_message, vector_all_reduce
from cpufree.simulate.run import run
from cpufree.simulate.scaling import EXPERIMENTS, HEART, cluster_of, iteration, project
from cpufree.simulate.simgrid import find_program, run_simgrid
from cpufree.simulate.study import (
    TABLE_3,
    Finding,
    check_paper,
    figure_8,
    figure_9,
    figure_10,
    figure_11,
    seventeenth_entry,
)

ROOT = Path(__file__).parents[3]
PAPER = load_cluster("gpu-tn-2017")


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return check_paper(PAPER)


@pytest.mark.parametrize(("figure", "count"), [("8", 5), ("9", 4), ("10", 11), ("11", 3)])
def test_the_bands_of_each_figure_hold(findings: list[Finding], figure: str, count: int) -> None:
    there = [finding for finding in findings if finding.figure == figure]
    assert len(there) == count
    assert [finding for finding in there if not finding.holds] == []


def test_a_finding_outside_its_band_does_not_hold() -> None:
    assert not Finding("8", "some", 1.5, 0.0, 1.0).holds


def test_the_figures_can_be_drawn(tmp_path: Path) -> None:
    ways = ("cpu", "hdn", "tn")
    figure = draw_paper(
        figure_8(PAPER, ways[1:]), (64, 128), figure_9(PAPER, (64, 128), ways), (2, 4),
        figure_10(PAPER, (2, 4), ways), figure_11(PAPER, TABLE_3[1:3], ways, 2), TABLE_3[1:3],
    )  # fmt: skip
    save_plot(figure, tmp_path / "figures.png")
    assert (tmp_path / "figures.png").stat().st_size > 20_000


def test_the_17th_entry_spills() -> None:
    sixteen, seventeen = seventeenth_entry(PAPER, (16, 17))
    assert sixteen.spilled == 0 < seventeen.spilled
    assert sixteen.microseconds < sixteen.dynamic


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: f"{e.mesh.name}-{e.machine}")
def test_the_fewest_gpus_take_the_time_that_the_paper_prints(experiment) -> None:  # type: ignore[no-untyped-def]
    # Table 3, aCG (MPI), CG: seconds; 930 iterations of poisson1d, 92 to 95 of heart15.
    printed = {
        ("poisson1d", "lumi-g"): 2.20 / 930, ("poisson1d", "marenostrum5-acc"): 6.83 / 930,
        ("heart15", "lumi-g"): 0.49 / 93.5, ("heart15", "marenostrum5-acc"): 1.09 / 93.5,
    }  # fmt: skip
    found = iteration(cluster_of(experiment, "hdn", "cg"), experiment.mesh, "hdn", "cg",
                      experiment.pes[0])  # fmt: skip
    seconds = printed[experiment.mesh.name, experiment.machine]
    assert found == pytest.approx(seconds, rel=0.06)


def on_lumi(way: str, method: str, pes: int) -> float:
    """Return the seconds of an iteration on poisson1d."""
    one = EXPERIMENTS[2]
    return iteration(cluster_of(one, way, method), one.mesh, way, method, pes)


def test_pipelined_cg_wins_on_lumi_where_all_reduces_dominate() -> None:
    assert on_lumi("hdn", "cg", 256) < on_lumi("hdn", "pipecg", 256)
    assert on_lumi("hdn", "pipecg", 512) < on_lumi("hdn", "cg", 512)


def test_the_efficiency_of_the_best_solver_on_lumi_is_near_the_printed_one() -> None:
    basis = 64 * on_lumi("hdn", "cg", 64)
    assert basis / (1024 * on_lumi("hdn", "pipecg", 1024)) == pytest.approx(0.46, abs=0.08)


def test_rccl_scales_poorly_on_lumi() -> None:
    assert on_lumi("nccl", "cg", 1024) > 1.5 * on_lumi("hdn", "cg", 1024)


def test_a_projection_lies_within_its_interval() -> None:
    for one in project(EXPERIMENTS[1], 512, ("hdn", "native")):
        assert one.least < one.seconds < one.most
    assert HEART.entries > 2 * 7_185_411_541 - HEART.rows - 1


def test_records_are_compared_case_by_case(tmp_path: Path) -> None:
    place = {"case": "m", "pes": 2, "precision": "double", "preconditioner": "none"}
    plan = {"matrix_bytes": 6e4, "halo_values": 20, "halo": "packets", "imbalance": 1.0}
    lines = [
        {"kind": "problem", **place, "rows": 1000, "nnz": 5000},
        {"kind": "load", **place, "contender": "cpufree", "facts": {"plan": plan}},
        {"kind": "load", **place, "contender": "nccl",
         "facts": {"spmv": "a", "spmv_seconds": {"a": 1e-5}}},
        *(
            {"kind": "measurement", "variant": "full", **place, "contender": who,
             "method": "cg", "seconds": seconds, "iterations": 10}
            for who, seconds in (("cpufree", 1e-4), ("cpufree", 3e-4), ("nccl", 5e-4))
        ),
    ]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    cases = read_cases(tmp_path, ("r.jsonl",))
    assert [(case.contender, case.product_seconds) for case in cases] == [
        ("cpufree", None), ("nccl", 1e-5),
    ]  # fmt: skip
    assert cases[0].seconds == pytest.approx(2e-5)
    found = compare(load_cluster("h200"), cases)
    assert found[0].error == pytest.approx(found[0].predicted / 2e-5 - 1)
    assert [one.count for one in errors_of(found)] == [1, 1, 1, 1, 2]


def test_records_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="none of the records"):
        read_cases(tmp_path)
    (tmp_path / "r.jsonl").write_text('{"kind": "problem"}\n')
    with pytest.raises(FileFormatError, match=r"r\.jsonl"):
        read_cases(tmp_path, ("r.jsonl",))


def test_simulated_and_measured_times_stay_as_near_as_they_are() -> None:
    if not (ROOT / "bench/results").is_dir():
        pytest.skip("the records are in a clone only")
    found = compare(load_cluster("h200"), read_cases(ROOT / "bench/results"))
    others = [one for one in found if not calibrated(one)]
    rest = summary("all", others)
    assert rest.count > 500 and rest.median < 0.14  # docs/simulate.md says 13.7 %
    of_h100 = summary("H100", [one for one in others if one.measured.gpu.startswith("NVIDIA H100")])
    assert of_h100.count == 171 and of_h100.median < 0.12


def test_jacobi_that_the_host_drives_is_simulated_beside_its_records(tmp_path: Path) -> None:
    common = {"case": "64x32", "pes": 2, "precision": "single", "boundary": "dirichlet"}
    lines = [{"kind": "problem", **common, "shape": [128, 32]}] + [
        {"kind": "measurement", **common, "contender": who, "variant": variant,
         "method": "jacobi", "seconds": 1e-3, "iterations": 50}
        for who, variant in (("copy", "full"), ("copy", "no-comm"), ("p2p", "full"))
    ]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    cluster = load_cluster("h200")
    (one,) = compare(cluster, read_cases(tmp_path, ("r.jsonl", "none.jsonl")))
    assert (one.measured.contender, one.measured.seconds) == ("copy", 2e-5)
    assert one.predicted == run(jacobi(cluster, "hdn", 2, 45, 4).graph).per_round
    found, _ = errors_of([one])
    assert found.name == "Jacobi, copy, 2 GPUs" and found.mean == pytest.approx(one.error)


@pytest.fixture(scope="module")
def simgrid(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return SimGrid's program: from the path, or built here."""
    try:
        return find_program()
    except UnsupportedError:
        pass
    compiler = shutil.which("c++")
    if compiler is None or not Path("/usr/include/simgrid/s4u.hpp").exists():
        pytest.skip("no SimGrid here: install libsimgrid-dev")
    made = tmp_path_factory.mktemp("simgrid") / "cpufree_simgrid"
    source = ROOT / "tools/simgrid/simulate.cpp"
    subprocess.run([compiler, "-std=c++20", source, "-lsimgrid", "-o", made], check=True)
    return str(made)


def uncontended(way: str) -> list[Graph]:
    """Return programs in which no two messages want a port at once."""
    graphs = [
        one_message(PAPER, way).program.graph,
        krylov(PAPER, way, coarse_shares(1.6e5, 1.1e6, 3, 16), "cg", 2).graph,
        krylov(PAPER, way, coarse_shares(1.6e5, 4.8e5, 1, 2), "pipecg", 3).graph,
    ]
    if way in ("cpu", "hdn", "gds"):  # others send a ring's pieces side by side
        graphs.append(vector_all_reduce(PAPER, way, 8, 8e6).graph)
    return graphs


@pytest.mark.parametrize("way", ["cpu", "hdn", "gds", "nccl", "tn", "proxy", "native"])
def test_both_engines_agree_to_a_nanosecond_without_contention(simgrid: str, way: str) -> None:
    for graph in uncontended(way):
        assert run_simgrid(graph, simgrid) == pytest.approx(run(graph).seconds, abs=1e-9)


def test_engines_differ_where_messages_share_a_port(simgrid: str) -> None:
    graph = jacobi(PAPER, "gds", 16, 256, rounds=3).graph
    gap = run(graph).seconds / run_simgrid(graph, simgrid) - 1
    assert 1e-4 < abs(gap) < 0.2
