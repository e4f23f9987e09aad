"""Predicted iterations: limits that follow from the model, and records that it is held against."""

from __future__ import annotations

import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT
from scipy.sparse import csr_array

from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.machine import load
from cpufree.model.gathers import gathered_bytes
from cpufree.model.records import by_gpus, compare, read_record, summaries, summary
from cpufree.model.solve import (
    LOOPS,
    METHODS,
    SystemFacts,
    estimate,
    iteration_seconds,
    solve_seconds,
    sum_seconds,
)
from cpufree.model.streams import Share, stream_seconds

H200 = load("h200")
RECORDS = ROOT / "bench/results"
LARGE = SystemFacts(4_000_000, 300_000_000, 1, 3e9)


@pytest.mark.parametrize("method", METHODS)
def test_a_tiny_system_takes_its_sums_and_its_exchange(method: str) -> None:
    found = iteration_seconds(estimate(10, 30, 1), method, H200)
    parts = ("sums", "exchange", "loops")
    assert sum(found.parts[name] for name in parts) == pytest.approx(found.seconds, rel=0.01)
    assert found.bound == "sums"


@pytest.mark.parametrize("method", METHODS)
def test_a_large_system_takes_its_bytes_over_the_rate_of_memory(method: str) -> None:
    found = iteration_seconds(LARGE, method, H200)
    assert found.bound == "matrix"
    # 40 bytes a row are 1.25 sectors, 75 entries 2.34 gathers of a warp: 5.3 for ten.
    rate = H200.at("product.memory_rate", "B/s", 10 * 40 * 4e6 / 3e8)
    assert found.parts["matrix"] == pytest.approx(LOOPS[method].products * 3e9 / rate)


def test_entries_of_few_bytes_take_the_time_of_their_multiplication() -> None:
    coded = dataclasses.replace(LARGE, matrix_bytes=3e8)
    found = iteration_seconds(coded, "cg", H200)
    assert found.parts["matrix"] == pytest.approx(3e8 / 1.03e12 + 4e6 * 20e-12)


def test_a_share_on_chip_is_read_at_the_rate_of_the_chip() -> None:
    found = iteration_seconds(SystemFacts(10_000, 100_000, 1, 1e7), "prcg", H200)
    assert found.parts["matrix"] == pytest.approx(1e7 / 28e12)


def test_parts_add_up_and_lie_in_the_interval() -> None:
    found = iteration_seconds(dataclasses.replace(LARGE, pes=4, halo_values=40_000), "cg", H200)
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    assert found.low < found.seconds < found.high
    assert found.parts["halo"] == pytest.approx(10_000 * 16 / 366e9)  # packets have their flags


def test_halos_by_stores_wait_for_a_fence_and_a_flag() -> None:
    two = dataclasses.replace(LARGE, pes=2)
    packets = iteration_seconds(two, "cg", H200)
    stores = iteration_seconds(dataclasses.replace(two, packets=False), "cg", H200)
    assert stores.seconds - packets.seconds == pytest.approx(3.99e-6 - 2.0e-6)


def test_halos_by_stores_have_no_flags_in_them() -> None:
    two = dataclasses.replace(LARGE, pes=2, halo_values=40_000, packets=False)
    found = iteration_seconds(two, "cg", H200)
    assert found.parts["halo"] == pytest.approx(20_000 * 8 / 366e9)


SHARE = Share(1e6, 5e7, 5e8, 8e6, 4, 10, 6, 0.0, 2, False)


def test_gathers_slow_a_product_down_and_operands_on_chip_do_not() -> None:
    none, some, many = (
        stream_seconds(dataclasses.replace(SHARE, gathered_bytes=each * 5e7), H200)[0]
        for each in (0.0, 1.0, 16.0)
    )
    assert none < some < many
    on_chip = dataclasses.replace(SHARE, gathered_bytes=None)
    kept = 20e6 / 5e8  # of the matrix, which is the only one to want the cache
    memory, cache = (H200.table(f"product.{k}_rate", "B/s")[0] for k in ("memory", "cache"))
    wait = 1.0 + H200.table("product.wait_packets", "1")[1]
    expected = wait * 5e8 * (kept / cache + (1 - kept) / memory)
    assert stream_seconds(on_chip, H200)[0] == pytest.approx(expected)


def test_vectors_on_chip_save_their_accesses() -> None:
    chip = H200.number("solver.chip_bandwidth", "B/s")
    times = [
        stream_seconds(dataclasses.replace(SHARE, resident_vectors=kept), H200)[1]
        for kept in (0, 1, 2, 5)
    ]
    assert times == sorted(times, reverse=True)
    assert times[-1] == pytest.approx(10 * 8e6 / chip)


def test_what_is_read_round_after_round_is_held_up_to_the_size_of_the_cache() -> None:
    small, large = (
        stream_seconds(dataclasses.replace(SHARE, matrix_bytes=size, entries=1e5, rows=1e4,
                                           vector_bytes=8e4), H200)[0]
        for size in (40e6, 80e6)
    )  # fmt: skip
    cache = H200.table("product.cache_rate", "B/s")[0]
    assert small == pytest.approx(40e6 / cache) and large > 2.5 * small


def test_without_a_plan_what_finds_room_stays_on_chip() -> None:
    found = dataclasses.replace(SHARE, resident_vectors=None, resident_matrix=None)
    told = [dataclasses.replace(found, resident_vectors=k, resident_matrix=False) for k in (1, 2)]
    # 132 blocks have 200 kB each, of which rings take 82: a vector of 8 MB, not two.
    assert stream_seconds(found, H200) == stream_seconds(told[0], H200)
    assert stream_seconds(found, H200) != stream_seconds(told[1], H200)


def test_gathers_are_counted_through_a_cache() -> None:
    rows, far = 8192, np.random.default_rng(1).permutation(8192)
    near = csr_array((np.ones(rows), (np.arange(rows), np.arange(rows))))
    apart = csr_array((np.ones(rows), (np.arange(rows), far)))
    assert gathered_bytes(near) / rows == pytest.approx(8.0)
    assert gathered_bytes(apart) / rows > 20.0  # a sector for each, but for those that are there
    dense = csr_array(np.ones((64, 64)))
    assert gathered_bytes(dense) == 64 * 8.0  # each warp finds what the first has read
    assert gathered_bytes(csr_array((100, 100))) == 0.0


def test_pipelined_cg_hides_half_of_its_sum_behind_a_product_that_is_longer() -> None:
    hidden = iteration_seconds(LARGE, "pipecg", H200).parts["sums"]
    assert hidden == pytest.approx(0.5 * sum_seconds(4, 1, H200))
    small = iteration_seconds(estimate(10, 30, 1), "pipecg", H200)
    assert small.parts["sums"] == pytest.approx(sum_seconds(4, 1, H200), rel=0.01)


@pytest.mark.parametrize(("values", "pes", "microseconds"), [
    (1, 1, 1.77), (5, 2, 3.01), (3, 1, 2.34), (5, 4, 3.16), (5, 8, 3.53), (5, 16, 3.90),
])  # fmt: skip
def test_sums_are_those_measured_or_on_lines_between(
    values: int, pes: int, microseconds: float
) -> None:
    assert sum_seconds(values, pes, H200) * 1e6 == pytest.approx(microseconds)


@pytest.mark.parametrize(("method", "ends"), [("cg", 2.6), ("prcg", 3.6), ("pipecg", 4.5)])
def test_a_solve_has_a_launch_and_residuals_at_its_ends(method: str, ends: float) -> None:
    one = iteration_seconds(LARGE, method, H200)
    found = solve_seconds(LARGE, method, H200, 100)
    assert found.seconds == pytest.approx((100 + ends) * one.seconds + 16e-6)
    three = solve_seconds(dataclasses.replace(LARGE, pes=3), method, H200, 1).parts["launch"]
    assert three == pytest.approx(26e-6)


@pytest.mark.parametrize(
    ("facts", "method", "message"),
    [(LARGE, "gmres", "method 'gmres': predictions are for cg, prcg, pipecg"),
     (dataclasses.replace(LARGE, rows=0), "cg", "0 rows on 1 PEs")],
)  # fmt: skip
def test_what_cannot_be_predicted_is_refused(facts: SystemFacts, method: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        iteration_seconds(facts, method, H200)


@pytest.mark.parametrize("method", ["minres", "bicgstab"])
def test_methods_without_a_record_on_several_gpus_have_wider_intervals_there(method: str) -> None:
    for pes, wider in ((1, 1.0), (2, 2.0)):
        facts = dataclasses.replace(LARGE, pes=pes)
        found, prcg = (iteration_seconds(facts, m, H200) for m in (method, "prcg"))
        assert found.high / found.seconds == pytest.approx(wider * prcg.high / prcg.seconds)
        assert found.low / found.seconds == pytest.approx(prcg.low / prcg.seconds / wider)


@pytest.mark.parametrize("method", ["minres", "bicgstab"])
def test_methods_without_constants_are_predicted_by_what_they_read_and_write(method: str) -> None:
    found, prcg = (iteration_seconds(LARGE, m, H200) for m in (method, "prcg"))
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    products = 2 if method == "bicgstab" else 1
    assert found.parts["matrix"] == pytest.approx(products * prcg.parts["matrix"])
    assert found.parts["vectors"] > prcg.parts["vectors"]


@pytest.mark.parametrize("method", ["minres", "bicgstab"])
@pytest.mark.parametrize("side", [64, 128])
def test_intervals_hold_measured_iterations_of_methods_without_constants(
    method: str, side: int
) -> None:
    lines = (RECORDS / "other-methods-1x-2026-11-30.jsonl").read_text().splitlines()
    seconds = [
        r["seconds"]
        for r in map(json.loads, lines)
        if r["kind"] == "measurement" and r["case"] == f"n {side}, jacobi"
        if r["contender"] == method
    ]
    products = 2 if method == "bicgstab" else 1  # seconds are those of a product
    facts = estimate(side**3, 7 * side**3 - 6 * side**2, 1)
    facts = dataclasses.replace(facts, matrix_bytes=3.2 * facts.nnz)  # as GPUs store it
    found = iteration_seconds(facts, method, H200)
    assert found.low <= products * statistics.median(seconds) <= found.high


def test_records_of_h100_are_met_as_the_page_says() -> None:
    names = ("cg-1x", "cg-1x-rest", "cg-2x", "cg-real-2x")
    found = compare([RECORDS / f"{name}-2026-11-25.jsonl" for name in names])
    one, two = summaries(found, by_gpus)
    assert (one.name, one.count, two.name, two.count) == (
        "systems, 1 GPU",
        63,
        "systems, 2 GPUs",
        66,
    )
    assert max(one.median, two.median) < 0.07 and max(one.largest, two.largest) < 0.48


def test_a_system_that_no_constant_comes_from_is_met() -> None:
    text = (RECORDS / "iterations-2x-2026-11-25.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    there = [line for line in lines if "consolidation" in line["system"]]
    assert len(there) == 6
    for line in there:
        plan = line["plan"]
        facts = SystemFacts(
            line["rows"], line["nnz"], line["pes"], plan["matrix_bytes"], plan["halo_values"],
            plan["halo"] != "stores", resident_vectors=plan["resident_vectors"],
            resident_matrix=False,
        )  # fmt: skip
        found = iteration_seconds(facts, line["method"], load("h100"))
        assert found.seconds == pytest.approx(line["iteration_seconds"], rel=0.15)


def test_a_product_waits_for_the_slowest_block_of_all_gpus() -> None:
    one, two, many = (
        stream_seconds(dataclasses.replace(SHARE, gpus=gpus), H200)[0] for gpus in (1, 2, 64)
    )
    waits = H200.table("product.wait_flags", "1")
    assert two / one == pytest.approx((1 + waits[2]) / (1 + waits[1]))
    assert many / one == pytest.approx((1 + waits[8]) / (1 + waits[1]))
    on_chip = dataclasses.replace(SHARE, resident_matrix=True)
    assert stream_seconds(on_chip, H200) == stream_seconds(
        dataclasses.replace(on_chip, gpus=8), H200
    )


def test_the_record_of_todays_kernels_is_met_on_one_gpu() -> None:
    found = summary("all", compare([RECORDS / "cg-1x-2026-11-24.jsonl"], H200))
    assert found.count == 18 * 3 and found.median < 0.15 and found.largest < 0.4


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
