"""What a record says of versions and sources: driver, CUDA, libraries, extension, commit."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paths import ROOT, SUPPORT

import cpufree
from cpufree.bench.cg.results import Results
from cpufree.bench.core import gpu_versions, header, machine, records
from cpufree.bench.core.plan import Plan
from cpufree.bench.measuring import Measuring
from cpufree.bench.report.captions import machine_text
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core

pytestmark = pytest.mark.cpu_only
FILE = SUPPORT / "bench_synthetic.jsonl"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build"
MAPS = """\
7f00-7f01 r--p 00000000 08:01 11  /usr/lib/libcublasLt.so.13.0.2
7f01-7f02 r--p 00000000 08:01 12  /usr/lib/libcublas.so.13.0.2
7f02-7f03 r--p 00000000 08:01 13  /opt/nvidia/nccl/lib/libnccl.so.2
7f03-7f04 rw-p 00000000 00:00 0
"""


def writes(*values: int, fails: bool = False) -> Any:
    """Return a function of a library that writes these numbers, by the first of two arguments."""

    def call(*arguments: Any) -> int:
        kind = arguments[0] if len(arguments) > 1 else 0
        arguments[-1]._obj.value = values[kind]
        return int(fails)

    return call


LIBRARIES = {
    "libcuda.so.1": SimpleNamespace(cuDriverGetVersion=writes(13010)),
    "/usr/lib/libcublas.so.13.0.2": SimpleNamespace(cublasGetProperty=writes(13, 0, 2)),
    "/opt/nvidia/nccl/lib/libnccl.so.2": SimpleNamespace(ncclGetVersion=writes(22703)),
}


@pytest.fixture
def gpu_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the files and libraries of a machine with GPUs, and a build with CUDA."""
    files = {gpu_versions.DRIVER_FILE: OPEN, gpu_versions.MAPS_FILE: MAPS}
    monkeypatch.setattr(gpu_versions, "read_text", lambda path: files.get(path, ""))
    monkeypatch.setattr(gpu_versions.ctypes, "CDLL", LIBRARIES.__getitem__)
    monkeypatch.setattr("cpufree._core.compiler", "GNU 13.3.0")
    monkeypatch.setattr("cpufree._core.cuda_runtime", lambda: "13.0")


def plan(gpus: tuple[int, ...] | None) -> Plan:
    """Return what is to be measured on these GPUs."""
    return Plan(precisions=("double",), **{**Measuring().plan([], None), "gpus": gpus})


@pytest.mark.parametrize(
    ("text", "version"), [(CLOSED, "535.104.05"), (OPEN, "580.65.06"), ("", ""), ("NVRM", "")]
)
def test_driver_is_read_from_what_the_kernel_says(text: str, version: str) -> None:
    assert gpu_versions.driver_version(text) == version


@pytest.mark.usefixtures("gpu_machine")
def test_versions_are_those_of_the_driver_and_the_libraries_that_are_loaded() -> None:
    expected = {"driver": "580.65.06", "cuda_driver": "13.1", "cuda_runtime": "13.0"}
    expected |= {"cublas": "13.0.2", "nccl": "2.27.3"}
    assert gpu_versions.gpu_versions() == expected
    assert expected.keys() < set(gpu_versions.NAMES)


@pytest.mark.usefixtures("gpu_machine")
def test_driver_is_asked_for_where_the_kernel_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_versions, "read_text", lambda path: "")
    monkeypatch.setattr(gpu_versions, "run_tool", lambda command: "580.1\n580.1")
    assert gpu_versions.gpu_versions()["driver"] == "580.1"


@pytest.mark.parametrize("library", [SimpleNamespace(), SimpleNamespace(f=writes(7, fails=True))])
def test_library_that_does_not_tell_its_version_is_left_out(
    monkeypatch: pytest.MonkeyPatch, library: Any
) -> None:
    monkeypatch.setattr(gpu_versions, "read_text", lambda path: "")
    monkeypatch.setattr(gpu_versions, "run_tool", lambda command: None)
    library.cuDriverGetVersion = getattr(library, "f", None) or writes(0)
    monkeypatch.setattr(gpu_versions.ctypes, "CDLL", lambda path: library)
    monkeypatch.setattr("cpufree._core.cuda_runtime", str)
    assert gpu_versions.gpu_versions() == {}


@pytest.mark.usefixtures("gpu_machine")
def test_header_of_a_run_on_gpus_tells_their_versions() -> None:
    versions = header.make_header("cg", plan((0,)), "cpufree bench cg")["versions"]
    assert versions["driver"] == "580.65.06" and versions["nccl"] == "2.27.3"
    assert versions["core_compiler"] == "GNU 13.3.0"


@pytest.mark.usefixtures("gpu_machine")
def test_header_of_a_run_on_the_cpu_tells_none_of_gpus() -> None:
    assert "driver" not in header.make_header("cg", plan(None), "cpufree bench cg")["versions"]


def test_changed_driver_is_a_difference_between_runs() -> None:
    old = {"versions": {"driver": "580.1", "nccl": "2.27.3"}}
    new = {"versions": {"driver": "580.2", "nccl": "2.27.3"}}
    assert records.differences(old, new) == ['driver was "580.1", is "580.2"']


def results_with(folder: Path, *versions: dict[str, str]) -> Results:
    """Return results of as many files, each of one number of PEs, with these versions besides."""
    files = []
    for pes, more in zip((1, 4), versions, strict=True):
        lines = [json.loads(text) for text in FILE.read_text().splitlines()]
        lines[0]["versions"] |= more
        files.append(folder / f"{pes}.jsonl")
        mine = [line for line in lines if line.get("pes", pes) == pes]
        files[-1].write_text("".join(json.dumps(line) + "\n" for line in mine))
    return Results(files)


def test_report_refuses_files_of_different_drivers(tmp_path: Path) -> None:
    told = r"4.jsonl' was measured with driver 580.2, '.*1.jsonl' with 580.1: report on each"
    with pytest.raises(InvalidInputError, match=told):
        results_with(tmp_path, {"driver": "580.1"}, {"driver": "580.2"})


def test_report_takes_old_files_that_do_not_tell_their_driver(tmp_path: Path) -> None:
    results = results_with(tmp_path, {}, {"driver": "580.2", "cuda_runtime": "13.0"})
    assert len(results.headers) == 2
    assert "driver" not in machine_text(results.headers[0])
    assert "driver 580.2 · CUDA 13.0" in machine_text(results.headers[1])


def test_version_without_metadata_is_that_of_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nothing)
    monkeypatch.delitem(vars(cpufree), "__version__", raising=False)
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert machine.package_version("cpufree") == version


def test_extension_tells_its_compiler_and_no_runtime_without_cuda() -> None:
    made = gpu_versions.made_with()
    assert re.fullmatch(r"\w+ \d+(\.\d+)+", made["core_compiler"])
    assert ("cuda_runtime" in made) == bool(load_core().gpu_vendor())


@pytest.mark.parametrize(
    ("text", "commit", "modified"),
    [("", None, None), ("3649143", "3649143", False), ("3649143-dirty", "3649143", True)],
)
def test_commit_of_a_tree_without_git_is_told_from_outside(
    monkeypatch: pytest.MonkeyPatch, text: str, commit: str | None, modified: bool | None
) -> None:
    monkeypatch.setenv("CPUFREE_COMMIT", text)
    monkeypatch.setattr(machine, "source_root", lambda: None)
    assert machine.source_state() == {"commit": commit, "modified": modified}


@pytest.mark.parametrize("text", ["main", "36491", "3649143-new", "3649143-"])
def test_commit_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CPUFREE_COMMIT", text)
    monkeypatch.setattr(machine, "source_root", lambda: None)
    with pytest.raises(InvalidInputError, match=f"CPUFREE_COMMIT='{text}' is not valid"):
        machine.source_state()


def test_commit_of_a_tree_with_git_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"rev-parse --show-toplevel": str(tmp_path), "rev-parse HEAD": "a" * 40}
    monkeypatch.setenv("CPUFREE_COMMIT", "3649143")
    monkeypatch.setattr(machine, "source_root", lambda: tmp_path)
    monkeypatch.setattr(machine, "_git", lambda _, *words: answers.get(" ".join(words), ""))
    assert machine.source_state() == {"commit": "a" * 40, "modified": False}
