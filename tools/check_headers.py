"""Check that each C++ header compiles alone, so that include order never matters.

Usage: python tools/check_headers.py [--jobs N] [--commits N] [ROOT]. Compiler: $CXX, or c++.
A header takes a second: --commits takes those alone that the last N commits have changed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nanobind

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++"]
# Headers that need those of CUDA, HIP, MPI or libfabric. Others that are for GPUs are compiled for
# the stand-in of the tests.
NOT_ALONE = (
    "cpufree/gpu/cuda",
    "cpufree/gpu/compiler.hpp",
    "cpufree/gpu/device_std.hpp",
    "cpufree/gpu/hip",
    "cpufree/baselines/cuda",
    "cpufree/baselines/comm/mpi.hpp",
    "cpufree/baselines/comm/mpi_calls.hpp",
    "cpufree/triggered/nics/libfabric/fabric.hpp",
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


def changed(root: Path, commits: int) -> set[Path] | None:
    """Return what the last commits have changed; None where the history is not so long."""
    words = f"log -{commits} --name-only --format=format:commit".split()
    command = ["git", "-C", str(root), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode or lines.count("commit") < commits:
        return None
    return {root / line for line in lines if line}


def main() -> int:
    """Compile all headers; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--commits", type=int, help="only what the last N commits have changed")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    given = parser.parse_args()
    root = given.root.resolve()
    headers = [
        header
        for header in sorted((root / "cpufree").rglob("*.hpp"))
        if not header.relative_to(root).as_posix().startswith(NOT_ALONE)
    ]
    recent = changed(root, given.commits) if given.commits else None
    if recent is not None:
        headers = [header for header in headers if header in recent]
    flags = include_flags(root)
    with ThreadPoolExecutor(given.jobs) as pool:
        complaints = list(pool.map(lambda header: compile_alone(header, flags), headers))
    failed = [header for header, text in zip(headers, complaints, strict=True) if text]
    for text in complaints:
        print(text, end="", file=sys.stderr)
    for header in failed:
        print(f"{header.relative_to(root)}: does not compile alone")
    print(f"headers: {len(headers) - len(failed)} of {len(headers)} compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
