"""Empty kernels by ordinary launches, in a graph, and by programmatic launches.

After LeBeane et al. 2017, figure 1: seconds from the first call until the last of N kernels has
ended, median and 99th percentile of a thousand.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask, compiled

SOURCE = Path(__file__).with_suffix(".cu")
RUN_LIMIT = 120.0


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    program = compiled(SOURCE, case.architecture)

    def ways(name: str) -> Callable[[], dict[str, Any]]:
        return lambda: ask([program, str(case.kernels), name, str(case.inside)], RUN_LIMIT)

    yield {name: ways(name) for name in ("stream", "graph", "programmatic")}


BENCH = Bench(
    name="launches",
    set_up=set_up,
    axes={
        "kernels": (1, 2, 4, 8, 16, 32, 64, 128, 256),
        "inside": (1000,),
        "architecture": ("sm_90",),
    },
    quick={"kernels": (1, 8)},
    ours="graph",
    unit="µs",
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
