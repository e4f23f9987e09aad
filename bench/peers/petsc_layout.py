"""What PETSc is given: each rank's rows under PETSc's numbers, and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from problem_folder import MOST_32_BIT, Limits, Problem

from cpufree.errors import InvalidInputError, UnsupportedError

# The method's name in the contract -> PETSc's options.
METHODS = {
    "cg": {"ksp_type": "cg", "ksp_cg_single_reduction": "false"},
    "prcg": {"ksp_type": "cg", "ksp_cg_single_reduction": "true"},
    "pipecg": {"ksp_type": "pipecg", "ksp_cg_single_reduction": "false"},
}
# Names that PETSc's Python interface gives to reasons for which the contract has another.
REASONS = {"DIVERGED_MAX_IT": "DIVERGED_ITS"}


@dataclass(frozen=True)
class Numbering:
    """PETSc's row numbers: rank by rank, for a rank owns consecutive ones.

    old_of_new, new_of_old (n): permutations, inverse to each other. first (ranks + 1): the first
    new number of each rank.
    """

    old_of_new: np.ndarray
    new_of_old: np.ndarray
    first: np.ndarray


def numbering(problem: Problem, ranks: int) -> Numbering:
    """Return the numbers under which every rank owns the rows that the partition gives it.

    Within a rank rows keep the problem's order of local numbers, or else their own.

    Raises:
        InvalidInputError: the partition is not one into as many parts as there are ranks.
    """
    n = problem.rows
    order = np.arange(n) if problem.order is None else np.asarray(problem.order)
    if problem.part is None and ranks > 1:
        raise InvalidInputError(f"the problem has no part.npy, which {ranks} ranks need")
    part = np.zeros(n, np.int32) if problem.part is None else np.asarray(problem.part)
    if part.max() >= ranks:
        raise InvalidInputError(f"part.npy names PE {part.max()}, but there are {ranks} ranks")
    old_of_new = order[np.argsort(part[order], kind="stable")]
    new_of_old = np.empty(n, np.int32)
    new_of_old[old_of_new] = np.arange(n, dtype=np.int32)
    counts = np.bincount(part, minlength=ranks)
    return Numbering(old_of_new, new_of_old, np.concatenate([[0], np.cumsum(counts)]))


def rows_of(
    problem: Problem, numbers: Numbering, rank: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the CSR arrays of a rank's rows under the new numbers, columns sorted in each row.

    Raises:
        UnsupportedError: there are more nonzeros than 32-bit numbers count.
    """
    mine = numbers.old_of_new[numbers.first[rank] : numbers.first[rank + 1]]
    # Column indices keep their 32 bits, uncopied, only beside an indptr of 32 bits.
    narrow = np.int32 if len(problem.indices) <= MOST_32_BIT else np.int64
    parts = (problem.data, problem.indices, problem.indptr.astype(narrow))
    block = sp.csr_array(parts, shape=(problem.rows, problem.rows))[mine]
    if block.nnz > MOST_32_BIT:
        raise UnsupportedError(f"rank {rank} has {block.nnz} nonzeros; 32-bit PETSc cannot")
    columns = numbers.new_of_old[block.indices]
    block = sp.csr_array((block.data, columns, block.indptr.astype(np.int32)), shape=block.shape)
    block.sort_indices()
    return block.indptr, block.indices, block.data


def start_options(cuda: bool, aware: bool, gpu: int | None) -> list[str]:
    """Return what PETSc is started with; gpu: the number of this rank's (None: PETSc chooses)."""
    options = ["-options_left", "no"]
    if cuda:
        options += ["-use_gpu_aware_mpi", str(int(aware))]
        options += [] if gpu is None else ["-device_select_cuda", str(gpu)]
    return options


def solve_options(method: str, jacobi: bool, limits: Limits) -> dict[str, str]:
    """Return PETSc's options of a solve; the stopping rule is on ||r||_2 in every case.

    Without preconditioner the natural norm, the root of r.z, is ||r||_2, and saves a reduction.
    """
    return {
        **METHODS[method],
        "pc_type": "jacobi" if jacobi else "none",
        "ksp_norm_type": "unpreconditioned" if jacobi else "natural",
        "ksp_convergence_test": "skip" if limits.exact else "default",
        "ksp_rtol": repr(limits.rtol),
        "ksp_atol": "0",
        "ksp_divtol": "1e300",
        "ksp_max_it": str(limits.most),
    }


def given_options(arguments: list[str]) -> dict[str, str]:
    """Return a user's PETSc options, "-ksp_norm_type natural", as pairs without the dash.

    Raises:
        InvalidInputError: a value stands where an option is expected.
    """
    pairs: dict[str, str] = {}
    words = list(arguments)
    while words:
        name = words.pop(0)
        if not _is_name(name):
            raise InvalidInputError(f"{name!r} is no option of PETSc: they begin with a dash")
        pairs[name[1:]] = "" if not words or _is_name(words[0]) else words.pop(0)
    return pairs


def _is_name(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit()


def reason_name(value: int, reasons: Any) -> str:
    """Return the contract's name of a reason; reasons: the class that lists PETSc's."""
    names = [name for name, number in vars(reasons).items() if number == value]
    name = next((name for name in names if name.startswith(("CONV", "DIV"))), f"REASON_{value}")
    return REASONS.get(name, name)
