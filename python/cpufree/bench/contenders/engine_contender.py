"""The contender `cpufree`: a persistent kernel per PE, on GPUs or on the CPU engine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.bench.core.problem_folder import Arrays, read_arrays
from cpufree.engines import choices
from cpufree.errors import InvalidInputError
from cpufree.extension import load_for

WAIT_LIMIT = 60.0


class EngineContender:
    """Solves with the compiled core; `seconds` are those of the kernels, launch to end.

    They hold what the engine does at the end of each solve: the product for b - A x. Variants, and
    the solve that tells its split, are kernels of their own (studies), which are compiled for
    double precision without a preconditioner.
    """

    name = "cpufree"

    def __init__(self) -> None:
        self._system: Any = None
        self._arrays: Arrays | None = None
        self._pc = "none"
        self._tells_split = False

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Lay the matrix out on `pes` GPUs, those of `gpus`, or on the CPU's cores where None."""
        a = read_arrays(folder)
        pes, gpus = int(options["pes"]), options.get("gpus")
        engine, blocks = ("cuda_p2p", 0) if gpus else ("cpu_threads", choices.share_of_cores(pes))
        begin = time.perf_counter()
        part, order = (None if one is None else np.array(one) for one in (a.part, a.order))
        self._system = load_for(engine).System(
            *(np.array(a.indptr), np.array(a.indices), np.array(a.data), part, order),
            pes=pes,
            blocks=blocks,
            engine=engine,
            gpus=list(gpus or ())[:pes],
            tuning=dict(options.get("tuning") or {}),
        )
        seconds = time.perf_counter() - begin
        self._arrays, self._pc = a, str(options["preconditioner"])
        self._tells_split = self._pc == "none" and a.data.dtype == np.float64
        plan: dict[str, Any] = self._system.plan()
        kept = "blocks threads halo block_halo halo_values imbalance matrix_bytes "
        kept += "resident_vectors resident_matrix"
        return {
            "engine": engine,
            "pes": pes,
            "staging": "none",
            "spmv": "warp slices" if gpus else "slices of 8 rows",
            "tells_split": self._tells_split,
            "setup_seconds": seconds,
            "plan": {key: plan[key] for key in kept.split()},
        }

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve; with `iterations` given the tolerance is 0, which only rounding errors meet.

        Of a variant, x and residual mean nothing, and `iterations` is needed.
        """
        if self._arrays is None:
            raise InvalidInputError("solve was asked for before load")
        variant, exact = request.get("variant", "full"), request.get("iterations")
        study = "split" if request.get("split") and self._tells_split else "none"
        if variant != "full":
            study = variant
            if not exact:
                raise InvalidInputError(
                    f"the variant {variant} has no residual that could end it: give iterations"
                )
        options = {
            "method": request["method"],
            "pc": self._pc,
            "rtol": 0.0 if exact else float(request["rtol"]),
            "atol": 0.0,
            "maxiter": int(exact or request["max_iterations"]),
            "wait_limit": WAIT_LIMIT,
            "study": study,
        }
        b = np.array(self._arrays.b)
        outcome = self._system.solve(b, None, None, options, None)
        if request.get("save"):
            np.save(request["save"], outcome["x"])
        answer = {key: outcome[key] for key in ("seconds", "iterations", "reason", "residual")}
        if exact and answer["iterations"] == exact:
            answer["reason"] = "CONVERGED_ITS"
        if outcome["handed_over_at"] >= 0:
            answer["note"] = f"prcg took over at iteration {outcome['handed_over_at']}"
        if variant != "full":
            answer["residual"] = None
        return {**answer, "split": outcome["split"]}

    def close(self) -> None:
        """Free the system."""
        self._system = self._arrays = None
