"""Systems on GPUs: laid out with the partition made before, solved for iterations of fixed number.

The compiled core is used directly: only so can a partition be made outside the set-up that is timed
and shared by several set-ups, and choices of the engine be overridden.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from cases import Case
from timing import interleave

from cpufree import partition
from cpufree.cache import read_cache
from cpufree.problem import CsrMatrix, as_csr
from cpufree.run import core

# Beyond so many nonzeros a graph partition takes longer than the whole benchmark may.
MOST_NNZ_OF_METIS = 20_000_000
WAIT_LIMIT = 10.0  # an undisturbed wait takes microseconds; a hang is to cost no more than this
FEWEST_ITERATIONS = 16
# How much of an iteration count that a solve did not reach is asked for next: the last iterations
# before rounding errors end it have checks among them that others have not.
BACK_OFF = 0.8
SEED = 1

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Site:
    """Where is measured: the engine and its devices; a count of PEs takes the first of these."""

    engine: str
    devices: tuple[int, ...]

    def counts(self) -> list[int]:
        """Return the numbers of PEs: powers of two, and all there are."""
        most = len(self.devices)
        powers = [1 << k for k in range(most.bit_length()) if 1 << k <= most]
        return sorted({*powers, most})


@dataclass(frozen=True)
class Shares:
    """Who owns which rows, how that was chosen, and in how many seconds."""

    part: npt.NDArray[np.int32] | None
    method: str
    seconds: float


class Matrix:
    """A matrix and its partitions, each made once. Rows stay in the order in which they come.

    That order is what the solver itself takes for all matrices measured here: their entries are
    near the diagonal.
    """

    def __init__(self, case: Case, source: Path | str) -> None:
        self.case = case
        begin = time.perf_counter()
        self.csr: CsrMatrix = load(source)
        self.load_seconds = time.perf_counter() - begin
        self.b: Vector = np.random.default_rng(SEED).standard_normal(self.csr.shape[0])
        self._shares: dict[int, Shares] = {}

    def shares(self, pes: int) -> Shares:
        """Return the partition for this number of PEs."""
        if pes not in self._shares:
            self._shares[pes] = share(self.csr, pes)
        return self._shares[pes]


def load(source: Path | str) -> CsrMatrix:
    """Return a matrix: of a file that was made here just now, or a `gen:` text.

    The arrays of a file are not mapped but copied, lest their first use, the set-up, pay for the
    page faults. What was generated is symmetric: that takes long to check, and is not checked.
    """
    if isinstance(source, str):
        return as_csr(source)
    mapped = read_cache(source, verify=False)
    return CsrMatrix(*(np.array(part) for part in (mapped.indptr, mapped.indices, mapped.data)))


def share(A: CsrMatrix, pes: int) -> Shares:
    """Share the rows: METIS or consecutive blocks, as the solver would; blocks if A is large."""
    begin = time.perf_counter()
    if pes == 1:
        return Shares(None, "one PE", 0.0)
    if A.nnz > MOST_NNZ_OF_METIS:
        part, method = partition.contiguous(A, pes), "contiguous"
    else:
        found = partition.partition(A, pes)
        part, method = found.part, found.method
    return Shares(part, method, time.perf_counter() - begin)


class LaidOut:
    """A matrix set up on its PEs. `setup_seconds`: from the partition to ready to solve."""

    def __init__(
        self, matrix: Matrix, pes: int, site: Site, tuning: Mapping[str, int] | None = None
    ) -> None:
        self.matrix, self.tuning = matrix, dict(tuning or {})
        A, self.shares = matrix.csr, matrix.shares(pes)
        blocks = 0 if site.engine == "cuda_p2p" else 1
        gpus = site.devices[:pes] if site.engine == "cuda_p2p" else ()
        arrays = (A.indptr, A.indices, A.data, self.shares.part, None)
        begin = time.perf_counter()
        if self.tuning:
            system = core.load().System
            self.system = system(*arrays, pes, blocks, site.engine, list(gpus), self.tuning)
        else:
            self.system = core.make_system(
                *arrays, pes=pes, blocks=blocks, engine=site.engine, gpus=gpus
            )
        self.setup_seconds = time.perf_counter() - begin
        self.plan: dict[str, Any] = {**self.system.plan()}

    def solve(self, method: str, iterations: int) -> Any:
        """Solve for at most this many iterations; return the outcome of the core."""
        options = {
            "method": method,
            "pc": "jacobi",
            "rtol": 0.0,
            "atol": 0.0,
            "maxiter": iterations,
            "wait_limit": WAIT_LIMIT,
        }
        return core.solve(self.system, self.matrix.b, None, None, options, None)


PLAN_KEYS = (
    "blocks",
    "threads",
    "halo",
    "block_halo",
    "halo_values",
    "ghosts",
    "resident_vectors",
    "resident_matrix",
    "shared_bytes",
    "matrix_bytes",
    "imbalance",
)


def describe(laid: LaidOut, pes: int) -> dict[str, Any]:
    """Return what a measurement is of."""
    case, A = laid.matrix.case, laid.matrix.csr
    return {
        "name": case.name,
        "spec": case.spec,
        "rows": A.shape[0],
        "nnz": int(A.nnz),
        "pes": pes,
        "tuning": laid.tuning,
        "plan": {key: laid.plan[key] for key in PLAN_KEYS if key in laid.plan},
        "partition": laid.shares.method,
        "partition_seconds": laid.shares.seconds,
        "setup_seconds": [laid.setup_seconds],
    }


def countable(laid: LaidOut, method: str, most: int, seconds: float) -> int:
    """Return a number of iterations that the method does in full, of at most `seconds` in all.

    With a tolerance of 0 a solve goes on until rounding errors stop it, or until pipecg has to hand
    over to prcg. It must end before. Raises RuntimeError where too few iterations are left.
    """
    k = min(most, 50)
    laid.solve(method, k)  # whatever is slow at first
    first = laid.solve(method, k)
    k = min(most, max(k, int(seconds / (first["seconds"] / max(1, first["iterations"])))))
    for _ in range(5):
        outcome = laid.solve(method, k)
        done, handed = int(outcome["iterations"]), int(outcome["handed_over_at"])
        if done == k and handed < 0 and outcome["reason"] == "DIVERGED_ITS":
            return k
        k = int(BACK_OFF * min(done, k, handed if handed >= 0 else done))
        if k < FEWEST_ITERATIONS:
            break
    raise RuntimeError(
        f"{method} ended after {outcome['iterations']} iterations ({outcome['reason']}): too few "
        "to be timed; measure a larger matrix"
    )


def kernel_seconds(laid: LaidOut, method: str, iterations: int) -> float:
    """Solve; return the seconds of the kernels. RuntimeError where iterations are missing."""
    outcome = laid.solve(method, iterations)
    if outcome["iterations"] != iterations:
        raise RuntimeError(
            f"{method} ended after {outcome['iterations']} of {iterations} iterations "
            f"({outcome['reason']}), which it had done before"
        )
    return float(outcome["seconds"])


def measure_methods(
    laid: LaidOut, methods: Sequence[str], rounds: int, most: int, seconds: float = 0.05
) -> dict[str, Any]:
    """Return raw kernel times of each method, in `rounds` interleaved rounds.

    Each method is timed for k iterations and for a quarter of k: the difference is free of what a
    solve costs once. A method that fails is reported as such and does not stop the others.
    """
    record: dict[str, Any] = {"methods": {}}
    counts: dict[str, int] = {}
    for method in methods:
        try:
            counts[method] = countable(laid, method, most, seconds)
        except Exception as error:
            record.setdefault("failed", {})[method] = f"{type(error).__name__}: {error}"
    tasks = {}
    for method, k in counts.items():
        for part in (k, k // 4):
            tasks[f"{method} {part}"] = functools.partial(kernel_seconds, laid, method, part)
    times = interleave(tasks, rounds, random.Random(SEED), 0.0)
    for method, k in counts.items():
        record["methods"][method] = {
            "iterations": k,
            "seconds": times[f"{method} {k}"],
            "short_iterations": k // 4,
            "short_seconds": times[f"{method} {k // 4}"],
        }
    return record


def measure(
    matrix: Matrix,
    pes: int,
    site: Site,
    methods: Sequence[str],
    *,
    rounds: int,
    most: int,
    seconds: float = 0.05,
    tuning: Mapping[str, int] | None = None,
    setups: int = 1,
) -> dict[str, Any]:
    """Set a matrix up (`setups` times, the last is used) and time the methods on it."""
    setup_seconds = []
    laid: LaidOut | None = None
    for _ in range(setups):
        laid = None  # frees the memory of the one before
        laid = LaidOut(matrix, pes, site, tuning)
        setup_seconds.append(laid.setup_seconds)
    assert laid is not None
    record = describe(laid, pes)
    record["setup_seconds"] = setup_seconds
    return {**record, **measure_methods(laid, methods, rounds, most, seconds)}
