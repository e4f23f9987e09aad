"""The doctor: reads the machine right, never needs a GPU, says how to get what is missing."""

from __future__ import annotations

import importlib.metadata
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fake_core import FakeCore, Machine, gpu
from rich.console import Console

from cpufree import host
from cpufree.cli import doctor
from cpufree.cli.doctor import Finding, Section, Status
from cpufree.errors import EngineError, InvalidInputError, UnsupportedError

MEMINFO = "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    8000000 kB\nHuge: x\n"


def test_reads_memory_from_meminfo() -> None:
    assert host.memory_limits(MEMINFO, "max\n") == (16_384_000_000, 8_192_000_000)


def test_memory_is_capped_by_container_limit() -> None:
    assert host.memory_limits(MEMINFO, "1000000\n") == (1_000_000, 1_000_000)


def test_memory_is_unknown_where_meminfo_is_missing() -> None:
    assert host.memory_limits("", "") == (0, 0)


def test_processor_name_comes_from_cpuinfo() -> None:
    text = "processor\t: 0\nmodel name\t: Some CPU: fast @ 2 GHz\nflags\t: a b\n"
    assert host.processor_name(text) == "Some CPU: fast @ 2 GHz"
    assert host.processor_name("") != ""


def test_tool_that_is_missing_or_fails_gives_none() -> None:
    assert host.run_tool(["no-such-tool-at-all"]) is None
    assert host.run_tool(["false"]) is None
    assert host.run_tool(["echo", "seen"]) == "seen"


def found(section: Section) -> dict[str, Finding]:
    """Return the findings of a section by name."""
    return {finding.name: finding for finding in section.findings}


def test_gpus_are_listed_from_nvidia_smi_where_the_extension_has_no_cuda(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    machine(0, built=False, note="this build has no CUDA")
    monkeypatch.setattr(doctor, "run_tool", lambda command: "GPU X, 8 GiB\nGPU Y, 9 GiB")
    section = doctor.inspect_gpus()
    findings = found(section)
    assert findings["GPU 0"].detail == "GPU X, 8 GiB"
    assert findings["GPU 1"].detail == "GPU Y, 9 GiB"
    assert findings["extension"].detail == "compiled without CUDA"
    assert "CPUFREE_CUDA=ON" in findings["extension"].hint
    assert findings["GPUs in use"].detail == "none: this build has no CUDA"
    assert doctor.healthy([section])


def test_no_build_for_gpus_is_advised_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    machine(0, built=False, note="this build has no CUDA")
    monkeypatch.setattr(doctor, "run_tool", lambda command: None)
    findings = found(doctor.inspect_gpus())
    assert findings["extension"].detail == "compiled without CUDA"
    assert findings["extension"].hint == ""


def test_gpus_are_listed_with_memory_and_compute_capability(
    machine: Machine,
) -> None:
    machine([gpu(0, free=139.5), gpu(1, "Tesla T4", capability=(7, 5))])
    section = doctor.inspect_gpus()
    findings = found(section)
    expected = "NVIDIA H200, 140.0 GiB, compute capability 9.0, 139.5 GiB free"
    assert (findings["GPU 0"].status, findings["GPU 0"].detail) == (Status.OK, expected)
    assert findings["GPU 1"].status is Status.NOTE
    assert findings["GPU 1"].detail.endswith("compute capability 7.5: too low for cpufree")
    assert findings["extension"].detail == "compiled with CUDA"
    assert doctor.healthy([section])


def test_gpu_of_a_kind_that_kernels_never_ran_on_is_noted(machine: Machine) -> None:
    machine([gpu(0, "NVIDIA A100", capability=(8, 0)), gpu(1)])
    findings = found(doctor.inspect_gpus())
    assert findings["GPU 0"].status is Status.NOTE
    assert "have never run on one" in findings["GPU 0"].detail
    assert findings["GPU 1"].status is Status.OK


def test_gpu_that_cannot_be_started_is_reported(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(index: int) -> int:
        raise EngineError("the device is in use by another process")

    monkeypatch.setattr(machine(1), "gpu_free_bytes", held)
    finding = found(doctor.inspect_gpus())["GPU 0"]
    assert finding.status is Status.FAILED
    assert "in use by another process" in finding.detail
    assert "nvidia-smi" in finding.hint


def test_driver_that_is_missing_is_a_note(machine: Machine) -> None:
    machine(0, note="the driver is too old")
    findings = found(doctor.inspect_gpus())
    assert findings["GPUs in use"].detail == "none: the driver is too old"


def test_peer_access_is_reported_for_all_pairs(machine: Machine) -> None:
    fake = machine(3)
    finding = found(doctor.inspect_gpus())["peer access"]
    assert (finding.status, finding.detail) == (Status.OK, "between all pairs of 3 GPUs")
    assert fake.asked_peers == [[0, 1, 2]]


def test_missing_peer_access_is_a_note_that_names_the_pair(
    machine: Machine,
) -> None:
    machine(2, peer="GPU 0 does not reach GPU 1")
    section = doctor.inspect_gpus()
    assert found(section)["peer access"].detail == "GPU 0 does not reach GPU 1; auto uses one GPU"
    assert doctor.healthy([section])


def test_gpu_engine_is_tried_on_all_gpus(machine: Machine) -> None:
    fake = machine(3)
    finding = doctor.inspect_gpu_engine()
    assert finding.status is Status.OK, finding.detail
    assert "200 rows on 3 PEs" in finding.detail
    assert fake.systems[0].gpus == [0, 1, 2]


def test_gpu_engine_is_tried_on_one_gpu_where_they_do_not_combine(
    machine: Machine,
) -> None:
    fake = machine(2, peer="GPU 0 does not reach GPU 1")
    assert doctor.inspect_gpu_engine().status is Status.OK
    assert fake.systems[0].gpus == [0]


def test_gpu_engine_that_fails_makes_the_machine_unhealthy(
    machine: Machine,
) -> None:
    machine(1)

    def fail() -> str:
        raise EngineError("the kernel fell over")

    section = doctor.inspect_engines(lambda: "works", fail)
    assert found(section)["cuda_p2p"].status is Status.FAILED
    assert not doctor.healthy([section])


def test_machine_without_gpu_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpufree._core", FakeCore(0, note="the driver is not installed"))
    monkeypatch.setattr(doctor, "run_tool", lambda command: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor.ctypes.util, "find_library", lambda name: None)
    section = doctor.inspect_gpus()
    statuses = {f.status for f in section.findings if f.name != "extension"}
    assert statuses == {Status.NOTE, Status.OPTIONAL}
    assert doctor.healthy([section, doctor.inspect_engines(lambda: "works")])


def test_cpu_engine_solves_its_self_test() -> None:
    cpu = found(doctor.inspect_engines())["cpu_threads"]
    assert (cpu.name, cpu.status) == ("cpu_threads", Status.OK), cpu.detail
    assert "200 rows on 2 PEs" in cpu.detail


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [
        (UnsupportedError("the compiled part does not load"), Status.MISSING, "does not load"),
        (ArithmeticError("error 1.0e+00"), Status.FAILED, "ArithmeticError: error 1.0e+00"),
    ],
)
def test_failing_engine_is_reported_with_hint(
    error: Exception, status: Status, detail: str
) -> None:
    def fail() -> str:
        raise error

    section = doctor.inspect_engines(fail)
    finding = found(section)["cpu_threads"]
    assert finding.status is status
    assert detail in finding.detail
    assert finding.hint
    assert not doctor.healthy([section])


def test_missing_package_says_how_to_get_it() -> None:
    finding = doctor.package_finding("no-such-package-at-all")
    assert finding.status is Status.MISSING
    assert finding.hint == "pip install no-such-package-at-all"


def test_package_that_solves_work_without_is_optional_and_says_what_it_is_for() -> None:
    finding = doctor.package_finding("no-such-package-at-all", "plots")
    assert (finding.status, finding.detail) == (Status.OPTIONAL, "for plots")
    assert finding.hint == "pip install no-such-package-at-all"
    assert doctor.healthy([Section("Versions", [finding])])


def test_copied_package_that_pip_does_not_know_is_healthy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(name: str) -> str:
        if name in ("cpufree", "pymetis", "matplotlib"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(doctor.importlib.metadata, "version", unknown)
    section = doctor.inspect_versions()
    assert doctor.healthy([section])
    assert "not installed" not in str(section)
    assert found(section)["matplotlib"].status is Status.OPTIONAL


@pytest.mark.parametrize(
    ("level", "status", "words"),
    [
        ("x86-64-v3", Status.OK, "x86-64-v3, out of x86-64-v2, x86-64-v3"),
        ("native", Status.OK, "for the processor of the machine that built it"),
    ],
)
def test_cpu_kernels_are_reported(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    status: Status,
    words: str,
) -> None:
    fake = machine(0)
    levels = ["x86-64-v2", "x86-64-v3"] if level != "native" else [level]
    monkeypatch.setattr(fake, "cpu_level", lambda: level)
    monkeypatch.setattr(fake, "cpu_levels", lambda: levels)
    finding = doctor.cpu_kernels_finding()
    assert (finding.status, words in finding.detail) == (status, True)


def test_level_that_cannot_be_had_makes_the_machine_unhealthy(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> str:
        raise InvalidInputError("CPUFREE_CPU_LEVEL is 'x'; it takes auto")

    monkeypatch.setattr(machine(0), "cpu_level", refuse)
    finding = doctor.cpu_kernels_finding()
    assert finding.status is Status.FAILED and "CPUFREE_CPU_LEVEL" in finding.detail


def test_versions_name_every_dependency() -> None:
    names = {finding.name for finding in doctor.inspect_versions().findings}
    assert {"python", "cpufree", "numpy", "scipy", "pymetis", "typer", "rich"} <= names


def test_report_shows_status_detail_and_hint() -> None:
    finding = Finding("thing", Status.MISSING, "not [here]", "get it")
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(doctor.report([Section("Things", [finding])]))
    lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert lines == ["Things", "missing thing not [here]", "→ get it"]


def test_findings_go_to_json() -> None:
    section = Section("Things", [Finding("a", Status.OK, "b")])
    plain = json.loads(json.dumps(doctor.to_dict([section])))
    assert plain == {"things": [{"name": "a", "status": "ok", "detail": "b", "hint": ""}]}


def kernels(machine: Machine, **named: Any) -> Finding:
    """Return what is found of the kernels of a build that compiles them when they are used."""
    machine(1, **named)
    return found(doctor.inspect_gpus())["GPU kernels"]


def test_kernels_that_are_built_in_have_no_line(machine: Machine) -> None:
    machine(1)
    assert "GPU kernels" not in found(doctor.inspect_gpus())


def test_kernels_are_shown_where_there_is_no_gpu(machine: Machine) -> None:
    machine(0, note="no GPU", compiler="NVRTC 13.0")
    assert "NVRTC 13.0" in found(doctor.inspect_gpus())["GPU kernels"].detail


def test_compiler_of_gpu_kernels_is_shown(machine: Machine) -> None:
    shown = kernels(machine, compiler="NVRTC 13.0 (/lib/x.so)")
    assert shown.status is Status.OK
    assert "NVRTC 13.0 (/lib/x.so)" in shown.detail


def compiled() -> dict[str, Finding]:
    """Return what is found of the compiler of CPU kernels, and of what has been compiled."""
    return {finding.name: finding for finding in doctor.compiled_findings()}


def test_folder_of_compiled_kernels_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CPUFREE_KERNEL_CACHE", str(tmp_path))
    (tmp_path / "1.kernel").write_bytes(bytes(2**20))
    assert f"{tmp_path}: 1 files, 1.0 MiB" in compiled()["compiled kernels"].detail


def test_kernels_that_are_not_kept_are_said_not_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_KERNEL_CACHE", "off")
    assert "not kept" in compiled()["compiled kernels"].detail


def test_folder_that_cannot_be_written_is_shown_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CPUFREE_KERNEL_CACHE", str(tmp_path / "file/folder"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shown = compiled()["compiled kernels"]
    assert shown.status is Status.NOTE
    assert "CPUFREE_KERNEL_CACHE" in shown.hint


def test_cpp_compiler_that_is_missing_is_shown_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CPUFREE_CXX", "no-such-compiler")
    shown = compiled()["C++ compiler"]
    assert shown.status is Status.OPTIONAL and "no-such-compiler" in shown.detail
    assert "CPUFREE_CXX" in shown.hint


@pytest.mark.filterwarnings("ignore:cpufree was built on a processor")
def test_build_for_another_processor_is_shown_with_what_to_do(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine(0), "cpu_lacks", lambda: "avx512f")
    finding = doctor.cpu_kernels_finding()
    assert finding.status is Status.NOTE and "lacks avx512f" in finding.detail
    assert "pip install ." in finding.hint


def test_compiler_of_kernels_that_is_missing_is_told_with_what_to_do(
    machine: Machine,
) -> None:
    shown = kernels(machine, compiler=None)
    assert shown.status is Status.MISSING
    assert "NVRTC was not found" in shown.detail
    assert "pip install 'nvidia-cuda-nvrtc" in shown.hint


def test_gpus_of_amd_are_listed_with_what_serves_them(tmp_path: Path) -> None:
    for node, version in enumerate((0, 90402, 110000)):
        (tmp_path / str(node)).mkdir()
        (tmp_path / str(node) / "properties").write_text(
            f"cpu_cores_count 16\ngfx_target_version {version}\n"
        )
    mi300, radeon = doctor.amd_findings(str(tmp_path))
    assert "gfx942" in mi300.detail and "never run" in mi300.detail
    assert "CPUFREE_HIP=ON" in mi300.hint and "CPUFREE_HIP" not in radeon.hint
    assert "gfx1100" in radeon.detail and "no engine" in radeon.detail
    assert "never run" not in radeon.detail
    assert doctor.amd_findings(str(tmp_path / "nowhere")) == []
