"""Runs of the engine nvshmem on GPUs, one process for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gpus_here import HERE
from paths import SUPPORT

from cpufree.engines import remote
from cpufree.errors import UnsupportedError

PROGRAM = SUPPORT / "ranks/rank_program.py"


COUNTS = [count for count in (1, 2, 4, 8) if count <= len(HERE)] or [1]


PROBLEM = "gen:poisson3d?nx=30,ny=29,nz=28"


LIMIT = 300.0  # seconds until a run is taken to hang


def why_not(library: remote.Library = remote.NVSHMEM) -> str:
    """Return why a library cannot be used here, "" where it can."""
    try:
        library.version()
    except UnsupportedError as error:
        return str(error)
    return ""


def clean(**more: str) -> dict[str, str]:
    """Return the environment of the tests without presets of engines."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CPUFREE_")}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "200", "CPUFREE_JOIN_LIMIT": "60", **more}


def launched(words: Sequence[str], ranks: int, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `cpufree run`; it must end in time."""
    command = [sys.executable, "-m", "cpufree", "run", "-n", str(ranks), *words]
    return subprocess.run(command, env=clean(**more), capture_output=True, text=True, timeout=LIMIT)


def solved(tmp_path: Path, ranks: int, *words: str) -> tuple[Any, dict[str, Any]]:
    """Return x and the report of `cpufree run -n ranks solve`."""
    files = ["--out", str(tmp_path / "x.npy"), "--json", str(tmp_path / "report.json")]
    ended = launched(["solve", PROBLEM, "--engine", "nvshmem", *words, *files], ranks)
    assert ended.returncode == 0, ended.stderr
    return np.load(tmp_path / "x.npy"), json.loads((tmp_path / "report.json").read_text())
