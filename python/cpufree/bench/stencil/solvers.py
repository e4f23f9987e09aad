"""The built-in contenders: cpufree, the baselines of the extension, NumPy.

Each does the iterations from the first values on and takes the time of that alone: no set-up, no
transfer of values.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpufree.bench.contenders.extension import load_baselines
from cpufree.bench.stencil.problem import checksum, read_folder
from cpufree.engines import choices
from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.extension import load_for

WAIT_LIMIT = 60.0


class StencilSolver(ABC):
    """What they share: loading values, the answer to a request."""

    name = ""
    maps_start = False
    """Whether the first values are read only where they are looked at."""

    def __init__(self) -> None:
        self.start: NDArray[Any] | None = None
        self.periodic: list[bool] = []
        self.options: dict[str, Any] = {}

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Read the first values and set up on `pes` PEs."""
        self.options = options
        self.start = read_folder(folder, self.maps_start)
        self.periodic = [options["boundary"] == "periodic"] * self.start.ndim
        begin = time.perf_counter()
        facts = self.set_up(self.start)
        return {"pes": options["pes"], "setup_seconds": time.perf_counter() - begin, **facts}

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do the iterations of a request; `check`: return the checksum of the values too."""
        if self.start is None:
            raise InvalidInputError("solve was asked for before load")
        iterations, variant = int(request["iterations"]), str(request.get("variant", "full"))
        seconds, values = self.run(self.start, iterations, variant, bool(request.get("check")))
        answer = {"seconds": seconds, "iterations": iterations, "reason": "CONVERGED_ITS"}
        return {**answer, "checksum": None if values is None else checksum(values)}

    def close(self) -> None:
        """Free what load has set up."""
        self.start = None

    @abstractmethod
    def set_up(self, start: NDArray[Any]) -> dict[str, Any]:
        """Set up; return facts."""

    @abstractmethod
    def run(
        self, start: NDArray[Any], iterations: int, variant: str, check: bool
    ) -> tuple[float, NDArray[Any] | None]:
        """Return seconds, and where asked to the values after N iterations."""


class EngineSolver(StencilSolver):
    """`cpufree`: one kernel for each PE, on GPUs or on the CPU engine."""

    name = "cpufree"

    def set_up(self, start: NDArray[Any]) -> dict[str, Any]:
        """Choose the engine, and see how it divides the grid."""
        pes, gpus = int(self.options["pes"]), self.options.get("gpus")
        engine, blocks = ("cuda_p2p", 0) if gpus else ("cpu_threads", choices.share_of_cores(pes))
        self._how = {
            "engine": engine,
            "pes": pes,
            "blocks": blocks,
            "gpus": list(gpus or ())[:pes],
            "halo_steps": 0,
            "tol": -1.0,
            "check_every": 0,
            "wait_limit": WAIT_LIMIT,
            **(self.options.get("tuning") or {}),
        }
        self._out = np.empty_like(start)
        plan = self._jacobi(start, 1, "full")
        if plan["pes"] != pes:
            raise UnsupportedError(f"the grid has work for {plan['pes']} PEs only")
        kept = "blocks threads pe_grid block_grid halo_steps halo sweep in_fast_memory "
        kept += "boundary_blocks"
        return {
            "engine": engine,
            "staging": "none",
            "plan": {key: plan[key] for key in kept.split()},
        }

    def _jacobi(self, start: NDArray[Any], iterations: int, variant: str) -> dict[str, Any]:
        study = "none" if variant == "full" else variant
        options = {**self._how, "iterations": iterations, "study": study}
        outcome: dict[str, Any] = load_for(self._how["engine"]).jacobi(
            start, None, self._out, self.periodic, options, None
        )
        return outcome

    def run(
        self, start: NDArray[Any], iterations: int, variant: str, check: bool
    ) -> tuple[float, NDArray[Any] | None]:
        """Run the kernels, or for variants those that are compiled without some of it."""
        outcome = self._jacobi(start, iterations, variant)
        return outcome["seconds"], self._out if check else None


class BaselineSolver(StencilSolver):
    """One kind of the extension's baselines."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.name = kind
        self._baseline: Any = None

    def set_up(self, start: NDArray[Any]) -> dict[str, Any]:
        """Lay the slabs out on the GPUs."""
        pes, gpus = int(self.options["pes"]), self.options.get("gpus")
        if not gpus:
            raise UnsupportedError(f"baseline '{self.name}' needs GPUs")
        self._baseline = load_baselines().StencilBaseline(
            self.name,
            list(start.shape),
            self.periodic,
            "double" if start.dtype == np.float64 else "single",
            pes,
            list(gpus)[:pes],
            dict(self.options.get("tuning") or {}),
        )
        facts: dict[str, Any] = self._baseline.facts()
        return facts

    def run(
        self, start: NDArray[Any], iterations: int, variant: str, check: bool
    ) -> tuple[float, NDArray[Any] | None]:
        """Run; the extension takes the time."""
        out = np.empty_like(start) if check else None
        return self.run_into(out, start, iterations, variant), out

    def run_into(
        self, out: NDArray[Any] | None, start: NDArray[Any], iterations: int, variant: str
    ) -> float:
        """Run, and return seconds. Full runs begin with the first values, as all do."""
        first = start if variant == "full" else None
        seconds: float = self._baseline.run(iterations, variant, first, out)
        return seconds

    def close(self) -> None:
        """Free the baseline."""
        super().close()
        self._baseline = None


class NumpySolver(StencilSolver):
    """NumPy slices, in the order of additions of the others. Periodic axes have ghosts."""

    name = "numpy"

    def set_up(self, start: NDArray[Any]) -> dict[str, Any]:
        """Take the values as they are."""
        if int(self.options["pes"]) != 1:
            raise UnsupportedError("NumPy runs on one PE")
        return {
            "versions": {"numpy": np.__version__},
            "kind": "NumPy slices",
            "staging": "none",
            "device": "cpu",
        }

    def run(
        self, start: NDArray[Any], iterations: int, variant: str, check: bool
    ) -> tuple[float, NDArray[Any] | None]:
        """Do the iterations, all planes at once."""
        if variant != "full":
            raise UnsupportedError("NumPy has no variants")
        u = np.pad(start, [(int(wraps), int(wraps)) for wraps in self.periodic])
        inner = (slice(1, -1),) * u.ndim
        sums, pair = np.empty_like(u[inner]), np.empty_like(u[inner])
        weight = u.dtype.type(1.0) / u.dtype.type(2 * u.ndim)
        begin = time.perf_counter()
        for _ in range(iterations):
            self._fill_ghosts(u)
            for axis in range(u.ndim):
                before, after = list(inner), list(inner)
                before[axis], after[axis] = slice(None, -2), slice(2, None)
                np.add(u[tuple(before)], u[tuple(after)], out=pair if axis else sums)
                if axis:
                    sums += pair
            np.multiply(sums, weight, out=u[inner])
        seconds = time.perf_counter() - begin
        own = tuple(slice(1, -1) if wraps else slice(None) for wraps in self.periodic)
        return seconds, u[own] if check else None

    def _fill_ghosts(self, u: NDArray[Any]) -> None:
        for axis, wraps in enumerate(self.periodic):
            if wraps:
                planes = np.moveaxis(u, axis, 0)
                planes[0], planes[-1] = planes[-2], planes[1]
