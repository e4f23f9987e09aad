"""Check what makes the build of the package long: its units, and the kernels that are built in.

And that `make install`, which builds `_core` alone, installs without the extensions that it leaves
out: what CMake installs besides is OPTIONAL.

Usage: python tools/check_build.py [FOLDER], a build folder (default: build/python) of the package
with CPUFREE_KERNELS=USUAL or ALL; counted is what a USUAL build compiles. Prints the counts, and
exits with 1 where one is above its bound. Bounds are of counts, since times depend on the machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_UNITS = 22
MOST_KERNELS = 9
# What _core depends on.
BROUGHT = re.compile(r"_(core|gpu|cpu_\S+)$")
OBJECTS = "CMakeFiles/cpu_usual_native.dir/cpufree/solvers/cpu/usual_*_kernel.cpp.o"
# What CPUFREE_KERNELS=ALL compiles besides.
NOT_USUAL = re.compile(r"(other|remote|columns|study|stencil)_kernel\.cpp|all_kernels\.cpp")


def units_in(commands: str) -> list[str]:
    """Return the files that the commands of a build compile, without those of a build with ALL."""
    found = re.findall(r" -c (\S+)", commands)
    return sorted({file for file in found if not NOT_USUAL.search(file)})


def kernels_in(symbols: str) -> int:
    """Return how many solver kernels the listing of an object file (nm -C) defines."""
    return len(set(re.findall(r" [WT] (void cpufree::solve_kernel<.*)", symbols)))


def not_optional(cmake: str) -> list[str]:
    """Return the extensions that a text of CMake installs, though _core does not bring them."""
    found = re.findall(r"install\(TARGETS (_\S+) LIBRARY DESTINATION cpufree( OPTIONAL)?\)", cmake)
    return [name for name, optional in found if not optional and not BROUGHT.match(name)]


def output_of(command: list[str]) -> str:
    """Return what a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(folder: Path) -> int:
    """Print the counts of a build folder; return the exit status."""
    if not (folder / "build.ninja").exists():
        print(f"build: {folder} is no build folder: run make install first")
        return 1
    ninja = shutil.which("ninja") or "ninja"
    texts = [ROOT / "CMakeLists.txt", *sorted((ROOT / "cmake").glob("*.cmake"))]
    needed = not_optional("\n".join(text.read_text(encoding="utf-8") for text in texts))
    for name in needed:
        print(f"build: {name} is installed and not OPTIONAL: make install, without it, fails")
    wanted = ["-t", "commands", "_core"]
    units = len(units_in(output_of([ninja, "-C", str(folder), *wanted])))
    failed = bool(needed) or units > MOST_UNITS
    print(f"build: {units} units, of which there may be {MOST_UNITS}")
    nm = shutil.which("nm")
    objects = sorted(map(str, folder.glob(OBJECTS)))
    if nm is None or not objects:
        print("build: kernels not counted: no nm, or no native kernels")
    else:
        kernels = kernels_in(output_of([nm, "-C", "--defined-only", *objects]))
        failed |= kernels > MOST_KERNELS
        print(f"build: {kernels} solver kernels built in, of which there may be {MOST_KERNELS}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/python")))
