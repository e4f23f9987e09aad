"""Times how long the package takes to build, in trees that are scratch copies of it.

Usage: python bench/build_times.py OUT.json [--install-only NAME] NAME=TREE...
such as before=../old after=../new. --install-only: a tree that is installed, and not edited.

Each tree has an environment with what building needs (make .venv/.requirements), and has not been
built. On the first two processors of this process, a tree at a time: `make install`, the same after
an edit of a kernel's header and of the port, and with all kernels where the tree has that. Wall
seconds are of the command, processor seconds of it and all that it starts. Run it with
CCACHE_DISABLE=1 where compilations are cached.
"""

from __future__ import annotations

import datetime
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import records

from cpufree.host import processor_name, read_text

STEPS = {
    "install": ("", "install"),
    "edit cpufree/solvers/cg.hpp": ("cpufree/solvers/cg.hpp", "install"),
    "edit cpufree/device/port.hpp": ("cpufree/device/port.hpp", "install"),
    "all kernels": ("", ".venv/.installed-all"),
}


def timed(tree: Path, edited: str, target: str) -> dict[str, float] | None:
    """Return the seconds of a target after an edit; None where the tree has no such target."""
    if target.startswith(".") and target.split("/")[-1] not in (tree / "Makefile").read_text():
        return None
    if edited:
        time.sleep(1.0)  # later than the stamp of the build before, on any file system
        (tree / edited).touch()
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(["make", target], cwd=tree, capture_output=True, text=True)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"build_times: make {target} in {tree} failed:\n{done.stdout}{done.stderr}")
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(f"{tree.name}: {edited} make {target}: {wall:.1f} s, of processors {seconds:.1f} s")
    return {"wall": round(wall, 1), "processors": round(seconds, 1)}


def main(words: list[str]) -> int:
    """Time all trees; write the record."""
    short = ""
    if "--install-only" in words[:-1]:
        at = words.index("--install-only")
        short = words[at + 1]
        words = words[:at] + words[at + 2 :]
    if len(words) < 2 or not all("=" in word for word in words[1:]):
        print(__doc__, file=sys.stderr)
        return 2
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    trees = [word.split("=", 1) for word in words[1:]]
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True).stdout
    record: dict[str, Any] = {
        "command": " ".join(
            ["python", "bench/build_times.py", Path(words[0]).name]
            + (["--install-only", short] if short else [])
            + [f"{name}={Path(folder).name}" for name, folder in trees]
        ),
        "date": datetime.date.today().isoformat(),
        "machine": processor_name(read_text("/proc/cpuinfo")),
        "cores": f"2 of {os.cpu_count()}",
        "load": os.getloadavg()[0],
        "compiler": compiler.splitlines()[0],
        "python": platform.python_version(),
        "trees": {},
    }
    for name, folder in trees:
        wanted = dict(list(STEPS.items())[:1]) if name == short else STEPS
        steps = {step: timed(Path(folder), *what) for step, what in wanted.items()}
        record["trees"][name] = {step: found for step, found in steps.items() if found}
    records.write(record, Path(words[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
