"""NPBench's kernels as @cpufree.program: which run, and why others do not.

Usage: python bench/npbench_programs.py [--out FILE.json]. The kernels are those that the tests of
DaCe's programs have, rewritten after NPBench's list; their functions are run as they are, with
the sizes of their arguments for DaCe's symbols, and compared with plain Python.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib
import json
import platform
import shlex
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python/support/dace"))

import cpufree

on_grids: Any = importlib.import_module("dace_kernels")
algebra: Any = importlib.import_module("dace_algebra_cases")
plain: Any = importlib.import_module("dace_check").plain
KERNELS = {**on_grids.RUNS, **algebra.RUNS, **algebra.REFUSED}
PES = 2


class Ours:
    """A kernel whose function is run by cpufree."""

    def __init__(self, kernel: Any) -> None:
        self.f = self
        self.program = cpufree.program(kernel.f)
        self.__globals__, self.__annotations__ = kernel.f.__globals__, kernel.f.__annotations__

    def __call__(self, *arguments: Any) -> Any:
        """Run as a program."""
        return self.program.run(arguments, engine="cpu_threads", pes=PES)


def outcome(kernel: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Return how a kernel fares: bits, rounded, refused with the reason, or wrong."""
    theirs = Ours(kernel)
    wanted, ours = copy.deepcopy(arguments), copy.deepcopy(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = plain(kernel, wanted)
            found = plain(theirs, ours)
    except cpufree.CpufreeError as error:
        place, _, reason = str(error).splitlines()[0].partition(": ")
        return {"outcome": "refused", "reason": reason or place}
    pairs = [*zip(ours, wanted, strict=True)]
    if expected is not None:
        pairs.append((found, expected))
    if all(np.array_equal(mine, other) for mine, other in pairs):
        return {"outcome": "bits", "pes": theirs.program.pes}
    near = all(np.allclose(mine, other, rtol=1e-11, atol=1e-12) for mine, other in pairs)
    return {"outcome": "rounded" if near else "wrong", "pes": theirs.program.pes}


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found = {}
    for name, (kernel, arguments, *_) in KERNELS.items():
        found[name] = outcome(kernel, arguments)
        print(f"{name:22} {found[name]}", flush=True)
    counts = Counter(one["outcome"] for one in found.values())
    print(dict(counts))
    record = {
        "command": shlex.join(["python", "bench/npbench_programs.py", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "machine": platform.processor() or platform.machine(),
        "numpy": np.__version__,
        "pes": PES,
        "kernels": found,
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
