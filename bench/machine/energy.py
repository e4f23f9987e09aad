"""Joules that GPUs take for an iteration of conjugate gradients, by NVML's counters, by contender.

Each contender solves again and again for some seconds, between two ticks of the counters: with few
iterations, then with many. What counts is the difference of the two, so that what a call takes
besides iterations is left out. `idle`: what the GPU takes in the time of an iteration of cpufree
while it does nothing. Processors of the host are not counted, though baselines keep them busy.

Without host-driven baselines in the build nothing is measured, unless --contenders says who.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cpufree.bench.cg.problems import Problem, cases, default_cache
from cpufree.bench.contenders.registry import find as find_contenders
from cpufree.bench.contenders.registry import make
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.energy import Meter
from cpufree.engines.gpus import find, select
from cpufree.errors import CpufreeError, UnsupportedError

CONTENDERS = ("cpufree", "single_gpu", "nccl_graph", "graph_while", "nccl", "peer_copy")
FEW = 100
"""Iterations of the shorter solves."""


def wanted(case: Case) -> list[str]:
    """Return those to be measured; `without` of the record has the others, and why.

    Raises:
        UnsupportedError: one that was asked for cannot run here, or no baseline at all.
    """
    known = find_contenders()
    asked = [n for n in CONTENDERS if case.asks(n) and (case.pes == 1 or n != "single_gpu")]
    without = {name: known[name].why_not for name in asked if known[name].why_not}
    left = [name for name in asked if name not in without]
    if without and (case.contenders or left == ["cpufree"]):
        names = {why: [n for n in without if without[n] == why] for why in without.values()}
        why = "; ".join(f"{', '.join(several)}: {text}" for text, several in names.items())
        raise UnsupportedError(f"{why} (or measure others: --contenders cpufree idle)")
    case.facts.update(without=without)
    return left


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    names = wanted(case)
    there = select(range(case.pes), find(), "--pes")
    meter, (source, *_) = Meter([gpu.uuid for gpu in there]), cases([case.matrix])
    problem = Problem(source, "double", default_cache())
    case.facts.update(rows=problem.facts["rows"], nonzeros=problem.facts["nnz"])
    folder, apiece = problem.for_pes(case.pes), dict[str, float]()
    loaded: dict[str, Any] = {}

    def one(name: str, iterations: int) -> tuple[float, float]:
        """Return the joules and the seconds of a solve."""
        asked = {"method": case.method, "iterations": iterations, "max_iterations": 10**6}

        def solve() -> None:
            done = loaded[name].solve(asked)["iterations"]
            if done != iterations:
                raise CpufreeError(f"{name} ended after {done} of {iterations} iterations")

        solve()  # warms up
        used = meter.used(solve, case.watched)
        return used.joules / used.calls, used.seconds / used.calls

    def using(name: str) -> Callable[[], dict[str, Any]]:
        def use() -> dict[str, Any]:
            if name not in loaded:
                gpus = [gpu.index for gpu in there]
                loaded[name] = make(name)
                loaded[name].load(folder, {"pes": case.pes, "gpus": gpus, "preconditioner": "none"})
            few, many = one(name, FEW), one(name, case.iterations)
            more = case.iterations - FEW
            joules, seconds = (many[0] - few[0]) / more, (many[1] - few[1]) / more
            if seconds <= 0:
                raise CpufreeError(f"{name}: ask for more than {case.iterations} iterations")
            apiece[name] = seconds
            return {"joules": joules, "watts": joules / seconds, "seconds": seconds}

        return use

    def idle() -> dict[str, Any]:
        if "cpufree" not in apiece:
            using("cpufree")()
        used = meter.used(lambda: time.sleep(0.1), case.watched)
        watts = used.joules / used.seconds
        return {"watts": watts, "joules": watts * apiece["cpufree"], "seconds": 0.0}

    yield {**{name: using(name) for name in names}, "idle": idle}
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
        "iterations": (500,),  # solves that reach rounding errors end
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
