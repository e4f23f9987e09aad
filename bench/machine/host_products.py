"""Products that the host drives, of PEs that share GPUs, by hardware queues of the driver.

A product (Groves et al. 2020, section V) has a thread of the host and two streams for each PE.
The driver maps streams to CUDA_DEVICE_MAX_CONNECTIONS hardware queues of a GPU, 8 unless it is set
before CUDA starts, and what shares a queue is begun in order, whichever streams it is of. So with
more than four PEs on a GPU a tile that is put may wait for the kernel of another PE, and so may the
PE that the tile is for. Seconds of moving tiles, of the slowest PE, blocking: the median of rounds.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask
from cpufree.engines.gpus import find, select
from cpufree.model.patterns.measure import sharing

RUN_LIMIT = 60.0
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
QUEUES = (8, 32)
PROGRAM = """
import json, sys
from cpufree.extension import load_gpu_core
gpus, rows, puts, repeats = json.loads(sys.argv[1])
pes = len(gpus)
product = load_gpu_core().HostProduct(gpus, rows)
def times(local):
    found = product.multiply(rows, puts, False, local, 3, repeats, 20.0)
    return [found[k * repeats : (k + 1) * repeats] for k in range(2 * pes)]
def median(some):
    return sorted(some)[len(some) // 2]
moves, rounds = times(False)[pes:], times(True)[:pes]
slowest = [max(one) for one in zip(*moves)]
computes = [median(one) for one in rounds]
print(json.dumps({"seconds": median(slowest), "least": min(slowest), "most": max(slowest),
                  "computes": max(computes), "apart": max(computes) - min(computes)}))
"""


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    there = select(range(case.gpus), find(), "--gpus")
    gpus = list(sharing([gpu.index for gpu in there], case.pes))

    def by(puts: bool, queues: int) -> Callable[[], dict[str, Any]]:
        given = json.dumps([gpus, case.rows_of_tile, puts, case.inside])
        words = [sys.executable, "-c", PROGRAM, given]
        return lambda: ask(words, RUN_LIMIT, **{CONNECTIONS: str(queues)})

    yield {
        f"{verb}, {queues} queues": by(verb == "puts", queues)
        for verb in ("gets", "puts")
        for queues in QUEUES
    }


BENCH = Bench(
    name="host-products",
    set_up=set_up,
    axes={"pes": (4, 9, 16), "rows_of_tile": (128, 1024), "gpus": (1,), "inside": (15,)},
    quick={"pes": (4,), "rows_of_tile": (128,), "inside": (3,)},
    unit="µs",
    shown=("least", "computes"),
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
