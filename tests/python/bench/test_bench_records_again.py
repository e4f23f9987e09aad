"""bench/records.py: which commands make the records again, and what one that fails does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bench_script import BENCH, load

pytestmark = pytest.mark.cpu_only


def commands(*words: str) -> list[str]:
    """Return the commands of a dry run."""
    call = [sys.executable, str(BENCH / "records.py"), "out", "--dry-run", *words]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_step_has_commands_whose_scripts_are_there() -> None:
    listed = load("records").STEPS
    for line in commands("--pes", "1,2"):
        for word in line.split():
            if word.startswith("bench/") and word.endswith(".py"):
                assert (BENCH.parent / word).exists(), word
    for step in listed:
        assert commands("--pes", "1,2", "--steps", step), step


def test_numbers_of_gpus_reach_the_commands() -> None:
    (line,) = commands("--pes", "1,4", "--steps", "nvshmem")
    assert "nvshmem.py --pes 4 " in line


def test_an_unknown_step_is_refused_with_those_that_are_known() -> None:
    call = [sys.executable, str(BENCH / "records.py"), "out", "--steps", "nothing"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "step 'nothing': choose from suite, structured" in done.stderr


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    sleeping = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]
    assert load("records").run(sleeping, 1.0, tmp_path) == -1
    assert "here" in (tmp_path / "log.txt").read_text()
