"""Which right-hand sides are solved together, in one kernel that reads the matrix once for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cpufree.engines.choices import one_of
from cpufree.errors import UnsupportedError
from cpufree.text import counted

COLUMNS = ("auto", "together", "block", "one by one")
LEAST_BYTES = 5e6
"""Of a matrix whose columns are solved together by default: smaller ones stay in the caches."""
LEAST_OF_VECTORS = 7.0
"""On the CPU: bytes of a matrix whose columns pay from LEAST_COLUMNS on, in those of a vector (an
iteration moves some twelve)."""
FOUR_OF_VECTORS = 5.0
"""The same of one whose columns pay from four on, such as the five-point Laplacian."""
LEAST_COLUMNS = 3
"""Two together were not faster, on the CPU and on a GPU (bench/columns.py)."""
METHOD = "cg"
"""What solves several right-hand sides together."""
BLOCK_METHOD = "block_cg"
"""What solves them as a block."""
PRECONDITIONERS = ("jacobi", "none", "chebyshev", "fsai")
"""With which they are."""
MEASURED = ("jacobi", "none")
"""With which it is known when that pays."""
SIZES = (8, 4, 2)
"""Columns that kernels are made for."""
SIZES_ON_GPU = (4,)
"""Those that pay on GPUs: eight at a time take more registers than there are, and longer."""


@dataclass(frozen=True)
class Several:
    """What the choice rests on."""

    columns: int
    method: str
    """As asked for."""
    pc: str
    refused: str
    """Why the system does not solve columns together; "": it does."""
    on_chip: bool
    """Whether the matrix stays on chip: then there is no memory to save reads of."""
    matrix_bytes: float
    """In the format of the engine."""
    vector_bytes: float
    on_gpu: bool


@dataclass(frozen=True)
class Way:
    """How several right-hand sides are solved, and why."""

    together: bool
    why: str
    sizes: tuple[int, ...] = SIZES
    """Of the kernels that take them."""
    method: str = METHOD
    """That solves those that are together."""

    def groups(self, columns: int) -> list[range]:
        """Return the columns that are solved together, group by group."""
        if self.together:
            return groups_of(columns, self.sizes)
        return [range(k, k + 1) for k in range(columns)]


def choose_way(asked: str, several: Several) -> Way:
    """Return how right-hand sides are solved.

    Raises:
        InvalidInputError: `asked` is none of COLUMNS. UnsupportedError: they cannot be solved
            together as is asked for.
    """
    one_of("columns", asked, COLUMNS)
    if asked == "one by one":
        return Way(False, "columns one by one: asked for")
    why_not = not_together(several)
    if asked in ("together", "block"):
        if why_not:
            way = "as a block" if asked == "block" else "together"
            raise UnsupportedError(
                f"columns cannot be solved {way}: {why_not}; leave columns at its default"
            )
        if asked == "block":
            return Way(True, "columns as a block: asked for", method=BLOCK_METHOD)
        sizes = SIZES[1:] if several.on_gpu else SIZES
        return Way(True, "columns together: asked for", sizes)
    if why_not:
        return Way(False, f"columns one by one: {why_not}")
    if why_not := does_not_pay(several):
        return Way(False, f"columns one by one: {why_not}")
    why = f"{counted(several.columns, 'column')} together: the matrix is read once"
    return Way(True, why, SIZES_ON_GPU if several.on_gpu else SIZES)


def not_together(several: Several) -> str:
    """Return why right-hand sides cannot be solved together, "" where they can."""
    if several.method not in ("auto", METHOD):
        return f"the method that solves them together is {METHOD}, not {several.method}"
    if several.pc not in PRECONDITIONERS:
        return f"the preconditioner {several.pc} takes one at a time"
    return several.refused


def does_not_pay(several: Several) -> str:
    """Return why columns are better solved one by one, "" where together is faster."""
    if several.pc not in MEASURED:
        return f"whether they pay together with {several.pc} has not been measured"
    if several.on_chip:
        return "the matrix stays on chip, and need not be read"
    if several.matrix_bytes < LEAST_BYTES:
        return "the matrix is small, and stays in the caches"
    if several.columns < LEAST_COLUMNS:
        return "two are no faster together"
    if several.on_gpu:
        return ""
    least = FOUR_OF_VECTORS if several.columns >= 4 else LEAST_OF_VECTORS
    if several.matrix_bytes < least * several.vector_bytes:
        return "its rows are short, and most of the time on the CPU goes into vectors"
    return ""


def groups_of(columns: int, sizes: tuple[int, ...] = SIZES) -> list[range]:
    """Return columns in groups of the largest size or fewer, the largest first; see size_of."""
    groups, first = [], 0
    while first < columns:
        last = min(columns, first + size_of(columns - first, sizes))
        groups.append(range(first, last))
        first = last
    return groups


def size_of(columns: int, sizes: tuple[int, ...] = SIZES) -> int:
    """Return how many columns the kernel that takes the first ones has: one of `sizes`, or 1.

    Where one is missing to a kernel of 4 or 8, that one takes them, with a column of zeros: it
    takes less time than two kernels, or three.
    """
    return next((size for size in sizes if columns >= size - (size > 2)), 1)


def padded(vectors: list[Any], zeros: Any) -> list[Any]:
    """Return the vectors of a group, and those of zeros up to the size of its kernel."""
    return vectors + [zeros] * (size_of(len(vectors)) - len(vectors))
