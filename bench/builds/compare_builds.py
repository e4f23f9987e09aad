"""Two builds of cpufree against each other, matrix by matrix, alternately on one machine.

--base and --new are folders for PYTHONPATH, such as build/gpu/python of two trees. Each build
solves in a process of its own, and both get the same matrix. Seconds of an iteration are the slope
of the kernels' time between two numbers of iterations, the least of two, so that launch and start
drop out. `whole_seconds`: the kernel of the longer solve; `setup_seconds`: the least of some
Solvers for the matrix; `bits`: a digest of the solution.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

FEW, MANY, ROUNDS = 50, 250, 2
SETUPS = 5
CPU_SYSTEMS = (
    *("gen:poisson3d?nx=100,ny=100,nz=100", "gen:poisson2d?nx=1024,ny=1024", "gen:thermal2d?m=700"),
    *("gen:flange_hex?r_out=40,t=8,pipe=20", "gen:ecology2?m=600", "gen:heart?m=80,mesh=bcc"),
)


def work() -> None:
    """Answer the orders on standard input, in a process that has one of the builds."""
    import scipy.sparse as sp

    import cpufree

    file, solver, setup = "", None, 0.0
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["file"] != file:
                file = order["file"]
                with np.load(file) as parts:
                    A = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]))
                how = {"engine": order["engine"], "pes": order["pes"], "pc": order["pc"]}
                setup = least_setup(A, how)
                solver = cpufree.Solver(A, **how)
            answer = measured(solver, order["method"], order["columns"])
            answer["setup_seconds"] = setup
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def least_setup(A: Any, how: dict[str, Any]) -> float:
    """Return the least seconds of a few set-ups: after the first, memory and threads are there."""
    import cpufree

    seconds = []
    for _ in range(SETUPS):
        with cpufree.Solver(A, **how) as solver:
            seconds.append(float(solver.setup_seconds))
    return min(seconds)


def measured(solver: Any, method: str, columns: int) -> dict[str, Any]:
    """Return the seconds of an iteration, and a digest of the solution."""
    b = np.random.default_rng(1).standard_normal((solver.shape[0], 8))
    b = np.ascontiguousarray(b[:, 0] if columns == 1 else b[:, :columns])
    more = {} if columns == 1 else {"columns": "together"}
    best: dict[int, float] = {}
    for most in (FEW, MANY) * ROUNDS:
        result = solver.solve(b, maxiter=most, rtol=0.0, method=method, **more)
        best[most] = min(result.timings["kernel"], best.get(most, np.inf))
    done = [result.iterations] if columns == 1 else [one.iterations for one in result.columns]
    if min(done) < MANY:
        raise RuntimeError("rounding errors end the solve before")
    digest = hashlib.sha256(np.ascontiguousarray(result.x).tobytes()).hexdigest()
    seconds = (best[MANY] - best[FEW]) / (MANY - FEW)
    return {"seconds": seconds, "whole_seconds": best[MANY], "bits": digest[:12]}


@cache
def process(path: str) -> Any:
    """Return the process of a build, which ends with this one."""
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_MODULE_LOADING": "EAGER"}
    command = [sys.executable, __file__, "--work"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)


def ask(path: str, **order: Any) -> dict[str, Any]:
    """Return the answer of a build."""
    there = process(path)
    there.stdin.write(json.dumps(order) + "\n")
    there.stdin.flush()
    answer: dict[str, Any] = json.loads(there.stdout.readline() or '{"error": "it has ended"}')
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer


def set_up(case: Any) -> Iterator[Mapping[str, Any]]:
    from cpufree.bench.declared.solving import matrix

    A = matrix(case)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "matrix.npz"
        np.savez(file, data=A.data, indices=A.indices, indptr=A.indptr)
        names = ("engine", "pes", "pc", "method", "columns")
        order = {"file": str(file), **{name: case.values[name] for name in names}}
        yield {which: partial(ask, case.values[which], **order) for which in ("new", "base")}


def declaration() -> Any:
    """Return the benchmark; a process that has an older build needs none of it."""
    from cpufree.bench.declared import Bench
    from cpufree.generate.suites import suite

    return Bench(
        name="compare-builds",
        set_up=set_up,
        axes={
            "matrix": {e.name: f"gen:{e.spec}" for e in sorted(suite("paper18-small"), key=_size)},
            "method": ("prcg", "cg", "pipecg"),
            "columns": (1,),
            "pc": ("none",),
            "engine": ("cuda_p2p",),
            "pes": (1,),
            "base": ("build/base/python",),
            "new": ("build/gpu/python",),
        },
        cpu={"matrix": CPU_SYSTEMS, "engine": ("cpu_threads",)},
        quick={"matrix": {"poisson2d": "gen:poisson2d?nx=200,ny=200"}},
        ours="new",
        unit="µs",
        shown=("whole_seconds", "setup_seconds", "bits"),
        repeats=5,
    )


def _size(entry: Any) -> int:
    return int(entry.nnz)


if sys.argv[1:2] != ["--work"]:
    BENCH = declaration()

if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work()
    else:
        from cpufree.bench.declared.command import main

        raise SystemExit(main(BENCH, __doc__))
