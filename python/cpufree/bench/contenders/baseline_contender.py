"""The contenders of the compiled extension `_baselines`: solvers that the CPU drives."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.bench.contenders.extension import load_baselines
from cpufree.bench.core.problem_folder import read_arrays
from cpufree.errors import InvalidInputError, UnsupportedError


class BaselineContender:
    """One kind of the extension's baselines."""

    def __init__(self, kind: str) -> None:
        self.name = kind
        self._baseline: Any = None
        self._b: Any = None

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Set the baseline up on the GPUs of `gpus`, the first `pes` of them."""
        module = load_baselines()
        pes, gpus = int(options["pes"]), options.get("gpus")
        if not gpus:
            raise UnsupportedError(f"baseline '{self.name}' needs GPUs")
        a = read_arrays(folder)
        begin = time.perf_counter()
        self._baseline = module.Baseline(
            self.name,
            np.array(a.indptr),
            np.array(a.indices),
            np.array(a.data),
            None if a.part is None else np.array(a.part),
            None if a.order is None else np.array(a.order),
            pes,
            list(gpus)[:pes],
            str(options["preconditioner"]),
            dict(options.get("tuning") or {}),
        )
        seconds = time.perf_counter() - begin
        self._b = np.array(a.b)
        return {"kind": self.name, "pes": pes, "setup_seconds": seconds, **self._baseline.facts()}

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve; the extension takes the time."""
        if self._baseline is None:
            raise InvalidInputError("solve was asked for before load")
        exact = request.get("iterations")
        x = np.empty_like(self._b)
        answer: dict[str, Any] = self._baseline.solve(
            self._b,
            request["method"],
            float(request.get("rtol") or 0.0),
            int(request["max_iterations"] if exact is None else exact),
            exact is not None,
            request.get("variant", "full"),
            x,
        )
        if request.get("save"):
            self._keep(Path(request["save"]), x)
        return {"split": None, **answer}

    def _keep(self, file: Path, x: Any) -> None:
        np.save(file, x)

    def close(self) -> None:
        """Free the baseline."""
        self._baseline = self._b = None
