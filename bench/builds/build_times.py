"""How long the package takes to build, in trees that are scratch copies of it.

Each tree has an environment with what building needs (make .venv/.requirements), and has not been
built. On the first two processors of this process, a tree at a time: `make install`, the same after
an edit of a kernel's header and of the port, and with all kernels where the tree has that. Seconds
are the wall's, `processors` those of the command and all that it starts. Run it with
CCACHE_DISABLE=1 where compilations are cached.
"""

import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main

STEPS = {
    "install": ("", "install"),
    "edit cpufree/solvers/cg.hpp": ("cpufree/solvers/cg.hpp", "install"),
    "edit cpufree/device/port.hpp": ("cpufree/device/port.hpp", "install"),
    "all kernels": ("", ".venv/.installed-all"),
}


def timed(tree: Path, edited: str, target: str) -> dict[str, float]:
    """Return the seconds of a target after an edit."""
    if edited:
        time.sleep(1.0)  # later than the stamp of the build before, on any file system
        (tree / edited).touch()
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(["make", target], cwd=tree, capture_output=True, text=True)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"make {target} in {tree.name} failed: {done.stderr[-400:]}")
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"seconds": wall, "processors": seconds}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    (edited, target), calls = case.step, dict[str, Any]()
    for name, _, folder in (word.partition("=") for word in case.trees.split(",")):
        tree = Path(folder)
        if "/" not in target or Path(target).name in (tree / "Makefile").read_text():
            calls[name] = partial(timed, tree, edited, target)
    yield calls


BENCH = Bench(
    name="build-times",
    set_up=set_up,
    axes={"step": STEPS, "trees": ("before=../before,after=../after",)},
    ours="after",
    unit="s",
    shown=("processors",),
    cold=True,
    ordered=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
