"""A rank of a contender over NVSHMEM, with a stand-in for the extension.

With "stencil" as its first argument it is one of the stencils' nvshmem. It does what options say:
"at_load" and "at_solve" are lists by rank: "refuse" (unsupported), "fail", "crash", "hang", or "".
"""

from __future__ import annotations

import os
import sys
import time
from types import ModuleType
from typing import Any

import numpy as np

from cpufree.bench.contenders import nvshmem_rank
from cpufree.errors import EngineError, UnsupportedError


def behave(how: list[str], rank: int) -> None:
    """Do what the option says of this rank."""
    what = how[rank] if how else ""
    if what == "refuse":
        raise UnsupportedError("this cannot be done")
    if what == "fail":
        raise EngineError("the GPU is on fire")
    if what == "crash":
        os.write(2, b"NVSHMEM: aborting\n")
        os._exit(255)
    if what == "hang":
        time.sleep(600)


class Baseline:
    """Takes what the extension's takes; x is 1 + rank in every row."""

    def __init__(self, *arguments: Any) -> None:
        self.pes, self.gpus, _, self.options = arguments[6:]
        behave(self.options.get("at_load", []), self.options["rank"])

    def facts(self) -> dict[str, Any]:
        """Return what was asked for, and whose process this is."""
        kept = {name: self.options[name] for name in ("nvshmem_id", "nvshmem_library", "rank")}
        heap = os.environ["NVSHMEM_SYMMETRIC_SIZE"]
        return {"gpus": self.gpus, "pid": os.getpid(), "heap": int(heap), **kept}

    def solve(self, *arguments: Any) -> dict[str, Any]:
        """Solve by decree."""
        if arguments[5] != "full":
            raise UnsupportedError("only the whole")
        behave(self.options.get("at_solve", []), self.options["rank"])
        arguments[6][:] = 1.0 + self.options["rank"]
        print("libraries print what they like")
        answer = {"seconds": 0.25, "iterations": arguments[3], "residual": 0.5}
        return {**answer, "reason": "CONVERGED_ITS"}


class StencilBaseline:
    """Takes what the extension's takes; a value becomes 1 + rank in the planes of a PE."""

    def __init__(self, *arguments: Any) -> None:
        _, self.shape, _, _, self.pes, self.gpus, self.options = arguments
        behave(self.options.get("at_load", []), self.options["rank"])

    def facts(self) -> dict[str, Any]:
        """Return what was asked for, and whose process this is."""
        heap = os.environ["NVSHMEM_SYMMETRIC_SIZE"]
        return {"gpus": self.gpus, "pid": os.getpid(), "heap": int(heap), **self.options}

    def run(self, iterations: int, variant: str, start: Any, out: Any) -> float:
        """Do iterations by decree, from the first values on where the run is a full one."""
        assert (start is not None) == (variant == "full")
        behave(self.options.get("at_solve", []), self.options["rank"])
        if out is not None:
            rank, planes = self.options["rank"], self.shape[0] - 2
            out[1 + planes * rank // self.pes : 1 + planes * (rank + 1) // self.pes] = 1.0 + rank
        return 0.25


def version(library: str) -> str:
    """Return a version, unless the library says otherwise."""
    if library == "missing":
        raise UnsupportedError("NVSHMEM was not found; pip install nvidia-nvshmem-cu13")
    if library == "broken":
        os.write(2, b"a constructor crashed\n")
        os._exit(139)
    if library == "slow":
        time.sleep(600)
    return "3.4.5"


def make_id(library: str) -> str:
    """Return an id that says whose it is."""
    return f"id of {os.getpid()}"


module = ModuleType("cpufree._baselines")
module.Baseline = Baseline  # type: ignore[attr-defined]
module.StencilBaseline = StencilBaseline  # type: ignore[attr-defined]
module.nvshmem_version = version  # type: ignore[attr-defined]
module.nvshmem_id = make_id  # type: ignore[attr-defined]
sys.modules["cpufree._baselines"] = module
assert np.zeros(1).size == 1  # loaded before other ranks are waited for
if sys.argv[1] == "stencil":
    from cpufree.bench.stencil.nvshmem_rank import RankSolver

    sys.exit(nvshmem_rank.main(sys.argv[2:], RankSolver))
sys.exit(nvshmem_rank.main(sys.argv[1:]))
