"""Predicted iterations on grids, and records that they are held against."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.machine import Machine, load
from cpufree.machine.files import Quantity
from cpufree.model.records import compare, read_record
from cpufree.model.stencils import StencilFacts, stencil_seconds

MACHINE = Machine("a machine", "a GPU", {
    name: Quantity(0.0, unit, table=value) if isinstance(value, dict) else Quantity(value, unit)
    for name, unit, value in (
        ("gpu.multiprocessors", "1", 100.0),
        ("stencil.chip_points_single", "1/s", {2: 1e12, 3: 2e12}),
        ("stencil.chip_points_double", "1/s", {2: 5e11, 3: 1e12}),
        ("stencil.chip_exchange", "s", {2: 1e-6, 3: 2e-6}),
        ("stencil.memory_rate", "B/s", {2: 1e12, 3: 2e12}),
        ("stencil.memory_exchange", "s", {2: 4e-6, 3: 2e-6}),
        ("stencil.exchange_between", "s", {2: 5e-7}),
        ("link.store_rate", "B/s", 1e11),
    )
})  # fmt: skip


def seconds(*shape: int, pes: int = 1, **more: Any) -> float:
    return stencil_seconds(StencilFacts(shape, pes, **more), MACHINE).seconds


def test_on_chip_points_and_an_exchange_add_up() -> None:
    assert seconds(1000, 1000) == pytest.approx(1e-6 + 1e-6)
    assert seconds(100, 100, 100) == pytest.approx(0.5e-6 + 2e-6)
    assert seconds(1000, 1000, value_bytes=8) == pytest.approx(2e-6 + 1e-6)


def test_a_pass_over_memory_takes_its_bytes_and_an_exchange_for_several_iterations() -> None:
    # 2 x 32 MB take 64 us.
    found = stencil_seconds(StencilFacts((4000, 2000), 1), MACHINE)
    assert found.seconds == pytest.approx((64e-6 + 4e-6) / 4) and found.bound == "memory"
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    assert seconds(4000, 2000, value_bytes=8) == pytest.approx((128e-6 + 4e-6) / 4)
    assert seconds(200, 200, 200, on_chip=False) == pytest.approx((32e-6 + 2e-6) / 2)
    assert seconds(2000, 2000, on_chip=False, layers=1) == pytest.approx(32e-6 + 4e-6)


def test_between_gpus_an_exchange_takes_longer_and_moves_a_face() -> None:
    one, two = seconds(1000, 1000), seconds(2000, 1000, pes=2)
    assert two - one == pytest.approx(5e-7 + 4 * 1000 / 1e11)


@pytest.mark.parametrize("facts", [
    StencilFacts((8,), 1), StencilFacts((8, 8, 8, 8), 1), StencilFacts((8, 0), 1),
    StencilFacts((8, 8), 0), StencilFacts((8, 8), 1, value_bytes=2),
])  # fmt: skip
def test_grids_that_no_sweep_is_for_are_refused(facts: StencilFacts) -> None:
    with pytest.raises(InvalidInputError):
        stencil_seconds(facts, MACHINE)


def record(path: Path, *lines: dict[str, Any]) -> Path:
    header = {"kind": "header", "benchmark": "stencil", "machine": {"gpus": "1 × a GPU"}}
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    return path


COMMON = {"case": "c", "precision": "single", "boundary": "dirichlet", "pes": 2}
PROBLEM = {"kind": "problem", **COMMON, "shape": [64, 32]}
PLAN = {"sweep": "time_tiles", "halo_steps": 4}
LOAD = {"kind": "load", **COMMON, "contender": "cpufree",
        "facts": {"engine": "cuda_p2p", "plan": PLAN}}  # fmt: skip
TIMES = [
    {"kind": "measurement", **COMMON, "contender": who, "variant": variant, "seconds": s,
     "iterations": 100, "method": "jacobi"}
    for who, variant, s in (("cpufree", "full", 1e-3), ("cpufree", "full", 3e-3),
                            ("cpufree", "full", 2e-3), ("cpufree", "no-comm", 9.0),
                            ("nccl", "full", 9.0))
]  # fmt: skip


def test_records_tell_how_grids_lay_and_what_an_iteration_took(tmp_path: Path) -> None:
    path = record(tmp_path / "r.jsonl", PROBLEM, LOAD, *TIMES)
    facts = StencilFacts((64, 32), 2, 4, False, 4)
    (one,) = compare([path], MACHINE)
    assert (one.measured.facts, one.measured.seconds) == (facts, pytest.approx(2e-5))
    assert one.predicted == stencil_seconds(facts, MACHINE).seconds
    assert one.error == pytest.approx(one.predicted / 2e-5 - 1)
    chip = dict(LOAD, facts={"engine": "cuda_p2p", "plan": dict(PLAN, sweep="bricks")})
    (found,) = read_record(record(tmp_path / "s.jsonl", PROBLEM, chip, *TIMES))
    assert found.facts == dataclasses.replace(facts, on_chip=True)


def test_grids_of_the_cpu_and_damaged_lines(tmp_path: Path) -> None:
    other = dict(LOAD, facts={"engine": "cpu_threads", "plan": PLAN})
    assert not read_record(record(tmp_path / "r.jsonl", PROBLEM, other, *TIMES))
    with pytest.raises(FileFormatError, match="line 2"):
        read_record(record(tmp_path / "r.jsonl", {"kind": "problem"}))


def test_constants_of_the_machine_files_follow_from_their_records() -> None:
    program = ROOT / "bench/machine/stencil_constants.py"
    if not program.is_file():
        pytest.skip("the program is in a clone only")
    records = ROOT / "bench/results"
    done = subprocess.run(
        [sys.executable, str(program), str(records / "stencil-constants-2x-2026-11-26.jsonl"),
         str(records / "stencil-baselines-1x-2026-11-23.jsonl")],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert len(found) == 6
    for name, table in found.items():
        entry = load("h200").entries[name]
        assert entry.table == {int(key): value for key, value in table.items()}
        assert entry.provenance.startswith("bench/machine/stencil_constants.py")


def test_records_that_no_constant_comes_from_are_met_as_the_page_says() -> None:
    names = ("1x-double-2026-11-23", "2x-2026-11-23", "3d-2x-2026-11-22", "8x-2026-11-22")
    files = [ROOT / f"bench/results/stencil-baselines-{name}.jsonl" for name in names]
    # Constants come from grids of one GPU in single precision.
    grids = [(one.measured.facts, abs(one.error)) for one in compare(files)]
    errors = sorted(error for facts, error in grids if facts.pes > 1 or facts.value_bytes == 8)
    assert len(errors) == 13 and errors[6] < 0.11 and errors[-1] < 0.33
