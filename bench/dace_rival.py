"""Programs that DaCe compiles itself, for CPUs: opponents of bench/programs.py."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python/support"))


def dace_rivals() -> dict[str, Callable[..., Any]]:
    """Return programs by name, with the arguments of ours; {}: DaCe is not installed.

    DaCe's automatic optimization and its own code generator, the C++ compiler at -O3. The results
    are the same to rounding: DaCe compiles with -ffast-math unless it is told otherwise.
    """
    if importlib.util.find_spec("dace") is None:
        return {}
    dace: Any = importlib.import_module("dace")
    kernels: Any = importlib.import_module("dace_kernels")
    dace.Config.set("default_build_folder", value=tempfile.mkdtemp(prefix="dace-"))

    def compiled(name: str) -> Any:
        optimize = importlib.import_module("dace.transformation.auto.auto_optimize")
        sdfg = getattr(kernels, name).to_sdfg(simplify=True)
        optimize.auto_optimize(sdfg, dace.DeviceType.CPU)
        return sdfg.compile()

    def jacobi(name: str, sizes: Callable[[Any], dict[str, int]]) -> Callable[..., Any]:
        made: list[Any] = []

        def call(a: Any, b: Any, steps: int) -> None:
            made[:] = made or [compiled(name)]
            made[0](A=a, B=b, steps=np.int64(steps + 1), **sizes(a))  # it counts from 1

        return call

    fdtd: list[Any] = []

    def fdtd_2d(ex: Any, ey: Any, hz: Any, pulse: Any, steps: int) -> None:
        fdtd[:] = fdtd or [compiled("fdtd_2d")]
        n, m = ex.shape
        fdtd[0](
            ex=ex, ey=ey, hz=hz, source=pulse, steps=np.int64(steps), N=n, M=m, K=pulse.shape[0]
        )

    return {
        "jacobi_1d": jacobi("jacobi_1d", lambda a: {"N": a.shape[0]}),
        "jacobi_2d": jacobi("jacobi_2d", lambda a: {"N": a.shape[0], "M": a.shape[1]}),
        "fdtd_2d": fdtd_2d,
    }
