"""The GPU benchmark without a GPU: on made-up records, fake systems, the CPU engine."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gpu_record
import numpy as np
import pytest
from gpu_record import FakeLaidOut
from rich.console import Console

pytestmark = pytest.mark.cpu_only  # what is tried out here runs on the CPU engine
BENCH = Path(__file__).parents[2] / "bench"
PARTS = ["machine", "latency", "reductions", "sweep", "large", "variants", "peers"]
GPU_NAMES = ("derive", "machine", "parts", "plot", "report", "run", "solves")
NAMES = ("cases", "gpu", *(f"gpu_{name}" for name in GPU_NAMES))


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """The modules of the benchmark by name; they are scripts, on no path of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield {name: importlib.import_module(name) for name in NAMES}


@pytest.fixture
def record(modules: dict[str, ModuleType]) -> dict[str, Any]:
    """A made-up record of 1, 2 and 4 GPUs, with what follows from it."""
    made = gpu_record.made_up((1, 2, 4))
    made["derived"] = modules["gpu_derive"].derive(made)
    return made


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path, str]:
    """A quick run on the CPU engine: its record, its picture, what it printed."""
    folder = tmp_path_factory.mktemp("gpu")
    out, plot = folder / "new" / "gpu.json", folder / "gpu.png"
    command = [sys.executable, str(BENCH / "gpu.py"), "--quick", "--engine", "cpu_threads"]
    command += ["--parts", "variants,machine,latency,large", "--out", str(out), "--plot", str(plot)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), plot, done.stdout


def settings(modules: dict[str, ModuleType], folder: Path, **given: Any) -> Any:
    """Settings of a part on the CPU."""
    values = {"part": "latency", "out": str(folder / "part.json"), "engine": "cpu_threads"}
    values |= {"devices": (0, 1), "quick": True, "seconds": 60.0, "cache": str(folder)}
    values |= {"rounds": 5, "channels": str(folder / "run_channels"), **given}
    return modules["gpu_run"].Settings(**values)


def row_of(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """Return the only row with these values."""
    (row,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return row


# Quick run


def test_parts_run_in_their_order_without_failures(
    quick_run: tuple[dict[str, Any], Path, str],
) -> None:
    parts = quick_run[0]["parts"]
    assert list(parts) == ["machine", "latency", "large", "variants"]
    assert all(not part["failed"] and not part["skipped"] for part in parts.values())
    assert all(part["found"] for part in parts.values())


def test_all_numbers_of_pes_and_methods_are_measured(
    quick_run: tuple[dict[str, Any], Path, str],
) -> None:
    rows = quick_run[0]["derived"]["latency"]
    found = {(row["pes"], row["method"]) for row in rows}
    assert found == {(pes, method) for pes in (1, 2) for method in ("cg", "prcg", "pipecg")}
    assert all(row["iterations"] >= 16 for row in rows)


def test_cpu_engine_is_not_judged(quick_run: tuple[dict[str, Any], Path, str]) -> None:
    assert {row["verdict"] for row in quick_run[0]["derived"]["latency"]} == {"not judged"}


def test_quick_run_prints_a_report_and_draws(
    quick_run: tuple[dict[str, Any], Path, str],
) -> None:
    _, plot, printed = quick_run
    assert plot.read_bytes().startswith(b"\x89PNG")
    for word in ("quick run", "pipecg", "flange_hex", "Set-up without partition"):
        assert word in printed


# What follows from raw times


def test_time_per_iteration_includes_the_launch_and_the_marginal_one_does_not(
    modules: dict[str, ModuleType],
) -> None:
    raw = {"iterations": 100, "seconds": [1.05, 2.05, 3.05]}
    raw |= {"short_iterations": 25, "short_seconds": [0.3, 0.55, 0.8]}
    derive = modules["gpu_derive"]
    assert derive.per_iteration(raw)["median"] == pytest.approx(0.0205)
    assert derive.marginal(raw)["median"] == pytest.approx(0.02)


@pytest.mark.parametrize("pes", [1, 4])
def test_floor_is_the_reduction_and_the_bytes_at_copy_rate(
    record: dict[str, Any], pes: int
) -> None:
    n = 4096**2
    row = row_of(record["derived"]["sweep"], name="poisson2d 4096²", pes=pes, method="prcg")
    bytes_ = 12 * 5 * n + 4 * n + 8 * 12 * n
    copying = bytes_ / (pes * gpu_record.RATE)
    assert row["floor_seconds"] == pytest.approx(gpu_record.REDUCTION[pes] + copying)
    time = row["seconds_per_iteration"]["median"]
    assert row["fraction_of_copy"] == pytest.approx(copying / time)
    product = (12 * 5 * n + 20 * n) / (pes * gpu_record.RATE)
    assert row["fraction_of_copy_product"] == pytest.approx(product / time)


def test_cg_is_charged_for_both_of_its_reductions(record: dict[str, Any]) -> None:
    row = row_of(record["derived"]["sweep"], name="poisson2d 64²", pes=2, method="cg")
    assert row["reduction_seconds"] == pytest.approx((0.9 + 0.95) * gpu_record.REDUCTION[2])


def test_reduction_is_that_of_the_block_size_in_use(
    modules: dict[str, ModuleType], record: dict[str, Any]
) -> None:
    seconds = modules["gpu_derive"].reduction_seconds
    assert seconds(record, 4, 1024, "prcg") == pytest.approx(2 * gpu_record.REDUCTION[4])
    assert seconds(record, 4, 256, "prcg") == pytest.approx(gpu_record.REDUCTION[4])  # the quicker
    assert seconds(record, 8, 512, "prcg") is None


def test_wrong_reductions_do_not_count(
    modules: dict[str, ModuleType], record: dict[str, Any]
) -> None:
    for entry in record["parts"]["reductions"]["found"]:
        entry["right"] = entry["threads"] == 1024
    seconds = modules["gpu_derive"].reduction_seconds(record, 1, 512, "prcg")
    assert seconds == pytest.approx(2 * gpu_record.REDUCTION[1])


def test_speedup_is_over_one_gpu_with_the_same_method(record: dict[str, Any]) -> None:
    rows = record["derived"]["large"]
    one, four = (row_of(rows, pes=pes, method="cg") for pes in (1, 4))
    ratio = one["seconds_per_iteration"]["median"] / four["seconds_per_iteration"]["median"]
    assert one["speedup"] == 1.0
    assert four["speedup"] == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("micro", "verdict"),
    [([7.0, 7.4, 6.0], "met"), ([7.4, 7.6, 7.4], "unclear"), ([7.6, 8.0, 9.0], "missed")],
)
def test_target_is_judged_by_all_rounds(
    modules: dict[str, ModuleType], record: dict[str, Any], micro: list[float], verdict: str
) -> None:
    entry = row_of(record["parts"]["latency"]["found"], name="poisson2d 512²", pes=4)
    method = entry["methods"]["prcg"]
    method["seconds"] = [m * 1e-6 * method["iterations"] for m in micro]
    method["short_seconds"] = [0.0] * 3
    row = row_of(
        modules["gpu_derive"].judge_latency(record), name="poisson2d 512²", pes=4, method="prcg"
    )
    assert (row["target_seconds"], row["verdict"]) == (7.5e-6, verdict)


def test_two_gpus_and_small_systems_have_no_target(record: dict[str, Any]) -> None:
    rows = record["derived"]["latency"]
    assert row_of(rows, name="poisson2d 512²", pes=2, method="cg")["verdict"] == "not judged"
    assert row_of(rows, name="poisson2d 64²", pes=1, method="cg")["verdict"] == "not judged"


def test_variant_is_quicker_only_outside_the_noise(
    modules: dict[str, ModuleType], record: dict[str, Any]
) -> None:
    chosen, first, second = record["parts"]["variants"]["found"][:3]
    for entry, times in ((chosen, [4, 5, 6]), (first, [1, 2, 3.9]), (second, [3, 4.1, 5])):
        entry["methods"]["prcg"]["seconds"] = times
    rows = modules["gpu_derive"].derive_variants(record)[:3]
    assert [row["against_chosen"] for row in rows] == ["not judged", "faster", "within noise"]
    assert rows[1]["of_chosen"] == pytest.approx(2 / 5)


def test_peers_are_compared_with_prcg_on_one_gpu(record: dict[str, Any]) -> None:
    (row,) = record["derived"]["peers"]
    assert row["seconds_per_iteration"]["median"] == pytest.approx(1e-4)
    assert row["of_prcg"] == pytest.approx(1e-4 / row["prcg_seconds_per_iteration"])


def test_record_without_any_results_can_be_shown_and_drawn(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    record = gpu_record.made_up((1,))
    failure = {"name": "process", "error": "[out] of luck"}
    record["parts"] = {"latency": {"found": [], "failed": [failure], "skipped": []}}
    record["derived"] = modules["gpu_derive"].derive(record)
    text = io.StringIO()
    modules["gpu_report"].show(record, Console(file=text))
    assert "failed latency: process: [out] of luck" in text.getvalue()
    modules["gpu_plot"].draw(record, tmp_path / "empty.png")


def test_report_is_short_and_has_the_verdicts(
    modules: dict[str, ModuleType], record: dict[str, Any]
) -> None:
    skip = {"name": "x", "why": "no time"}
    record["parts"]["peers"]["skipped"] = [skip] * 30
    text = io.StringIO()
    modules["gpu_report"].show(record, Console(file=text))
    lines = text.getvalue().splitlines()
    assert len(lines) <= 60
    assert sum("missed" in line for line in lines) == 3
    assert any("26 more in the record" in line for line in lines)


def test_picture_is_drawn_from_a_full_record(
    modules: dict[str, ModuleType], record: dict[str, Any], tmp_path: Path
) -> None:
    modules["gpu_plot"].draw(record, tmp_path / "gpu.png")
    assert (tmp_path / "gpu.png").read_bytes().startswith(b"\x89PNG")


# Measuring


def test_iterations_are_fewer_where_rounding_ends_a_solve(modules: dict[str, ModuleType]) -> None:
    laid = FakeLaidOut(last=100)
    assert modules["gpu_solves"].countable(laid, "prcg", 4000, 1e9) == 80
    assert laid.asked == [50, 50, 4000, 80]


def test_iterations_end_before_pipecg_hands_over(modules: dict[str, ModuleType]) -> None:
    assert modules["gpu_solves"].countable(FakeLaidOut(4000, 60), "pipecg", 200, 1e9) == 48


def test_iterations_fit_in_the_time(modules: dict[str, ModuleType]) -> None:
    # 50 iterations take 52 s here.
    assert modules["gpu_solves"].countable(FakeLaidOut(4000), "prcg", 4000, 104.0) == 100


def test_too_few_iterations_are_refused(modules: dict[str, ModuleType]) -> None:
    with pytest.raises(RuntimeError, match="ended after 12 iterations"):
        modules["gpu_solves"].countable(FakeLaidOut(12), "prcg", 200, 1e9)


def test_method_that_fails_does_not_stop_the_others(modules: dict[str, ModuleType]) -> None:
    class Failing(FakeLaidOut):
        def solve(self, method: str, iterations: int) -> dict[str, Any]:
            if method == "cg":
                raise OSError("kernel broke")
            return super().solve(method, iterations)

    found = modules["gpu_solves"].measure_methods(Failing(4000), ("cg", "prcg"), 5, 100, 1e9)
    assert found["failed"] == {"cg": "OSError: kernel broke"}
    assert found["methods"]["prcg"]["seconds"] == [102.0] * 5
    assert found["methods"]["prcg"]["short_seconds"] == [27.0] * 5


def test_counts_of_gpus_are_powers_of_two_and_all(modules: dict[str, ModuleType]) -> None:
    def counts(number: int) -> list[int]:
        found: list[int] = modules["gpu_solves"].Site("cuda_p2p", tuple(range(number))).counts()
        return found

    assert counts(1) == [1]
    assert counts(6) == [1, 2, 4, 6]
    assert counts(8) == [1, 2, 4, 8]


def test_failure_is_noted_and_written_and_the_next_goes_on(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    run = modules["gpu_run"].Run(settings(modules, tmp_path))

    def fail() -> dict[str, Any]:
        raise ValueError("no good")

    assert not run.unit("first", 0.0, fail)
    assert run.unit("second", 0.0, lambda: {"value": 1})
    written = json.loads((tmp_path / "part.json").read_text())
    assert written["failed"] == [{"name": "first", "error": "ValueError: no good"}]
    assert written["found"] == [{"value": 1}]


def test_what_does_not_fit_any_more_is_skipped_and_noted(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    run = modules["gpu_run"].Run(settings(modules, tmp_path, seconds=5.0))
    assert not run.unit("long", 100.0, dict)
    assert run.skipped[0]["name"] == "long"
    assert run.skipped[0]["why"].startswith("takes some 100 s")


def test_matrix_made_ahead_is_the_one_that_is_read(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    case = modules["cases"].Case("poisson2d", "poisson2d?nx=9,ny=7")
    modules["gpu_run"].promise_of(case, tmp_path).write_text("")
    modules["gpu_run"].keep_promise(case, tmp_path)
    matrix = modules["gpu_run"].Run(settings(modules, tmp_path)).matrix(case)
    direct = modules["gpu_solves"].Matrix(case, f"gen:{case.spec}")
    assert len(list(tmp_path.glob("*.cpufree"))) == 1
    assert np.array_equal(matrix.csr.data, direct.csr.data)
    assert np.array_equal(matrix.csr.indices, direct.csr.indices)


def test_matrix_that_cannot_be_made_is_noted(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    case = modules["cases"].Case("nothing", "no_such_generator")
    modules["gpu_run"].promise_of(case, tmp_path).write_text("")
    modules["gpu_run"].keep_promise(case, tmp_path)
    run = modules["gpu_run"].Run(settings(modules, tmp_path))
    assert run.matrix(case) is None
    assert "it could not be made: InvalidInputError" in run.failed[0]["error"]


def test_matrix_that_is_never_made_is_not_waited_for_in_vain(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    case = modules["cases"].Case("late", "poisson2d?nx=9,ny=7")
    modules["gpu_run"].promise_of(case, tmp_path).write_text("")
    run = modules["gpu_run"].Run(settings(modules, tmp_path, seconds=1.2))
    assert run.matrix(case) is None
    assert run.skipped == [{"name": "late", "why": "it was not made in time"}]


def test_part_that_hangs_is_ended_and_keeps_what_it_has_found(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    hanging = tmp_path / "run_channels"
    line = "1 GPUs x  512 threads  sum 5  10 epochs with delays right  7.5 us (without 3.2)"
    hanging.write_text(f"#!/bin/sh\necho '{line}'\nexec sleep 1000\n")
    hanging.chmod(0o755)
    result = modules["gpu"].run_part(settings(modules, tmp_path, part="reductions"), 8.0)
    assert [entry["what"] for entry in result["found"]] == ["sum 5"]
    assert result["failed"][0]["error"].startswith("was ended after 8 s")


def test_part_that_breaks_says_how(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    result = modules["gpu"].run_part(settings(modules, tmp_path, part="no such part"), 60.0)
    assert "KeyError: 'no such part'" in result["failed"][0]["error"]


def test_line_of_run_channels_is_read(modules: dict[str, ModuleType]) -> None:
    parse = modules["gpu_parts"].parse_channels
    text = "4 GPUs x 1024 threads  push pull 3    100000 epochs with delays WRONG  7.51 us "
    found = parse(text + "(without 3.23)")
    assert found["stressed_seconds"] == pytest.approx(7.51e-6)
    assert found["seconds"] == pytest.approx(3.23e-6)
    assert (found["gpus"], found["threads"], found["what"]) == (4, 1024, "push pull 3")
    assert (found["right"], found["epochs"]) == (False, 100_000)
    assert parse("0 failures") is None


def test_links_between_gpus_are_counted(modules: dict[str, ModuleType]) -> None:
    topology = (
        "\t\x1b[4mGPU0\tGPU1\tGPU2\tCPU Affinity\x1b[0m\n"
        "GPU0\t X \tNV18\tSYS\t0-15\nGPU1\tNV18\t X \tNV18\t0-15\nGPU2\tSYS\tNV18\t X \t0-15\n"
        "\nLegend:\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
    )
    assert modules["gpu_machine"].count_links(topology) == {"NV18": 2, "SYS": 1}


def test_copy_falls_back_on_what_is_there(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = importlib.import_module("cpufree.bench.device_copy")

    def broken(device: int, size: int) -> Any:
        raise ImportError("not here")

    copiers = {"first": broken, "second": machine.numpy_copier}
    monkeypatch.setattr(machine, "COPIERS", copiers)
    found = machine.measure_copy("cuda_p2p", 0, 4096, 3)
    assert found["by"] == "second"
    assert len(found["bytes_per_second"]) == 3
    monkeypatch.setattr(machine, "COPIERS", {"first": broken})
    with pytest.raises(RuntimeError, match="first: ImportError: not here"):
        machine.measure_copy("cuda_p2p", 0, 4096, 3)


def test_unknown_part_is_refused_with_the_known_ones() -> None:
    command = [sys.executable, str(BENCH / "gpu.py"), "--engine", "cpu_threads", "--parts", "speed"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"--parts speed: choose from {', '.join(PARTS)}" in " ".join(done.stderr.split())
