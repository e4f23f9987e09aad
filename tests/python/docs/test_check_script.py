"""tools/gpu_check without a GPU: its steps, limits and summary."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from failures import Failures
from paths import ROOT

pytestmark = pytest.mark.cpu_only  # it is tried out on the CPU engine


@pytest.fixture
def gpu_check() -> Iterator[ModuleType]:
    """tools/gpu_check, which has no suffix, as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_check", str(ROOT / "tools/gpu_check"))
    spec = importlib.util.spec_from_loader("gpu_check", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_check"] = module
    loader.exec_module(module)
    yield module
    del sys.modules["gpu_check"]


def check_of(module: ModuleType, out: Path, *arguments: str) -> Any:
    """A check on the CPU engine that has run nothing yet."""
    given = module.parse([str(out), "--engine", "cpu_threads", *arguments])
    return module.Check(given, out, 2)


def test_check_without_gpu_says_so(
    gpu_check: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(gpu_check, "count_gpus", lambda: 0)
    monkeypatch.setattr(sys, "argv", ["gpu_check", str(tmp_path / "out")])
    assert gpu_check.main() == 2
    assert "there is no GPU here" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_step_that_fails_shows_its_last_line(gpu_check: ModuleType, tmp_path: Path) -> None:
    check = check_of(gpu_check, tmp_path)
    assert not check.run("step", ["sh", "-c", "echo begin; echo it broke; exit 3"], 60.0)
    assert "step" in (tmp_path / "summary.txt").read_text()
    assert check.results[0][:2] == ("step", "FAILED")
    assert check.results[0][3] == "status 3: it broke"
    assert "begin\nit broke\n" in (tmp_path / "log.txt").read_text()


def test_step_that_hangs_is_ended(
    gpu_check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu_check, "LEAST", 0.1)
    check = check_of(gpu_check, tmp_path)
    assert not check.run("step", ["sh", "-c", "echo begin; sleep 100"], 0.5)
    assert check.results[0][3].startswith("ended after")
    assert "begin" in (tmp_path / "log.txt").read_text()


def test_step_without_time_is_skipped(gpu_check: ModuleType, tmp_path: Path) -> None:
    check = check_of(gpu_check, tmp_path, "--budget", "5")
    assert not check.run("step", ["true"], 60.0)
    assert check.results[0][1] == "skipped"


def test_long_output_keeps_begin_and_end(gpu_check: ModuleType) -> None:
    text = b"begin" + b"x" * 1_000_000 + b"end"
    short = gpu_check.shortened(text)
    assert len(short) < 250_000
    assert short.startswith(b"begin")
    assert short.endswith(b"end")


def test_small_cases_of_the_check_are_right_on_the_cpu(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools/gpu_check"), str(tmp_path), "--quick"]
    command += ["--engine", "cpu_threads", "--steps", "sanitize"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = (tmp_path / "summary.txt").read_text().splitlines()
    assert [line.split()[:5] for line in summary[:4]] == [
        ["small", kind, pes, "PE", "passed"] for pes in "12" for kind in ("solves", "stencils")
    ]
    assert summary[-1].startswith("0 failed")


def test_tests_that_fail_side_by_side_run_again_alone(
    gpu_check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []
    ends = iter([False, True])

    def run(self: Any, step: str, command: list[str], limit: float) -> bool:
        commands.append(command)
        passed = next(ends)
        result: bool = self.note(step, "passed" if passed else "FAILED", 1.0, "status 1: 2 failed")
        return result

    monkeypatch.setattr(gpu_check.Check, "run", run)
    monkeypatch.setattr(gpu_check, "has_module", lambda *_: True)
    monkeypatch.setattr(gpu_check.os, "cpu_count", lambda: 32)
    check = check_of(gpu_check, tmp_path, "--part", "2/3")
    gpu_check.run_tests(check)
    assert commands[0][-6:-4] == ["-n", "12"]
    assert "--last-failed" in commands[1] and "-n" not in commands[1]
    # What failed is of the part; a part of that would leave tests out.
    assert ["--part=2/3" in command for command in commands] == [True, False]
    assert [result for _, result, _, _ in check.results] == ["again", "passed"]
    # Without a free second, nothing is run again.
    ends = iter([False])
    monkeypatch.setattr(gpu_check.Check, "note", lambda self, step, result, *more: False)
    check.results[:] = [("tests", "FAILED", 9.0, "ended after 9 s; see log.txt")]
    gpu_check.run_tests(check)
    assert len(commands) == 3


@pytest.mark.parametrize(("gpus", "processes"), [(1, 6), (2, 12), (4, 4), (8, 1)])
def test_fewer_processes_test_where_more_gpus_reach_one_another(
    gpu_check: ModuleType, gpus: int, processes: int
) -> None:
    assert gpu_check.side_by_side(gpus) == processes


def test_failures_are_told_before_all_tests_have_run(tmp_path: Path) -> None:
    told = Failures(tmp_path / "failures.txt")
    for k, outcome in enumerate(("passed", "failed", "failed")):
        reports: Any = pytest.TestReport(
            f"test_{k}", ("", 0, ""), {}, outcome, f"why {k}", "call", duration=k
        )
        told.pytest_runtest_logreport(reports)
    lines = (tmp_path / "failures.txt").read_text().splitlines()
    assert lines == ["==== test_1 (call, 1.0 s)", "why 1", "==== test_2 (call, 2.0 s)", "why 2"]


@pytest.mark.parametrize("part", ["3", "0/2", "3/2", "a/b"])
def test_parts_that_cannot_be_are_refused(gpu_check: ModuleType, part: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        gpu_check.parse([str(tmp_path), "--part", part])


def test_check_of_compiled_kernels_uses_a_build_and_a_folder_of_its_own(
    gpu_check: ModuleType, tmp_path: Path
) -> None:
    given = gpu_check.parse([str(tmp_path), "--kernels", "usual"])
    settings = gpu_check.Check(given, tmp_path, 2).environment()
    folder = ROOT / "build/gpu-usual"
    assert "KERNELS=USUAL" in settings
    assert f"CPUFREE_KERNEL_CACHE={folder / 'kernels'}" in settings
    assert any(setting.startswith(f"PYTHONPATH={folder / 'python'}:") for setting in settings)


def test_check_without_the_wheels_it_is_told_of_says_so(
    gpu_check: ModuleType, tmp_path: Path
) -> None:
    options = ["--kernels", "usual", "--wheels", str(tmp_path / "none")]
    given = gpu_check.parse([str(tmp_path), *options])
    check = gpu_check.Check(given, tmp_path, 2)
    if check.wheels.is_dir():
        pytest.skip("wheels of an earlier check are unpacked")
    assert not gpu_check.build(check)
    assert "no wheels in" in (tmp_path / "summary.txt").read_text()


def test_times_of_first_calls_are_of_three_processes(tmp_path: Path) -> None:
    out = tmp_path / "first.jsonl"
    command = [sys.executable, "bench/first_use.py", "--engine", "cpu_threads", "--n", "6"]
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    measured = [line for line in lines if line["kind"] == "measurement"]
    processes = ["none on disk", "on disk", "not kept"]
    assert [line["contender"] for line in measured] == processes * 3
    assert all(line["seconds"] > 0.0 for line in measured)
