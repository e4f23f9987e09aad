"""Makes the systems of a benchmark before it runs, several at a time.

A run makes each system when its turn comes, on one core, while the GPUs wait. Made before, it takes
as long as the largest of them.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from cpufree.bench.cg.problems import Case, Problem
from cpufree.errors import CpufreeError

# An estimate: three copies of the largest system of the suites, some 330 million nonzeros.
BYTES_A_JOB = 12 << 30


@dataclass(frozen=True)
class Prepared:
    """What came of a system."""

    name: str
    precision: str
    seconds: float
    new: bool
    """False: all of it was there."""
    error: str = ""
    """Why it could not be made."""


def jobs_here(cores: int, memory_bytes: int) -> int:
    """Return how many systems may be made at a time."""
    return max(1, min(cores, memory_bytes // BYTES_A_JOB))


def prepare(
    cases: Sequence[Case],
    precisions: Sequence[str],
    pes: Sequence[int],
    method: str,
    cache: Path,
    jobs: int,
) -> Iterator[Prepared]:
    """Make what `Problem` would make of each case for all numbers of PEs; tell of each at its end.

    `method`: of the partitions, as `partition` takes them. Systems that are there already stay.
    """
    cache.mkdir(parents=True, exist_ok=True)
    # Not forked: libraries of this process may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        begun = {
            pool.submit(_prepare_one, case, precision, tuple(pes), method, cache): (case, precision)
            for case in reversed(cases)  # suites begin with the small ones
            for precision in precisions
        }
        try:
            for done in as_completed(begun):
                case, precision = begun[done]
                try:
                    yield done.result()
                except BrokenProcessPool:
                    why = "its process was ended, perhaps for want of memory: fewer --jobs"
                    yield Prepared(case.name, precision, 0.0, False, why)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _prepare_one(
    case: Case, precision: str, pes: tuple[int, ...], method: str, cache: Path
) -> Prepared:
    begin = time.perf_counter()
    error, new = "", False
    try:
        problem = Problem(case, precision, cache, method)
        for count in pes:
            problem.for_pes(count)
        new = problem.new
    except (CpufreeError, OSError, MemoryError, ValueError) as caught:
        error = str(caught) or type(caught).__name__
    return Prepared(case.name, precision, time.perf_counter() - begin, new, error)
