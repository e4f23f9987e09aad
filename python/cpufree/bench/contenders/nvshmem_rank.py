"""One PE of a contender over NVSHMEM: a process that `nvshmem_contender` starts.

    python -m cpufree.bench.contenders.nvshmem_rank RANK PARENT LIBRARY
    python -m cpufree.bench.contenders.nvshmem_rank probe LIBRARY

It says hello (rank 0: with the id by which all find one another), and then answers requests as
every worker does. PARENT is the process to end with. `probe` says whether the library loads. As a
program this is a rank of `nvshmem_on_stream`; others call `main` with a contender of their own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from cpufree.bench.contenders.baseline_contender import BaselineContender
from cpufree.bench.contenders.extension import load_baselines
from cpufree.bench.core.problem_folder import read_arrays
from cpufree.bench.core.protocol import Contender, refusal, serve, take_stdout
from cpufree.distributed.launch import end_with


class RankContender(BaselineContender):
    """The baseline on one GPU of several."""

    def __init__(self, rank: int) -> None:
        super().__init__("nvshmem_on_stream")
        self._rank = rank
        self._mine: Any = None

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Set up together with the other ranks, and note the rows that are its own."""
        part = read_arrays(folder).part
        self._mine = slice(None) if part is None else np.flatnonzero(part == self._rank)
        return super().load(folder, options)

    def _keep(self, file: Path, x: Any) -> None:
        """Write its rows into the file, which is there."""
        whole = np.load(file, mmap_mode="r+")
        whole[self._mine] = x[self._mine]
        whole.flush()


def say_hello(answers: IO[str], rank: int | None, library: str) -> bool:
    """Say whether the library is there, and rank 0 the id of all."""
    try:
        baselines = load_baselines()
        hello = {"ok": True, "version": baselines.nvshmem_version(library)}
        if rank == 0:
            hello["id"] = baselines.nvshmem_id(library)
    except Exception as error:  # whatever it is, it is reported to who has started this process
        hello = refusal(error)
    print(json.dumps(hello), file=answers, flush=True)
    return bool(hello["ok"])


def main(arguments: list[str], make: Callable[[int], Contender] = RankContender) -> int:
    """Probe, or be the rank that `make` returns; return the exit status."""
    answers = take_stdout()
    if arguments[0] == "probe":
        return 0 if say_hello(answers, None, arguments[1]) else 1
    rank, parent, library = int(arguments[0]), int(arguments[1]), arguments[2]
    end_with(parent, signal.SIGKILL)
    if not say_hello(answers, rank, library):
        return 1
    serve(make(rank), answers=answers)
    # NVSHMEM's own end would wait for PEs that may have failed; its memory ends with the process.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
