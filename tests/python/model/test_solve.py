"""Predicted iterations: limits that follow from the model, and records that it is held against."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT

from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.machine import load
from cpufree.model.records import compare, read_record
from cpufree.model.solve import (
    METHODS,
    SystemFacts,
    estimate,
    iteration_seconds,
    solve_seconds,
    sum_seconds,
)

H200 = load("h200")
RECORDS = ROOT / "bench/results"
LARGE = SystemFacts(4_000_000, 300_000_000, 1, 3e9)


@pytest.mark.parametrize("method", METHODS)
def test_a_tiny_system_takes_its_sums_and_its_exchange(method: str) -> None:
    found = iteration_seconds(estimate(10, 30, 1), method, H200)
    assert found.parts["sums"] + found.parts["exchange"] == pytest.approx(found.seconds, rel=0.01)
    assert found.bound == "sums"


@pytest.mark.parametrize("method", METHODS)
def test_a_large_system_takes_its_bytes_over_the_rate_of_memory(method: str) -> None:
    found = iteration_seconds(LARGE, method, H200)
    assert found.bound == "matrix"
    assert found.parts["matrix"] == pytest.approx(3e9 / 4.2e12)


def test_entries_of_few_bytes_take_the_time_of_their_multiplication() -> None:
    coded = dataclasses.replace(LARGE, matrix_bytes=3e8)
    found = iteration_seconds(coded, "cg", H200)
    assert found.parts["matrix"] == pytest.approx(3e8 / 1.03e12 + 4e6 * 20e-12)


def test_a_share_on_chip_is_read_at_the_rate_of_the_chip() -> None:
    found = iteration_seconds(SystemFacts(10_000, 100_000, 1, 1e7), "prcg", H200)
    assert found.parts["matrix"] == pytest.approx(1e7 / 8e12)


def test_parts_add_up_and_lie_in_the_interval() -> None:
    found = iteration_seconds(dataclasses.replace(LARGE, pes=4, halo_values=40_000), "cg", H200)
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    assert found.low < found.seconds < found.high
    assert found.parts["halo"] == pytest.approx(10_000 * 8 / 366e9)


def test_halos_by_stores_wait_for_a_fence_and_a_flag() -> None:
    two = dataclasses.replace(LARGE, pes=2)
    packets = iteration_seconds(two, "cg", H200)
    stores = iteration_seconds(dataclasses.replace(two, packets=False), "cg", H200)
    assert stores.seconds - packets.seconds == pytest.approx(3.99e-6 - 2.0e-6)


def test_pipelined_cg_hides_its_sum_behind_a_product_that_is_longer() -> None:
    assert iteration_seconds(LARGE, "pipecg", H200).parts["sums"] == 0.0
    small = iteration_seconds(estimate(10, 30, 1), "pipecg", H200)
    assert small.parts["sums"] == pytest.approx(sum_seconds(4, 1, H200), rel=0.01)


@pytest.mark.parametrize(("values", "pes", "microseconds"), [
    (1, 1, 1.77), (5, 2, 3.01), (3, 1, 2.34), (5, 4, 3.16), (5, 8, 3.53), (5, 16, 3.90),
])  # fmt: skip
def test_sums_are_those_measured_or_on_lines_between(
    values: int, pes: int, microseconds: float
) -> None:
    assert sum_seconds(values, pes, H200) * 1e6 == pytest.approx(microseconds)


def test_a_solve_has_a_launch_and_two_further_products() -> None:
    one = iteration_seconds(LARGE, "cg", H200)
    found = solve_seconds(LARGE, "cg", H200, 100)
    assert found.seconds == pytest.approx(102 * one.seconds + 22e-6)
    three = solve_seconds(dataclasses.replace(LARGE, pes=3), "cg", H200, 1).parts["launch"]
    assert three == pytest.approx(32e-6)


@pytest.mark.parametrize(
    ("facts", "method", "message"),
    [(LARGE, "gmres", "method 'gmres': predictions are for cg, prcg, pipecg"),
     (dataclasses.replace(LARGE, rows=0), "cg", "0 rows on 1 PEs")],
)  # fmt: skip
def test_what_cannot_be_predicted_is_refused(facts: SystemFacts, method: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        iteration_seconds(facts, method, H200)


def test_the_record_of_todays_kernels_is_met_on_one_gpu() -> None:
    found = compare([RECORDS / "cg-1x-2026-11-24.jsonl"], H200)
    assert len(found.lines) == 18 * 3
    errors = found.errors(1)
    assert np.median(errors) < 0.15 and errors.max() < 0.4
    assert found.lost().mean() < 0.05


def lines_of(measurement: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a record of one solve."""
    place = {"case": "a", "precision": "double", "preconditioner": "none", "pes": 2}
    plan = {"matrix_bytes": 1e6, "halo_values": 10, "halo": "stores", "imbalance": 1.5}
    return [
        {"kind": "header"},
        {"kind": "problem", **place, "rows": 1000, "nnz": 5000},
        {"kind": "load", **place, "contender": "cpufree", "facts": {"plan": plan}},
        {"kind": "load", **place, "contender": "nccl", "facts": {}},
        {"kind": "measurement", **place, "contender": "cpufree", "method": "cg", "variant": "full",
         "seconds": 2e-3, "iterations": 100, **measurement},
    ]  # fmt: skip


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_record_tells_how_systems_lay_and_how_long_iterations_took(tmp_path: Path) -> None:
    (found,) = read_record(written(tmp_path / "a.jsonl", lines_of({})))
    assert found.facts == SystemFacts(1000, 5000, 2, 1e6, 10, False, 1.5)
    assert (found.case, found.method, found.iterations) == ("a", "cg", 100)
    assert found.seconds == pytest.approx(2e-5)


@pytest.mark.parametrize("other", [{"preconditioner": "jacobi"}, {"contender": "nccl"},
                                   {"variant": "no_comm"}, {"precision": "single"}])  # fmt: skip
def test_other_solves_of_a_record_are_left_out(tmp_path: Path, other: dict[str, Any]) -> None:
    path = written(tmp_path / "a.jsonl", lines_of(other))
    assert read_record(path) == []
    with pytest.raises(InvalidInputError, match="no solve of cpufree without a preconditioner"):
        compare([path], H200)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not a record in JSON lines"), ('{"kind": "load"}', "line 1: KeyError"),
     ("{}", "line 1: KeyError")],
)  # fmt: skip
def test_files_that_are_no_records_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_record(path)
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_record(tmp_path / "none.jsonl")
