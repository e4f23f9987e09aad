"""Build and run the tests of one room, in C++ and in Python.

Usage: python tools/test_room.py [--check] ROOM [JOBS]. A room is a folder of tests/python, one of
tests/cpp, or both: where their names differ, COUNTERPARTS says which belong together, and either
name is that of both. --check: only whether there is such a room. Options of pytest come from the
variable PYTEST_ADDOPTS, such as "-x --lf".
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A folder of tests/python, and that of tests/cpp where the same feature is tested.
COUNTERPARTS = {
    "bench": "baselines",
    "compiler": "programs",
    "engines": "launch",
    "matrix": "problem",
    "model": "probes",
    "partition": "problem",
    "stencil": "stencils",
}
HELPERS = {"support", "host_gpu"}  # folders without tests


def rooms(language: str) -> list[str]:
    """Return the folders of tests in a language."""
    folders = (path.name for path in (ROOT / "tests" / language).iterdir() if path.is_dir())
    return sorted(name for name in folders if name not in HELPERS and not name.startswith("_"))


def folders_of(name: str) -> tuple[list[str], list[str]]:
    """Return a room's folders of tests/python and of tests/cpp; both empty where it is none."""
    python, cpp = rooms("python"), rooms("cpp")
    here = [one for one in python if name in (one, COUNTERPARTS.get(one))]
    there = [one for one in cpp if one in (name, COUNTERPARTS.get(name))]
    return here, there


def main(words: list[str]) -> int:
    """Run the tests; return the exit status."""
    only_check, words = words[:1] == ["--check"], [word for word in words if word != "--check"]
    name, jobs = words[0] if words else "", words[1] if words[1:] else "2"
    python, cpp = folders_of(name)
    if not python and not cpp:
        known = " ".join(sorted({*rooms("python"), *rooms("cpp")}))
        print(f"test_room: error: no room '{name}'; the rooms are {known}", file=sys.stderr)
        return 2
    if only_check:
        return 0
    commands: list[list[str]] = [["tools/test_cpp.sh", "cpu", jobs, "--room", one] for one in cpp]
    if python:
        folders = [f"tests/python/{one}" for one in python]
        commands.append([sys.executable, "-m", "pytest", "-q", *folders])
    for command in commands:
        print("test_room:", *command, flush=True)
        status = subprocess.run(command, cwd=ROOT, env=os.environ).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
