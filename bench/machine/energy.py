"""Joules that GPUs take for an iteration of conjugate gradients, by NVML's counters, by contender.

Each contender solves again and again for some seconds, between two ticks of the counters. `idle`:
what the GPU takes in the time of an iteration of cpufree while it does nothing. Processors of the
host are not counted, though baselines keep them busy.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cpufree.bench.cg.problems import Problem, cases, default_cache
from cpufree.bench.contenders.registry import make
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.energy import Meter

CONTENDERS = ("cpufree", "single_gpu", "nccl_graph", "graph_while", "nccl", "peer_copy")


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    gpus = list(range(case.pes))
    meter, (source, *_) = Meter(gpus), cases([case.matrix])
    problem = Problem(source, "double", default_cache())
    case.facts.update(rows=problem.facts["rows"], nonzeros=problem.facts["nnz"])
    folder, loaded, apiece = problem.for_pes(case.pes), {}, {}

    def using(name: str) -> Callable[[], dict[str, Any]]:
        def use() -> dict[str, Any]:
            if name not in loaded:
                loaded[name] = make(name)
                loaded[name].load(folder, {"pes": case.pes, "gpus": gpus, "preconditioner": "none"})
            asked = {"method": case.method, "iterations": case.iterations, "max_iterations": 10**6}
            loaded[name].solve(asked)  # warms up
            used = meter.used(lambda: loaded[name].solve(asked), case.watched)
            count = used.calls * case.iterations
            apiece[name] = used.seconds / count
            return {
                "joules": used.joules / count,
                "watts": used.joules / used.seconds,
                "seconds": used.seconds / count,
            }

        return use

    def idle() -> dict[str, Any]:
        if "cpufree" not in apiece:
            using("cpufree")()
        used = meter.used(lambda: time.sleep(0.1), case.watched)
        watts = used.joules / used.seconds
        return {"watts": watts, "joules": watts * apiece["cpufree"], "seconds": 0.0}

    wanted = [name for name in CONTENDERS if case.pes == 1 or name != "single_gpu"]
    yield {**{name: using(name) for name in wanted if case.asks(name)}, "idle": idle}
    for contender in loaded.values():
        contender.close()


BENCH = Bench(
    name="energy",
    set_up=set_up,
    axes={
        "matrix": (
            "gen:poisson3d?nx=128,ny=128,nz=128",
            "suite:paper18/hood-like",
            "suite:paper18/bmwcra_1-like",
        ),
        "pes": (1,),
        "method": ("pipecg",),
        "iterations": (100,),
        "watched": (2.0,),
    },
    quick={"matrix": ("gen:poisson2d?nx=300,ny=300",), "watched": (0.5,)},
    ours="cpufree",
    value="joules",
    unit="mJ",
    cold=True,
    repeats=2,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
