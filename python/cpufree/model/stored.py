"""Bytes of a matrix as the GPUs' format stores it, estimated from a sample of its rows.

The format (`cpufree/formats/warp_slices.hpp`) has slices of 32 rows, as wide as their longest row
or narrower, with tails. Columns are distances of 16 bits, one for each run of three where all come
in such runs, and 4 bytes where they are too far apart, which they never are where blocks number
what they read; values are one byte where the share of every block has few distinct ones, and as
they are otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SLICE = 32
RUN = 3
NEAR = 1 << 16
"""Columns that distances tell apart: of one range, or of a few windows of it."""
WINDOW = 1 << 14
WINDOWS = 4
DICTIONARY = 256
TAIL_COST = 256
"""Entries beyond its own that a row in a tail is taken to cost."""
SLICE_HEAD = 40
"""Bytes of a slice besides its entries: width, code, bases, row numbers."""
ROWS = 1024
"""Of a place in the sample; the format puts rows of equal lengths together, within a block."""
SAMPLES = 16
LONG_ROW = 24
"""Entries of a row from which blocks may read MOST_READS values of others as packets, else FEW."""
MOST_READS, FEW_READS = 8192, 2048


def stored_bytes(
    matrix: Any, blocks: int = 132, own_numbers: bool = False, samples: int = SAMPLES
) -> float:
    """Return about how many bytes the format takes for a CSR matrix with sorted columns.

    Args:
        matrix: of `blocks` blocks, all GPUs. own_numbers: whether blocks number the columns that
        they read. samples: places in the matrix that are looked at.

    >>> from scipy.sparse import diags_array
    >>> tridiagonal = diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(65536, 65536)).tocsr()
    >>> tridiagonal.sort_indices()
    >>> 2.0 < stored_bytes(tridiagonal) / tridiagonal.nnz < 4.0  # a byte and a distance each
    True
    """
    rows = int(matrix.shape[0])
    if not matrix.nnz:
        return 0.0
    starts = np.unique(np.linspace(0, max(rows - ROWS, 0), samples).astype(np.int64))
    few = all(_distinct(matrix, int(start), max(1, rows // blocks)) for start in starts)
    value = 1 if few else matrix.data.dtype.itemsize
    stored = entries = 0.0
    for start in starts:
        end = min(int(start) + ROWS, rows)
        order = np.argsort(-np.diff(matrix.indptr[start : end + 1]), kind="stable") + start
        for k in range(0, order.size, SLICE):
            stored += _slice_bytes(matrix, order[k : k + SLICE], value, own_numbers)
        entries += float(matrix.indptr[end] - matrix.indptr[start])
    each = max(1.0, rows / blocks)  # the last slice of a block has its shortest rows, and few
    waste = 0.5 * (SLICE * math.ceil(each / SLICE) / each - 1.0)
    return float((1.0 + min(waste, 1.0)) * stored * matrix.nnz / max(entries, 1.0))


def block_reads(matrix: Any, blocks: int, samples: int = SAMPLES) -> float:
    """Return how many values of others all blocks together read, about."""
    rows = int(matrix.shape[0])
    share = max(1, rows // blocks)
    starts = np.unique(np.linspace(0, max(rows - share, 0), samples).astype(np.int64))
    found = 0
    for start in starts:
        end = min(int(start) + share, rows)
        read = np.unique(matrix.indices[matrix.indptr[start] : matrix.indptr[end]])
        found += int(np.count_nonzero((read < start) | (read >= end)))
    return blocks * found / starts.size


def has_block_packets(matrix: Any, blocks: int, room: float) -> bool:
    """Return whether what blocks read of one another comes as packets.

    The rule is that of `cpufree/solvers/host/setup.cpp`: of a matrix that finds `room` on chip [B]
    it does whatever they read, of others where it is little.
    """
    rows, nnz = matrix.shape[0], matrix.nnz
    most = MOST_READS if nnz >= LONG_ROW * rows else FEW_READS
    on_chip = (matrix.data.dtype.itemsize + 2.0) * nnz <= room
    return bool(on_chip or block_reads(matrix, blocks) <= most * blocks)


def _distinct(matrix: Any, start: int, rows: int) -> bool:
    """Return whether a block from this row on has few enough values for a dictionary."""
    end = min(start + rows, int(matrix.shape[0]))
    return np.unique(matrix.data[matrix.indptr[start] : matrix.indptr[end]]).size <= DICTIONARY


def _slice_bytes(matrix: Any, rows: np.ndarray, value: int, own_numbers: bool) -> float:
    """Return the bytes of the slice of these rows, which are longest first."""
    indptr = matrix.indptr
    lengths = indptr[rows + 1].astype(np.int64) - indptr[rows]
    width, in_tails = _width(lengths)
    columns = [matrix.indices[indptr[row] : indptr[row + 1]][:width] for row in rows]
    tail = in_tails * (matrix.data.dtype.itemsize + 4)
    return float(SLICE_HEAD + SLICE * width * (value + _column_bytes(columns, own_numbers)) + tail)


def _width(lengths: np.ndarray) -> tuple[int, int]:
    """Return the cheapest width of a slice, and the entries beyond it."""
    longer = np.concatenate([[0], np.cumsum(lengths)])
    widths = np.concatenate([lengths, [0]])
    places = np.arange(widths.size)
    beyond = longer - places * widths
    best = int(np.argmin(SLICE * widths + beyond + TAIL_COST * places))
    return int(widths[best]), int(beyond[best])


def _column_bytes(columns: list[np.ndarray], own_numbers: bool) -> float:
    """Return the bytes of the column of an entry in a slice of rows with these columns."""
    whole = [row[: row.size // RUN * RUN].reshape(-1, RUN) for row in columns if row.size]
    in_runs = all(row.size % RUN == 0 for row in columns) and all(
        bool((row[:, -1] - row[:, 0] == RUN - 1).all()) for row in whole
    )
    every = np.concatenate(columns) if columns else np.empty(0, np.int32)
    if not every.size:
        return 0.0
    near = own_numbers or int(every.max()) - int(every.min()) < NEAR
    if in_runs:
        every = every[::RUN]
        near = near or np.unique(every // RUN // WINDOW).size <= WINDOWS
    near = near or np.unique(every // WINDOW).size <= WINDOWS
    distance = 2.0 if near else 4.0
    return distance / RUN if in_runs and near else distance
