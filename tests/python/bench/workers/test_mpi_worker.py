"""The contenders of mpirun, with a stand-in for the extension: what is read, asked, announced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpufree.bench.contenders import mpi_worker
from cpufree.errors import InvalidInputError, UnsupportedError


class FakeExtension:
    """Rank 0 of two; keeps what it is asked for."""

    def __init__(self, heard: list[dict[str, Any]] | None = None) -> None:
        self.said: list[dict[str, Any]] = []
        self.heard = heard or []
        self.made: list[tuple[Any, ...]] = []
        self.solved: list[tuple[Any, ...]] = []

    def rank(self) -> int:
        return 0 if not self.heard else 1

    def broadcast(self, text: str) -> str:
        if text:
            self.said.append(json.loads(text))
            return text
        return json.dumps(self.heard.pop(0))

    def Baseline(self, *arguments: Any) -> FakeExtension:
        self.made.append(arguments)
        return self

    def facts(self) -> dict[str, Any]:
        return {"kind": "mpi", "staging": "host"}

    def solve(self, b: Any, *rest: Any) -> dict[str, Any]:
        self.solved.append((b, *rest))
        rest[-1][:] = 7.0
        return {"seconds": 1.0, "iterations": 3, "reason": "CONVERGED_ITS", "residual": 0.5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    arrays = {
        "indptr": np.array([0, 1, 2], np.int64),
        "indices": np.array([0, 1], np.int32),
        "data": np.array([2.0, 3.0]),
        "b": np.array([1.0, 1.0]),
        "part": np.array([0, 1], np.int32),
    }
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
    return tmp_path


OPTIONS = {"pes": 2, "gpus": [4, 5, 6], "preconditioner": "none", "tuning": {"lag": 3}}


@pytest.mark.parametrize("name", ["mpi", "nccl_mpi"])
def test_mpi_rank_0_announces_what_it_does(name: str, folder: Path) -> None:
    extension = FakeExtension()
    contender = mpi_worker.Everybody(extension, name)
    assert contender.name == name
    facts = contender.load(folder, OPTIONS)
    contender.solve({"method": "cg", "iterations": 3, "max_iterations": 9})
    contender.close()
    assert facts["staging"] == "host"
    assert [word["do"] for word in extension.said] == ["load", "solve", "close"]
    kind, indptr, _, _, part, order, pes, gpus, preconditioner, tuning = extension.made[0]
    assert (kind, pes, gpus, preconditioner, tuning) == (name, 2, [4, 5], "none", {"lag": 3})
    assert indptr.tolist() == [0, 1, 2]
    assert part.tolist() == [0, 1]
    assert order is None


@pytest.mark.parametrize(
    ("request_", "count", "exact"),
    [({"iterations": 0, "max_iterations": 9}, 0, True), ({"max_iterations": 9}, 9, False)],
)
def test_mpi_solve_asks_for_its_iterations(
    folder: Path, request_: dict[str, Any], count: int, exact: bool
) -> None:
    extension = FakeExtension()
    rank = mpi_worker.Rank(extension, "mpi")
    rank.load(folder, OPTIONS)
    saved = folder / "x.npy"
    answer = rank.solve({"method": "prcg", "rtol": 1e-7, "save": str(saved), **request_})
    assert answer["reason"] == "CONVERGED_ITS"
    assert extension.solved[0][1:6] == ("prcg", 1e-7, count, exact, "full")
    assert np.load(saved).tolist() == [7.0, 7.0]


def test_mpi_folder_without_a_matrix_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="indptr"):
        mpi_worker.Rank(FakeExtension(), "mpi").load(tmp_path, OPTIONS)


def test_mpi_solve_before_load_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="before load"):
        mpi_worker.Rank(FakeExtension(), "mpi").solve({"method": "cg", "max_iterations": 1})


def test_mpi_others_follow_until_quit_whatever_fails(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    extension = FakeExtension(
        [
            {"do": "solve", "request": {"method": "cg", "max_iterations": 1}},  # nothing is loaded
            {"do": "load", "folder": str(folder), "options": OPTIONS},
            {"do": "solve", "request": {"method": "cg", "max_iterations": 1}},
            {"do": "close"},
            {"do": "quit"},
        ]
    )
    mpi_worker.follow(extension, "mpi")
    assert len(extension.solved) == 1
    assert "before load" in capfd.readouterr().err


def test_mpi_extension_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cpufree._baselines_mpi", None)
    with pytest.raises(UnsupportedError, match="apt install libopenmpi-dev"):
        mpi_worker.load_extension()


def test_mpi_worker_without_a_kind_says_how_it_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert mpi_worker.main([]) == 2
    assert "mpi_worker KIND" in capsys.readouterr().err
