"""The benchmark of the CPU engine: does it work, and do its numbers follow from one another."""

from __future__ import annotations

import importlib
import json
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from paths import ROOT

from cpufree.bench.core.noise import compare

pytestmark = pytest.mark.cpu_only  # what is measured here is the CPU engine
BENCH = ROOT / "bench"
METHODS = ("cg", "prcg", "pipecg")
needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """The modules of the benchmark by name; they are scripts, on no path of their own."""
    names = ("timing", "cases", "cpu_large", "cpu_small", "cpu")
    shared = ("triad", "machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        loaded = {name: importlib.import_module(name) for name in names}
        core = {name: importlib.import_module(f"cpufree.bench.core.{name}") for name in shared}
        yield loaded | core


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path, str]:
    """A quick run: its record, its picture, what it printed."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("bench")
    out, plot = folder / "new" / "cpu.json", folder / "cpu.png"
    command = [sys.executable, str(BENCH / "cpu.py"), "--quick", "--rounds", "5"]
    command += ["--out", str(out), "--plot", str(plot), "--cache", str(folder / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), plot, done.stdout


def check_spread(spread: dict[str, float], values: list[float]) -> None:
    """Assert that a spread is the one of the values."""
    expected = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    assert spread == pytest.approx(expected, rel=1e-9)


def divide(a: list[float], b: list[float]) -> list[float]:
    """Return the ratio of each round."""
    assert len(a) == len(b) == 5
    return [x / y for x, y in zip(a, b, strict=True)]


def test_record_says_what_was_measured_where(quick_run: tuple[dict[str, Any], Path, str]) -> None:
    record = quick_run[0]
    assert (record["schema"], record["benchmark"], record["quick"]) == (1, "cpu", True)
    assert record["command"].startswith("python bench/cpu.py --quick --rounds 5 --out ")
    assert record["machine"].keys() >= {"cpu", "cores", "memory_bytes", "caches", "system"}
    assert record["versions"].keys() >= {"python", "cpufree", "numpy", "scipy", "compiler"}
    assert record["source"].keys() == {"commit", "modified"}
    assert record["settings"]["rounds"] == 5
    assert isinstance(record["disturbed"], bool)
    assert [matrix["name"] for matrix in record["large"]] == ["poisson3d", "flange_hex"]
    assert len(record["small"]) == 2


def test_ratios_to_scipy_follow_from_raw_times(
    quick_run: tuple[dict[str, Any], Path, str],
) -> None:
    for matrix in quick_run[0]["large"]:
        raw, k = matrix["raw"], matrix["iterations"]
        scipy = raw["scipy_seconds"]
        check_spread(matrix["derived"]["scipy_seconds_per_iteration"], [t / k for t in scipy])
        assert set(raw["methods"]) == set(METHODS)
        for method, times in raw["methods"].items():
            wall, kernel = times["wall_seconds"], times["kernel_seconds"]
            assert all(0 < inner < outer for inner, outer in zip(kernel, wall, strict=True))
            derived = matrix["derived"]["methods"][method]
            check_spread(derived["seconds_per_iteration"], [t / k for t in kernel])
            check_spread(derived["wall_seconds_per_iteration"], [t / k for t in wall])
            check_spread(derived["ratio_to_scipy"], divide(wall, scipy))
            check_spread(derived["kernel_ratio_to_scipy"], divide(kernel, scipy))


def test_fraction_of_triad_is_for_the_smaller_count_of_bytes(
    quick_run: tuple[dict[str, Any], Path, str],
) -> None:
    record = quick_run[0]
    pass_bytes = 24 * record["triad"]["elements"]
    for matrix in record["large"]:
        for method in METHODS:
            derived = matrix["derived"]["methods"][method]
            count = derived["bytes_per_iteration"]
            kernel = matrix["raw"]["methods"][method]["kernel_seconds"]
            least = min(count["csr"], count["format"])
            speed = [least * matrix["iterations"] / t for t in kernel]
            triad = [pass_bytes / t for t in matrix["raw"]["triad_pass_seconds"]]
            check_spread(derived["fraction_of_triad"], divide(speed, triad))


def test_targets_are_not_judged_on_matrices_below_a_million_rows(
    quick_run: tuple[dict[str, Any], Path, str],
) -> None:
    for matrix in quick_run[0]["large"]:
        for derived in matrix["derived"]["methods"].values():
            assert derived["target_scipy"] == derived["target_triad"] == "not judged"


def test_small_systems_are_solved_to_the_tolerance_by_both(
    quick_run: tuple[dict[str, Any], Path, str],
) -> None:
    for system in quick_run[0]["small"]:
        assert system["residual"] <= 1.01e-8
        assert system["scipy_residual"] <= 1.01e-8
        raw, derived = system["raw"], system["derived"]
        ratios = divide(raw["cpufree_seconds"], raw["scipy_seconds"])
        check_spread(derived["ratio_to_scipy"], ratios)
        assert derived["against_scipy"] == compare(raw["cpufree_seconds"], raw["scipy_seconds"])


def test_report_and_picture_are_made(quick_run: tuple[dict[str, Any], Path, str]) -> None:
    _, plot, printed = quick_run
    assert plot.read_bytes().startswith(b"\x89PNG")
    for word in ("poisson3d", "flange_hex", *METHODS, "GB/s", "quick run"):
        assert word in printed


def test_bytes_of_an_iteration_are_those_of_csr_and_vectors(
    modules: dict[str, ModuleType],
) -> None:
    count = modules["cpu_large"].count_bytes(10, 28, 300.0, "prcg")
    assert count == {"vectors": 960.0, "csr": 12 * 28 + 4 * 10 + 960.0, "format": 1260.0}
    assert modules["cpu_large"].count_bytes(10, 28, 300.0, "pipecg")["vectors"] == 19 * 80.0


def test_target_is_met_or_missed_only_where_all_rounds_agree(
    modules: dict[str, ModuleType],
) -> None:
    judge = modules["timing"].judge
    assert judge([0.5, 0.6], at_most=0.6) == "met"
    assert judge([0.5, 0.61], at_most=0.6) == "unclear"
    assert judge([0.61, 0.7], at_most=0.6) == "missed"
    assert judge([0.7, 2.0], at_least=0.7) == "met"
    assert judge([0.69, 2.0], at_least=0.7) == "unclear"
    assert judge([0.69, 0.1], at_least=0.7) == "missed"


def test_rounds_are_interleaved_in_random_order_after_a_warm_up(
    modules: dict[str, ModuleType],
) -> None:
    calls: list[str] = []
    tasks = {name: lambda name=name: calls.append(name) or len(calls) for name in "abcd"}
    results = modules["timing"].interleave(tasks, 6, random.Random(3), 0.0)
    assert calls[:4] == list("abcd")
    rounds = [calls[start : start + 4] for start in range(4, len(calls), 4)]
    assert len(rounds) == 6
    assert all(sorted(names) == list("abcd") for names in rounds)
    assert len({tuple(names) for names in rounds}) > 1
    for name, counts in results.items():
        assert [calls[count - 1] for count in counts] == [name] * 6
        assert [(count - 5) // 4 for count in counts] == list(range(6))


def test_fewer_than_five_rounds_are_refused(modules: dict[str, ModuleType]) -> None:
    with pytest.raises(ValueError, match="give 5 or more"):
        modules["timing"].interleave({}, 4, random.Random(0), 0.0)


@needs_compiler
@pytest.mark.parametrize("threads", [1, 3])
def test_triad_computes_all_elements(modules: dict[str, ModuleType], threads: int) -> None:
    with modules["triad"].Triad(10_001, threads) as triad:
        assert triad.wrong() == 10_001  # nothing has run yet
        assert triad.run(2) > 0
        assert triad.wrong() == 0
        assert triad.bytes_per_pass == 240_024


def test_triad_arrays_outgrow_the_caches(modules: dict[str, ModuleType]) -> None:
    elements = modules["triad"].array_elements
    assert elements(0) * 8 == 160_000_000
    assert elements(256 * 2**20) * 8 == 2**30


def test_missing_compiler_is_named(modules: dict[str, ModuleType]) -> None:
    with pytest.raises(modules["triad"].TriadError, match="'no-such-c' was not found"):
        modules["triad"].Triad(100, 1, "no-such-c")


def test_last_level_cache_counts_all_its_instances(modules: dict[str, ModuleType]) -> None:
    listed = [{"level": 2, "bytes": 100, "instances": 8}, {"level": 3, "bytes": 7, "instances": 2}]
    assert modules["machine"].last_level_bytes(listed) == 14
    assert modules["machine"].last_level_bytes([]) == 0


def test_processor_time_of_others_is_told_from_our_own(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = modules["machine"]
    hertz = machine.os.sysconf("SC_CLK_TCK")

    def at(stat: list[int], own: float) -> None:
        line = "cpu  " + " ".join(str(seconds * hertz) for seconds in stat) + " 0 0\ncpu0 1\n"
        monkeypatch.setattr(machine, "read_text", lambda path: line)
        times = machine.os.times_result((own, 0.0, 0.0, 0.0, 0.0))
        monkeypatch.setattr(machine.os, "times", lambda: times)

    at([10, 0, 5, 100, 0, 0, 0, 0], own=2.0)
    use = machine.CpuUse()
    # 10 more seconds in all: 6 busy, of which 1 was stolen by the hypervisor and 4 are our own.
    at([14, 0, 6, 103, 1, 0, 0, 1], own=6.0)
    assert use.others() == pytest.approx(0.2)


def test_results_are_never_overwritten_by_default(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    default_out = modules["cpu"].default_out
    first = default_out(tmp_path)
    first.touch()
    second = default_out(tmp_path)
    second.touch()
    assert second.name == f"{first.stem}-2.json"
    assert default_out(tmp_path).name == f"{first.stem}-3.json"


def test_generated_matrix_is_kept_and_read_back_unchanged(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    cases = modules["cases"]
    case = cases.Case("poisson2d", "poisson2d?nx=9,ny=7", 10)
    made = cases.load_large(case, tmp_path)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    again = cases.load_large(case, tmp_path)
    assert file.stat().st_mtime_ns == written
    assert abs(made - again).nnz == 0
    assert made.indices.dtype == made.indptr.dtype == np.int32


def test_solve_that_ends_early_is_not_timed(modules: dict[str, ModuleType]) -> None:
    import cpufree

    with cpufree.Solver(sp.eye_array(50, format="csr")) as solver:
        task = modules["cpu_large"].solve_task(solver, np.ones(50), "prcg", 20)
        with pytest.raises(RuntimeError, match="of 20 iterations"):
            task()


def test_system_that_does_not_converge_is_left_out_with_reason(
    modules: dict[str, ModuleType],
) -> None:
    indefinite = sp.csr_array(np.array([[1.0, 2.0], [2.0, 1.0]]))
    found = modules["cpu_small"].measure_small(
        "indefinite", indefinite, 5, 0.001, random.Random(0), 0.0
    )
    assert "DIVERGED_INDEFINITE_MAT" in found["left_out"]
    assert "derived" not in found
