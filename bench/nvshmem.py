"""One process for all GPUs, a process for each, and nodes of half the processes.

Every call is a new process: it solves by each method, and returns how long it took from its
launch to the first iteration. Seconds are those of an iteration of prcg, the least of its solves.
`--engine cpu_processes` does the same on cores. Nodes need NVSHMEM (docs/distributed.md).
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import cpufree
from cpufree import distributed as ranks
from cpufree.bench.declared import Bench, Call, Case

METHODS = ("cg", "pipecg", "prcg")
LIMIT = 300.0  # seconds of a call


def worker(asked: dict[str, Any]) -> dict[str, Any]:
    """Solve by each method; return the least seconds of an iteration, and those of the start."""
    start = {"imports": time.time() - asked["launched"]}
    A = cpufree.load_matrix(asked["matrix"])
    start["matrix"] = time.time() - asked["launched"]
    alone = asked["engine"] in ("cuda_p2p", "cpu_threads")
    pes: Any = asked["pes"] if alone else "auto"
    found: dict[str, Any] = {}
    with cpufree.Solver(A, engine=asked["engine"], pes=pes, pc="jacobi") as solver:
        start["set-up"] = time.time() - asked["launched"]
        b = np.ones(solver.shape[0])
        solver.solve(b, rtol=0.0, maxiter=1)
        start["first iteration"] = time.time() - asked["launched"]
        for method in METHODS:
            how = {"method": method, "rtol": 0.0, "maxiter": asked["iterations"]}
            results = [solver.solve(b, wait_limit=20.0, **how) for _ in range(1 + asked["solves"])]
            found[f"{method}, µs"] = 1e6 * min(r.timings["per_iteration"] for r in results[1:])
        found["nodes"] = solver.plan["nodes"]
    team = ranks.current()
    if team is not None:  # the slowest rank counts
        everybody = team.tell_all("times of the start", start)
        start = {name: max(one[name] for one in everybody) for name in start}
    return {"seconds": found["prcg, µs"] / 1e6, **found, **{f"{k}, s": v for k, v in start.items()}}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    from cpufree.bench.declared.process import ask

    one = "cuda_p2p" if case.engine == "nvshmem" else "cpu_threads"

    def call(engine: str, count: int, environment: dict[str, str]) -> dict[str, Any]:
        asked = {**case.values, "engine": engine, "launched": time.time()}
        words = [sys.executable, __file__, "--worker", json.dumps(asked)]
        if count > 1 or engine == case.engine:
            words = [sys.executable, "-m", "cpufree", "run", "-n", str(count), *words]
        return ask(words, LIMIT, **environment)

    calls: dict[str, tuple[str, int, dict[str, str]]] = {
        "processes": (case.engine, case.pes, {}),
        "one process": (one, 1, {}),
    }
    if case.pes > 1:
        environment = {"CPUFREE_NODE_SIZE": str(-(-case.pes // 2))}
        calls["nodes"] = (case.engine, case.pes, environment)
    yield {name: partial(call, *of) for name, of in calls.items()}


BENCH = Bench(
    name="nvshmem",
    set_up=set_up,
    axes={
        "matrix": ("gen:poisson2d?nx=512,ny=512", "gen:poisson3d?nx=128,ny=128,nz=128"),
        "engine": ("nvshmem",),
        "pes": (2,),
        "iterations": (2000,),
        "solves": (9,),
    },
    quick={
        "matrix": ("gen:poisson2d?nx=48,ny=48",),
        "engine": ("cpu_processes",),
        "iterations": (40,),
        "solves": (2,),
    },
    ours="processes",
    unit="µs",
    shown=("cg, µs", "pipecg, µs", "first iteration, s"),
    repeats=5,
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        answer = worker(json.loads(sys.argv[2]))
        here = ranks.current()
        if here is None or here.rank == 0:
            print(json.dumps(answer), flush=True)
    else:
        from cpufree.bench.declared.command import main

        raise SystemExit(main(BENCH, __doc__))
