"""Contenders: who is there, how each is started, and the adapter of the compiled baselines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from paths import ROOT

from cpufree.bench.cg.problems import Case, Problem
from cpufree.bench.contenders import registry as contenders
from cpufree.bench.contenders.baseline_contender import BaselineContender
from cpufree.bench.contenders.registry import find, make
from cpufree.bench.core import machine, rates
from cpufree.bench.core.entry import choose, parse_peer
from cpufree.bench.stencil import contenders as of_stencils
from cpufree.env import for_worker
from cpufree.errors import InvalidInputError, UnsupportedError

KINDS = [
    {"name": "single_gpu", "methods": ["cg"], "needs": "1 GPU", "available": True, "why_not": ""},
    {
        "name": "nccl",
        "methods": ["cg", "prcg"],
        "needs": "NCCL",
        "available": False,
        "why_not": "libnccl.so.2 was not found",
    },
]


class Baseline:
    """What the extension offers: notes how it is called, and solves with NumPy."""

    made: tuple[Any, ...] = ()

    def __init__(self, *arguments: Any) -> None:
        type(self).made = arguments
        _, indptr, indices, data, *_ = arguments
        n = indptr.size - 1
        self.dense = np.zeros((n, n))
        for row in range(n):
            for k in range(indptr[row], indptr[row + 1]):
                self.dense[row, indices[k]] = data[k]

    def facts(self) -> dict[str, Any]:
        """Return some facts."""
        return {"spmv": "fast", "staging": "none"}

    def solve(self, *arguments: Any) -> dict[str, Any]:
        """Solve, and note what else was given."""
        b, *self.rest, x = arguments
        x[:] = np.linalg.solve(self.dense, b)
        type(self).solved = self.rest
        return {"seconds": 1.0, "iterations": 3, "reason": "CONVERGED_RTOL", "residual": 0.0}

    solved: list[Any]


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Put a module in the place of the compiled baselines."""
    module = ModuleType("cpufree._baselines")
    module.kinds = lambda: KINDS  # type: ignore[attr-defined]
    module.Baseline = Baseline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cpufree._baselines", module)
    return module


@pytest.fixture
def without_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a build without baselines."""
    monkeypatch.setitem(sys.modules, "cpufree._baselines", None)
    monkeypatch.setattr("cpufree.extension._built_here", lambda name, what: None)


@pytest.fixture
def peers_file(tmp_path: Path) -> Path:
    """A list of peers in a checkout."""
    file = tmp_path / "bench/peers/peers.json"
    file.parent.mkdir(parents=True)
    peers = {
        "here": {"command": ["{python}", "bench/peers/here.py"], "methods": ["cg"], "needs": "it"},
        "slow": {"command": ["{python}", "slow.py"], "device": "cpu"},
        "bare": {"command": ["{python}", "b.py"], "modules": ["json", "no_such"], "needs": "pip"},
        "absent": {"command": ["env", "A=1", "no-such-mpirun", "{pes}"], "needs": "an MPI"},
    }
    file.write_text(json.dumps(peers))
    return file


def test_baselines_are_listed_with_what_they_lack(extension: ModuleType) -> None:
    there = find()
    assert there["single_gpu"].why_not == "" and there["single_gpu"].methods == ("cg",)
    assert there["nccl"].why_not == "libnccl.so.2 was not found"
    assert there["peer_copy"].why_not == "this build does not have it"


def test_nccl_of_processes_needs_what_both_need(
    extension: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contenders, "_mpi_problem", lambda: "no MPI")
    assert [find()[name].why_not for name in ("mpi", "nccl_mpi")] == ["no MPI"] * 2
    monkeypatch.setattr(contenders, "_mpi_problem", lambda: "")
    assert find()["mpi"].why_not == ""
    assert find()["nccl_mpi"].why_not == "libnccl.so.2 was not found"
    assert find()["nccl_mpi"].command_for(2)[-2:] == [
        "cpufree.bench.contenders.mpi_worker",
        "nccl_mpi",
    ]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_processes_that_mpirun_starts_are_bound_to_no_core() -> None:
    tell = "import os; print(sorted(os.sched_getaffinity(0)))"
    entry = contenders.Entry("mpi", "baseline", (*contenders.MPIRUN, "{python}", "-c", tell))
    done = subprocess.run(
        entry.command_for(2),
        env=for_worker() | {"OMPI_MCA_rmaps_base_oversubscribe": "1"},  # where there is one core
        capture_output=True,
        text=True,
        timeout=120,
    )
    # What both print may come in one line.
    told = done.stdout.replace("\n", "")
    assert told == str(sorted(os.sched_getaffinity(0))) * 2, done.stderr


def test_build_without_baselines_says_so(without_extension: None) -> None:
    assert "host-driven baselines does not load" in find()["nccl"].why_not
    with pytest.raises(UnsupportedError, match="host-driven baselines does not load"):
        contenders.load_baselines()


def test_all_are_those_that_can_be_started_for_what_is_measured(
    extension: ModuleType, peers_file: Path
) -> None:
    there = find(peers_file=peers_file)
    on_gpus = [entry.name for entry in choose(there, ["all"], True)]
    assert on_gpus == ["cpufree", "single_gpu", "here"]
    on_cpu = [entry.name for entry in choose(there, ["all"], False)]
    assert on_cpu == ["cpufree", "scipy", "here", "slow"]
    assert [entry.name for entry in choose(there, ["scipy"], True)] == ["scipy"]


def test_peers_say_which_modules_they_lack(peers_file: Path) -> None:
    there = find(peers_file=peers_file)
    assert there["bare"].why_not == "no_such not installed; it needs pip"
    with pytest.raises(UnsupportedError, match="'bare' is not available: no_such not installed"):
        choose(there, ["bare"], True)


def test_peers_run_in_their_checkout(peers_file: Path) -> None:
    entry = find(peers_file=peers_file)["here"]
    assert entry.folder == peers_file.parents[2]
    assert entry.command_for(4) == [sys.executable, "bench/peers/here.py"]
    assert not entry.by_pes


def test_peer_whose_program_is_missing_says_what_it_needs(peers_file: Path) -> None:
    there = find(peers_file=peers_file)
    assert there["absent"].why_not == "'no-such-mpirun' was not found; it needs an MPI"
    with pytest.raises(UnsupportedError, match=r"'absent' is not available.*needs an MPI"):
        choose(there, ["absent"], False)


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": {}}', '{"a": 3}'])
def test_damaged_list_of_peers_is_refused(peers_file: Path, text: str) -> None:
    peers_file.write_text(text)
    with pytest.raises(InvalidInputError, match="no list of peers"):
        find(peers_file=peers_file)


def test_source_tree_is_found_from_a_copy_of_the_package_within_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python/cpufree/bench").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "build/gpu/python/cpufree/bench/m.py"))
    assert machine.source_root() == tmp_path
    assert machine.source_state() == {"commit": None, "modified": None}
    monkeypatch.setattr(machine, "__file__", "/usr/lib/python3/cpufree/bench/machine.py")
    assert machine.source_root() is None


def test_memory_that_cannot_be_measured_says_why() -> None:
    found = rates.measure_rate((1_000_000,), 1)  # no machine has that GPU
    assert found["what"] == "copy" and "nothing here that copies" in found["error"]


def test_command_of_a_peer_is_split_as_a_shell_does() -> None:
    entry = parse_peer("mine=mpirun -n {pes} {python} 'my worker.py'")
    assert entry.command_for(3) == ["mpirun", "-n", "3", sys.executable, "my worker.py"]
    assert entry.by_pes


@pytest.mark.parametrize("text", ["mine", "=x", "mine=", "a b=x", "mine='x"])
def test_text_that_is_no_peer_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="--peer"):
        parse_peer(text)


def test_every_built_in_name_makes_its_contender() -> None:
    for name in ("cpufree", "scipy", *contenders.BASELINES):
        assert make(name).name == name


def test_adapter_hands_the_problem_to_the_extension(extension: ModuleType, tmp_path: Path) -> None:
    problem = Problem(Case("p", "gen:poisson2d?nx=6,ny=5"), "double", tmp_path)
    contender = BaselineContender("nccl")
    tuning = {"threads": "one"}
    options = {"pes": 2, "gpus": [3, 5, 7], "preconditioner": "jacobi", "tuning": tuning}
    facts = contender.load(problem.for_pes(2), options)
    kind, indptr, indices, data, part, order, *rest = Baseline.made
    assert (kind, indptr.dtype, indices.dtype, data.dtype) == ("nccl", "int64", "int32", "float64")
    assert sorted(set(part.tolist())) == [0, 1] and order is None
    assert rest == [2, [3, 5], "jacobi", tuning]
    assert facts["spmv"] == "fast" and facts["pes"] == 2 and facts["setup_seconds"] > 0
    save = tmp_path / "x.npy"
    request = {"method": "cg", "variant": "no-comm", "rtol": 1e-6, "max_iterations": 50}
    answer = contender.solve({**request, "iterations": None, "save": str(save)})
    assert Baseline.solved == ["cg", 1e-6, 50, False, "no-comm"]
    assert answer["split"] is None and answer["iterations"] == 3
    assert problem.check(np.load(save))["error"] < 1e-12
    contender.solve({**request, "iterations": 7, "save": None})
    assert Baseline.solved[2:4] == [7, True]


def test_adapter_needs_gpus(extension: ModuleType, tmp_path: Path) -> None:
    options = {"pes": 1, "gpus": None, "preconditioner": "none", "tuning": {}}
    with pytest.raises(UnsupportedError, match="'nccl' needs GPUs"):
        BaselineContender("nccl").load(tmp_path, options)


def test_manufactured_solution_solves_the_system(tmp_path: Path) -> None:
    problem = Problem(Case("p", "gen:poisson2d?nx=6,ny=5"), "double", tmp_path)
    solution = np.array(problem.read("solution"))
    assert np.linalg.norm(solution) == pytest.approx(1.0)
    assert solution.min() < 0 < solution.max()
    found = problem.check(solution)
    assert found["true_residual"] < 1e-15 and found["error"] == 0.0
    assert problem.check(2 * solution)["error"] == pytest.approx(1.0)
    assert problem.check(2 * solution)["true_residual"] == pytest.approx(1.0)


def test_a_matrix_that_cannot_be_solved_is_named(tmp_path: Path) -> None:
    path = tmp_path / "A.npy"
    np.save(path, np.full((2, 2), np.nan))
    with pytest.raises(InvalidInputError, match=r"A\.npy: entry \(row 0, column 0\) is nan"):
        Problem(Case("A", str(path)), "double", tmp_path)


def test_x_of_the_wrong_length_is_refused(tmp_path: Path) -> None:
    problem = Problem(Case("p", "gen:poisson2d?nx=6,ny=5"), "double", tmp_path)
    with pytest.raises(InvalidInputError, match=r"shape \(29,\) instead of \(30,\)"):
        problem.check(np.ones(29))


def test_problem_folders_are_made_once_and_share_the_matrix(tmp_path: Path) -> None:
    case = Case("p", "gen:poisson2d?nx=40,ny=40")
    first = Problem(case, "single", tmp_path)
    folder = first.for_pes(2)
    written = (first.folder / "data.npy").stat().st_mtime_ns
    again = Problem(case, "single", tmp_path)
    assert again.for_pes(2) == folder
    assert (first.folder / "data.npy").stat().st_mtime_ns == written
    assert np.load(folder / "data.npy").dtype == np.float32
    assert (folder / "data.npy").resolve() == (first.folder / "data.npy").resolve()
    assert np.bincount(np.load(folder / "part.npy")).tolist() == [800, 800]
    assert not (first.for_pes(1) / "part.npy").exists()


# Of each table: the file of the binding, and the text that its list of names begins with.
BINDINGS = {
    "core/system.cpp": ("require_known(tuning,", contenders.ENGINE_TUNING),
    "core/stencil.cpp": ("require_known(options,", of_stencils.ENGINE_TUNING),
    "baselines/baseline_stencil.hpp": ("require_known(options,", of_stencils.BASELINE_TUNING),
    "baselines/baseline_class.hpp": ("there are ", contenders.BASELINE_TUNING),
}


@pytest.mark.parametrize("file", BINDINGS)
def test_tuning_that_is_let_through_is_known_to_the_extension(file: str) -> None:
    folder = ROOT / "cpufree/bindings"
    begin, names = BINDINGS[file]
    text = re.sub(r"\(\s+", "(", (folder / file).read_text())
    listed = text.partition(begin)[2].partition(");")[0]
    assert names and set(names) <= set(re.findall(r"\w+", listed))
