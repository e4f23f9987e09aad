"""Check that files and folders of sources are no larger than a reader can hold.

Usage: python tools/check_sizes.py [ROOT]. A file has at most 400 lines, a folder 25 sources. Prints
what has more and exits with 1. Else says how many lines a reader of solvers meets, without tests.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file, on any tree

from tools.layer_table import PYTHON_BASE

MOST_LINES, MOST_FILES = 400, 25
SOURCES = {".py", ".hpp", ".cpp", ".cu", ".cuh", ".sh", ".cmake"}
# Foundations and solvers: what a reader of solvers meets.
FOUNDATIONS = "base bindings/core device distributed engines formats gpu launch plugins problem "
FOUNDATIONS += "reference trace"
SOLVERS = [f"cpufree/{room}" for room in (*FOUNDATIONS.split(), "solvers")]
SOLVERS += [
    f"python/cpufree/{room}"
    for room in ("distributed", "engines", "machine", "matrix", "partition", "solvers")
]
SOLVERS += [f"python/cpufree/{room}" for room in sorted(PYTHON_BASE)]


def sources(root: Path) -> list[str]:
    """Return the tracked sources below root."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files"], check=True, capture_output=True, text=True
    )
    return [
        name
        for name in listed.stdout.splitlines()
        if Path(name).suffix in SOURCES and (root / name).is_file()
    ]


def lines_of(file: Path) -> int:
    """Return how many lines a file has."""
    return file.read_bytes().count(b"\n")


def violations(root: Path, names: list[str]) -> Iterator[str]:
    """Yield what is too large."""
    sizes = {name: (lines_of(root / name), MOST_LINES, "lines") for name in names}
    folders = Counter(str(Path(name).parent) for name in names)
    sizes |= {name: (count, MOST_FILES, "sources") for name, count in folders.items()}
    for name, (size, most, what) in sorted(sizes.items()):
        if size > most:
            yield f"{name}: {size} {what}, of which there may be {most}: divide it"


def of_solvers(root: Path, names: list[str]) -> int:
    """Return the lines of foundations and solvers."""
    return sum(
        lines_of(root / name)
        for name in names
        if any(str(one) in SOLVERS for one in (Path(name).with_suffix(""), *Path(name).parents))
    )


def main(root: Path) -> int:
    """Print what is too large below root; return the exit status."""
    names = sources(root)
    found = [*violations(root, names)]
    print("\n".join(found) or f"sizes: a reader of solvers meets {of_solvers(root, names)} lines")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()))
