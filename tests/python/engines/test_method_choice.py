"""Which method auto chooses, and that it says why."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from paths import ROOT

import cpufree
from cpufree.engines.method_choice import Solve, choose_method
from cpufree.errors import InvalidInputError
from cpufree.model.records import read_record

RECORDS = ROOT / "bench/results"

ON_GPUS = Solve("cuda_p2p", "none")


@pytest.mark.parametrize(
    ("engine", "pc"),
    [("cuda_p2p", "none"), ("nvshmem", "jacobi"), ("cpu_threads", "none"), ("cpu_threads", "fsai")],
)
def test_prcg_is_the_method_of_nearly_all_systems(engine: str, pc: str) -> None:
    method, why = choose_method("auto", Solve(engine, pc))
    assert method == "prcg" and "one reduction" in why


def test_multigrid_gets_cg() -> None:
    assert choose_method("auto", Solve("cpu_threads", "amg"))[0] == "cg"


@pytest.mark.parametrize("name", ["cg-1x-2026-11-24", "cg-2x-2026-11-25", "cg-8x-2026-11-22"])
def test_no_method_would_have_saved_much_in_the_records(name: str) -> None:
    times: dict[tuple[str, int], dict[str, float]] = {}
    for one in read_record(RECORDS / f"{name}.jsonl"):
        times.setdefault((one.case, one.facts.pes), {})[one.method] = one.seconds
    over = [found["prcg"] / min(found.values()) for found in times.values()]
    assert statistics.geometric_mean(over) < 1.05 and max(over) < 1.12


@pytest.mark.parametrize("engine", ["cpu_threads", "cpu_processes"])
def test_a_diagonal_that_spreads_gets_cg_on_the_cpu_without_preconditioner(engine: str) -> None:
    wide = Solve(engine, "none", spread=2e8)
    method, why = choose_method("auto", wide)
    assert method == "cg"
    assert "spreads over 8 decades" in why
    for other in ({"pc": "jacobi"}, {"spread": 9e5}):
        assert choose_method("auto", replace(wide, **other))[0] == "prcg"


@pytest.mark.cpu_only
def test_the_spread_is_that_of_the_diagonal_whatever_lies_beside_it() -> None:
    A = sp.csr_array(sp.diags_array([[1e-9], [2.0, 1.0], [1e-9]], offsets=[-1, 0, 1], shape=(2, 2)))
    with cpufree.Solver(A) as solver:
        assert solver.solve(np.ones(2), pc="none").method == "prcg"
        solver.update(sp.csr_array(A.toarray() * [[1e7, 1], [1, 1]]))
        assert solver.solve(np.ones(2), pc="none").method == "cg"
        assert solver.solve(np.ones(2)).method == "prcg"


def test_a_method_that_is_asked_for_is_taken() -> None:
    assert choose_method("prcg", ON_GPUS) == ("prcg", "asked for")


@pytest.mark.parametrize("asked", ["gmres", None])
def test_a_method_that_is_not_known_is_refused(asked: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"unknown method {asked!r}.*cg, prcg, pipecg"):
        choose_method(asked, ON_GPUS)


@pytest.mark.cpu_only
def test_a_result_tells_the_method_and_why() -> None:
    result = cpufree.solve(np.eye(3), np.ones(3), pc="none")
    assert result.method == "prcg"
    assert result.why.startswith("prcg: one reduction per iteration")
