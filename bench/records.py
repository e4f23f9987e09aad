"""Where results are written."""

from __future__ import annotations

import datetime
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


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
    """Return how the program was called, files outside its folder by their names alone."""
    words = sys.orig_argv[1:]
    return shlex.join(["python", *(Path(w).name if os.path.isabs(w) else w for w in words)])


def write(record: dict[str, Any], path: Path) -> None:
    """Write a record; a reader finds the one before or this one, never half of it."""
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    new.replace(path)
