"""Contenders that are programs: each call is a process, whose last line of JSON is its answer."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpufree.bench.core.processes import kill_session
from cpufree.env import for_worker
from cpufree.errors import CpufreeError

BUILD_SECONDS = 180.0
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Of programs; they go when this process ends."""


class ProcessError(CpufreeError):
    """A program that was measured has failed, or has not answered."""


def run(words: Sequence[str], timeout: float, **environment: str) -> str:
    """Run a program and return what it prints; it ends with all that it has started.

    Raises:
        ProcessError: there is no such program, it ends with a status other than 0, or not within
            `timeout` seconds.
    """
    if shutil.which(words[0]) is None:
        raise ProcessError(f"{words[0]} was not found: put it on PATH")
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**for_worker(), **environment},
        start_new_session=True,
    ) as process:
        try:
            printed, said = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise ProcessError(f"{words[0]} has not ended within {timeout:g} s") from None
        finally:
            kill_session(process.pid)
    if process.returncode:
        raise ProcessError(f"{words[0]}: exit status {process.returncode}: {said.strip()[-400:]}")
    return printed


def ask(words: Sequence[str], timeout: float, **environment: str) -> dict[str, Any]:
    """Run a program and return the JSON object that it prints last; errors as of `run`."""
    printed = run(words, timeout, **environment)
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    if not lines:
        raise ProcessError(f"{words[0]} has printed no result: {printed.strip()[-400:]}")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


@functools.cache
def compiled(source: Path, architecture: str, more: tuple[str, ...] = ()) -> str:
    """Compile a program of CUDA with nvcc, once in a run; return its path.

    `more`: words that follow the source, such as libraries. Errors as of `run`.
    """
    _FOLDERS.append(tempfile.TemporaryDirectory())
    program = Path(_FOLDERS[-1].name) / source.stem
    words = ["nvcc", "-O3", "-std=c++20", f"-arch={architecture}", "-o", str(program), str(source)]
    run([*words, *more], BUILD_SECONDS)
    return str(program)
