"""The file of a run: who may write to it, what it goes on with, what it refuses."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paths import SUPPORT

from cpufree.bench.core import file_lock, processes, records
from cpufree.bench.core.records import Log
from cpufree.cli import app as cli
from cpufree.errors import FileFormatError, InvalidInputError

pytestmark = pytest.mark.cpu_only
FILE = SUPPORT / "bench_synthetic.jsonl"
HEADER = {"kind": "header", "benchmark": "cg", "schema": records.SCHEMA, "configuration": {"a": 1}}
OTHER = {**HEADER, "configuration": {"a": 2}}
HOLDER = """
import sys
from pathlib import Path
from cpufree.bench.core.records import Log
log = Log(Path(sys.argv[1]), {"kind": "header", "benchmark": "cg", "schema": 1})
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of results."""
    return tmp_path / "results.jsonl"


@pytest.fixture
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes to the file."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def measurement(number: int, contender: str = "nccl") -> dict[str, Any]:
    """Return a measurement."""
    group = {"case": "small", "precision": "double", "preconditioner": "none", "pes": 4}
    task = {"contender": contender, "method": "cg", "variant": "full"}
    return {"kind": "measurement", **group, **task, "round": number, "seconds": 1.0}


def write(path: Path, *lines: dict[str, Any]) -> None:
    """Write lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.skipif(not processes.PROC.is_dir(), reason="needs /proc")
def test_file_that_another_run_writes_to_is_refused_with_its_process(
    path: Path, writer: subprocess.Popen[str]
) -> None:
    before = path.read_bytes()
    told = rf"another run writes to '{path}' \(process {writer.pid}\)"
    with pytest.raises(InvalidInputError, match=told):
        Log(path, HEADER)
    assert path.read_bytes() == before


def test_lock_ends_with_the_process_that_has_it(path: Path, writer: subprocess.Popen[str]) -> None:
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    Log(path, HEADER).close()


def test_lock_ends_when_the_file_is_closed(path: Path) -> None:
    Log(path, HEADER).close()
    Log(path, HEADER).close()


def test_file_system_without_locks_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(file_lock.fcntl, "flock", refuse)
    log = Log(path, HEADER)
    log.close()
    assert "without locks" in log.notes[0] and str(path) in log.notes[0]


def test_file_of_another_run_without_measurements_is_begun_anew(path: Path) -> None:
    write(path, HEADER, {"kind": "rate"}, {"kind": "failure", "error": "unknown option"})
    log = Log(path, OTHER)
    log.close()
    assert records.read(path)[0] == [OTHER]
    assert "without measurements: begun again" in log.notes[0]


def test_file_of_the_same_run_without_measurements_is_gone_on_with(path: Path) -> None:
    write(path, HEADER, {"kind": "rate"})
    log = Log(path, HEADER)
    log.close()
    assert log.lines == [HEADER, {"kind": "rate"}] and not log.notes


def test_file_of_another_run_with_a_measurement_is_refused(path: Path) -> None:
    write(path, HEADER, measurement(0))
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match="a was 1, is 2"):
        Log(path, OTHER)
    assert path.read_bytes() == before


def test_run_does_not_go_on_with_a_file_that_has_a_measurement_twice(path: Path) -> None:
    write(path, HEADER, measurement(0), measurement(0, "petsc"), measurement(1), measurement(0))
    with pytest.raises(FileFormatError, match="lines 2 and 5 are the same measurement, repeat 0"):
        Log(path, HEADER)


def test_report_refuses_a_file_that_has_a_measurement_twice(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FILE.read_text()
    last = next(x for x in reversed(text.splitlines()) if '"kind": "measurement"' in x)
    path.write_text(f"{text}{last}\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "report", str(path)])
    assert ended.value.code == 3
    assert "two runs have written to this file" in " ".join(capsys.readouterr().err.split())
