"""Sums of one value within a kernel: by NVSHMEM, called by thread, warp or block, and by packets.

After Ismayilov 2023, section 3.3, and Trotter et al. 2025. `barrier`, `sync`: NVSHMEM's barriers of
all PEs, without a sum. `put`, `put_quiet`, `quiet` (Groves et al. 2020): a put of one value by a
thread into the next PE's memory until the call returns, with a quiet behind it, and a quiet that
has nothing to wait for. One process for each GPU; the slowest counts; sums want two, on one GPU
puts stay in its own memory. Waits within NVSHMEM are bounded by the limit of the process alone,
RUN_LIMIT.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cpufree.bench.contenders import nvshmem
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.bench.declared.process import ask, compiled
from cpufree.env import for_nvshmem
from cpufree.errors import UnsupportedError

SOURCE = Path(__file__).with_suffix(".cu")
RUN_LIMIT = 60.0
WHAT = ("packets", "thread", "warp", "block", "barrier", "sync", "put", "put_quiet", "quiet")


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    library = nvshmem.find()
    if not library:
        raise UnsupportedError("NVSHMEM was not found: pip install nvidia-nvshmem-cu13")
    home = Path(library).parents[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        linked = ("-L", str(home / "lib"), "-lnvshmem_device", f"-l:{nvshmem.NAME}", "-lcuda")
        found = ("-rdc=true", "-isystem", str(home / "include"), f"-Xlinker=-rpath={home / 'lib'}")
        program = compiled(SOURCE, case.architecture, (*found, *linked))

        def by(what: str) -> Callable[[], dict[str, Any]]:
            def call() -> dict[str, Any]:
                file, numbers = folder / f"{what}.id", (str(case.rounds), str(case.inside))
                file.unlink(missing_ok=True)

                def one(pe: int) -> dict[str, Any]:
                    words = [program, str(pe), str(case.pes), str(file), what, *numbers]
                    return ask(words, RUN_LIMIT, **for_nvshmem(nvshmem.OWN_BYTES))

                with ThreadPoolExecutor(case.pes) as pool:
                    answers = list(pool.map(one, range(case.pes)))
                return max(answers, key=lambda answer: answer["seconds"])

            return call

        yield {what: by(what) for what in WHAT}


BENCH = Bench(
    name="nvshmem-sums",
    set_up=set_up,
    axes={"pes": (2,), "rounds": (500,), "inside": (9,), "architecture": ("sm_90",)},
    quick={"rounds": (20,), "inside": (2,)},
    ours="packets",
    unit="µs",
    cold=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
