"""What ways of sharing rows among PEs cost: equal rows, equal nonzeros in consecutive rows, METIS.

Counted, not timed: largest over mean nonzeros of a PE, and the values that PEs receive in a product
over the rows. A PE with twice the mean nonzeros makes all others wait for it in every iteration.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.solving import matrix
from cpufree.generate.suites import suite
from cpufree.matrix.load import as_csr
from cpufree.partition.methods import partition


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    A = as_csr(matrix(case))
    case.facts.update(rows=A.shape[0], nonzeros=A.nnz)

    def shared(method: str) -> Callable[[], dict[str, Any]]:
        def share() -> dict[str, Any]:
            begin = time.perf_counter()
            cost = partition(A, case.pes, method).report
            seconds, halo = time.perf_counter() - begin, cost.halo_values / A.shape[0]
            return {"imbalance": cost.imbalance, "halo": halo, "seconds": seconds}

        return share

    yield {method: shared(method) for method in ("rows", "contiguous", "metis")}


BENCH = Bench(
    name="partitions",
    set_up=set_up,
    axes={
        "matrix": {one.name: f"gen:{one.spec}" for one in suite("paper18-small")},
        "pes": (8,),
    },
    quick={"matrix": ("gen:poisson2d?nx=40,ny=40",)},
    ours="contiguous",
    value="imbalance",
    unit="×",
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
