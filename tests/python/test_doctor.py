"""The doctor: reads the machine right, never needs a GPU, says how to get what is missing."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from cpufree import doctor
from cpufree.doctor import Finding, Section, Status
from cpufree.errors import UnsupportedError

MEMINFO = "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    8000000 kB\nHuge: x\n"


def test_reads_memory_from_meminfo() -> None:
    assert doctor.memory_limits(MEMINFO, "max\n") == (16_384_000_000, 8_192_000_000)


def test_memory_is_capped_by_container_limit() -> None:
    assert doctor.memory_limits(MEMINFO, "1000000\n") == (1_000_000, 1_000_000)


def test_memory_is_unknown_where_meminfo_is_missing() -> None:
    assert doctor.memory_limits("", "") == (0, 0)


def test_processor_name_comes_from_cpuinfo() -> None:
    text = "processor\t: 0\nmodel name\t: Some CPU: fast @ 2 GHz\nflags\t: a b\n"
    assert doctor.processor_name(text) == "Some CPU: fast @ 2 GHz"
    assert doctor.processor_name("") != ""


def test_tool_that_is_missing_or_fails_gives_none() -> None:
    assert doctor.run_tool(["no-such-tool-at-all"]) is None
    assert doctor.run_tool(["false"]) is None
    assert doctor.run_tool(["echo", "seen"]) == "seen"


def test_gpus_are_listed_from_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "run_tool", lambda command: "GPU X, 8 GiB\nGPU Y, 9 GiB")
    findings = doctor.look_at_gpus().findings
    assert [finding.detail for finding in findings[:2]] == ["GPU X, 8 GiB", "GPU Y, 9 GiB"]


def test_machine_without_gpu_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "run_tool", lambda command: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor.ctypes.util, "find_library", lambda name: None)
    section = doctor.look_at_gpus()
    assert {finding.status for finding in section.findings} == {Status.NOTE}
    assert doctor.healthy([section])


def test_cpu_engine_solves_its_self_test() -> None:
    cpu = doctor.look_at_engines().findings[0]
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

    section = doctor.look_at_engines(fail)
    assert section.findings[0].status is status
    assert detail in section.findings[0].detail
    assert section.findings[0].hint
    assert not doctor.healthy([section])


def test_missing_package_says_how_to_get_it() -> None:
    finding = doctor.package_finding("no-such-package-at-all")
    assert finding.status is Status.MISSING
    assert finding.hint == "pip install no-such-package-at-all"


def test_versions_name_every_dependency() -> None:
    names = {finding.name for finding in doctor.look_at_versions().findings}
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
