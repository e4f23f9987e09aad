"""Where results are written."""

from __future__ import annotations

import datetime
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench/results"


def unused_name(folder: Path, kind: str) -> Path:
    """Return folder/kind-<date>.json, or kind-<date>-2.json, ...: never a file that exists."""
    stem = f"{kind}-{datetime.date.today().isoformat()}"
    number = 1
    while True:
        path = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        if not path.exists():
            return path
        number += 1


def command_line() -> str:
    """Return how the program was called: files of the project from its root, others by name."""

    def short(word: str) -> str:
        if not os.path.isabs(word):
            return word
        path = Path(word)
        return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name

    return shlex.join(["python", *map(short, sys.orig_argv[1:])])


def write(record: dict[str, Any], path: Path) -> None:
    """Write a record; a reader finds the one before or this one, never half of it."""
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    new.replace(path)
