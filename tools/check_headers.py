"""Check that each C++ header compiles alone, so that include order never matters.

Usage: python tools/check_headers.py [--jobs N] [--built BUILD] [ROOT]. Compiler: $CXX, or c++.
BUILD is a build folder of CMake in which all is up to date: a header that comes first in one of its
sources has compiled alone there, and is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nanobind

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++"]
# Headers that need the headers of CUDA, MPI or libfabric. Others that are for GPUs are compiled for
# the stand-in of the tests.
NOT_ALONE = (
    "cpufree/gpu/cuda",
    "cpufree/baselines/cuda",
    "cpufree/baselines/comm/mpi.hpp",
    "cpufree/baselines/comm/mpi_calls.hpp",
    "cpufree/nics/libfabric/fabric.hpp",
)


def include_flags(root: Path) -> list[str]:
    """Return -I flags: the repository, a GPU's runtime on the host, Python and nanobind."""
    folders = [root, root / "tests/cpp/host_gpu", sysconfig.get_path("include")]
    return [f"-I{folder}" for folder in [*folders, nanobind.include_dir()]]


def compile_alone(header: Path, flags: list[str]) -> str:
    """Return the compiler's complaint about a file that includes the header, "" when none."""
    command = [os.environ.get("CXX", "c++"), *FLAGS, *flags, "-"]
    # Twice: a missing include guard is an error too.
    source = f'#include "{header}"\n' * 2
    return subprocess.run(command, input=source, capture_output=True, text=True).stderr


def first_include(file: Path) -> str | None:
    """Return what a file includes in quotes before all else, None where something else is first."""
    with file.open(encoding="utf-8") as lines:
        for line in map(str.strip, lines):
            if found := re.match(r'#include "(.*)"', line):
                return found[1]
            if line and line != "#pragma once" and not line.startswith("//"):
                return None
    return None


def guarded(header: Path) -> bool:
    """Return whether a header begins with #pragma once, after comments."""
    with header.open(encoding="utf-8") as lines:
        for line in map(str.strip, lines):
            if line and not line.startswith("//"):
                return line == "#pragma once"
    return False


def compiled_alone(build: Path, root: Path) -> set[Path]:
    """Return headers before which a source of a build has had nothing, not even headers ahead."""
    found: set[Path] = set()
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        ahead = any("cmake_pch" in word for word in words)
        made = build / words[words.index("-o") + 1]
        if "-Werror" not in words or ahead or not made.exists():
            continue
        file = Path(entry["file"])
        # What comes first in a header that comes first has had nothing before it either.
        while (name := first_include(file)) and (root / name) not in found:
            file = root / name
            if not file.exists() or not guarded(file):  # beside the source, or to be compiled twice
                break
            found.add(file)
    return found


def main() -> int:
    """Compile all headers; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--built", type=Path, help="a build folder that is up to date")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    given = parser.parse_args()
    root = given.root.resolve()
    headers = [
        header
        for header in sorted((root / "cpufree").rglob("*.hpp"))
        if not header.relative_to(root).as_posix().startswith(NOT_ALONE)
    ]
    known = compiled_alone(given.built.resolve(), root) if given.built else set()
    left = [header for header in headers if header not in known]
    flags = include_flags(root)
    with ThreadPoolExecutor(given.jobs) as pool:
        complaints = list(pool.map(lambda header: compile_alone(header, flags), left))
    failed = [header for header, text in zip(left, complaints, strict=True) if text]
    for text in complaints:
        print(text, end="", file=sys.stderr)
    for header in failed:
        print(f"{header.relative_to(root)}: does not compile alone")
    print(f"headers: {len(headers) - len(failed)} of {len(headers)} compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
