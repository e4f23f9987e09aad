"""Bytes that an iteration moves between a GPU and its memory, counted by the hardware.

Solves of two lengths run under the profiler `ncu`, and the difference is taken, which is free of
what a solve moves once. `over predicted`: over the matrix in the format in use, once, and the
passes over vectors that are not on chip (heads of cpufree/solvers/*cg.hpp). The second cache serves
a part of that, so the memory moves less where a matrix is small.
"""

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import cpufree
from cpufree.bench.core.work import PLAIN_PASSES
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import run

SHORT, LONG = 20, 60  # iterations
LIMIT = 180.0  # seconds for one run under the profiler
METRICS = {
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
    "second_cache": "lts__t_bytes.sum",
}
# Passes over the private vectors, in the order in which they stay on chip (each_private).
PRIVATE_PASSES = (3, 2, 2)  # r, s, x


def predicted_bytes(rows: int, plan: dict[str, Any], method: str) -> float:
    """Return the bytes of an iteration: the matrix once, and what is left of the passes."""
    on_chip = sum(PRIVATE_PASSES[: plan["resident_vectors"]])
    matrix = 0.0 if plan["resident_matrix"] else float(plan["matrix_bytes"])
    return matrix + 8.0 * rows * (PLAIN_PASSES[method] - on_chip)


def parse_counts(text: str) -> dict[str, float]:
    """Return the counts of the solver's kernel from what ncu printed as CSV.

    Raises ValueError where there are none, or those of several kernels.
    """
    # The table, behind what others have printed.
    lines = text[text.find('"ID","') :].splitlines() if '"ID","' in text else []
    found: dict[str, float] = {}
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        for name, metric in METRICS.items():
            if row["Metric Name"] == metric:
                if name in found:
                    raise ValueError("ncu saw more than one kernel of the solver")
                found[name] = float(row["Metric Value"].replace(",", ""))
    if found.keys() != METRICS.keys():
        raise ValueError("ncu counted nothing: " + " ".join(text.split()[-40:]))
    return found


def worker(source: str, method: str, iterations: int) -> dict[str, Any]:
    """Solve once, which the profiler watches; return the plan."""
    A = cpufree.load_matrix(source)
    b = np.random.default_rng(1).standard_normal(A.shape[0])
    with cpufree.Solver(A, engine="cuda_p2p", pes=1, pc="none") as solver:
        result = solver.solve(b, method=method, rtol=0.0, maxiter=iterations, wait_limit=30.0)
        if result.iterations != iterations:
            raise RuntimeError(f"the solve ended after {result.iterations} of {iterations}")
        return {"rows": A.shape[0], "plan": dict(solver.plan)}


def counted(case: Case, method: str) -> dict[str, Any]:
    """Return the bytes of an iteration, as counted and as predicted."""
    profiler = ["ncu", "--csv", "--print-units", "base", "--clock-control", "none"]
    profiler += ["--kernel-name", "regex:^solve$", "--metrics", ",".join(METRICS.values())]
    words = [*profiler, sys.executable, __file__, "--worker", case.matrix, method]
    short, long = (run([*words, str(count)], LIMIT) for count in (SHORT, LONG))
    facts = json.loads([line for line in long.splitlines() if line.startswith('{"rows"')][-1])
    few, many = parse_counts(short), parse_counts(long)
    each = {name: (many[name] - few[name]) / (LONG - SHORT) for name in METRICS}
    predicted = predicted_bytes(facts["rows"], facts["plan"], method)
    memory = each["read"] + each["written"]
    return {"bytes": memory, **each, "over predicted": memory / predicted, "plan": facts["plan"]}


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    yield {method: partial(counted, case, method) for method in ("cg", "prcg")}


BENCH = Bench(
    name="traffic",
    set_up=set_up,
    axes={
        "matrix": (
            *("gen:poisson3d?nx=128,ny=128,nz=128", "gen:poisson3d?nx=200,ny=200,nz=200"),
            *("gen:geomech_tet?shape=48x48x48,seed=1", "gen:flange_hex?r_out=64,t=9,pipe=24"),
        ),
    },
    value="bytes",
    unit="MB",
    shown=("second_cache", "over predicted"),
    repeats=1,
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(worker(sys.argv[2], sys.argv[3], int(sys.argv[4])), default=str))
    else:
        raise SystemExit(main(BENCH, __doc__))
