"""What a product gathers of its operand: bytes from the L2 cache to the multiprocessors.

A warp multiplies 32 rows, an entry of each at a time, and its 32 operands lie in some sectors of
32 bytes. Those that the L1 cache holds cost the L2 cache nothing: the ones that the warps of the
block have read a little before. So a sample of rows is taken as a block reads them, through a cache
of the size that shared memory leaves, and what misses it is counted.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

SECTOR = 32
LANES = 32
WARPS = 16
"""Of a block."""
CACHE_BYTES = 28 << 10
"""L1 cache that is left where vectors and rings take all of shared memory."""
SAMPLES = 12
"""Places in the matrix where a block's reads are followed."""
WINDOW = WARPS * LANES
VALUE = 8
WARM = 1
"""Windows that fill the cache before one is counted."""


def gathered_bytes(matrix: Any, cache_bytes: int = CACHE_BYTES, samples: int = SAMPLES) -> float:
    """Return the bytes that a product with a CSR matrix gathers from the L2 cache, all entries.

    Rows are taken in their order, one lane for each, as in slices of a share.

    >>> from scipy.sparse import diags_array
    >>> tridiagonal = diags_array([1.0, 2.0, 1.0], offsets=[-1, 0, 1], shape=(65536, 65536)).tocsr()
    >>> round(gathered_bytes(tridiagonal) / 65536, 1)  # each value comes once
    8.0
    """
    rows = int(matrix.shape[0])
    if not matrix.nnz:
        return 0.0
    span = (WARM + 1) * WINDOW
    starts = np.unique(np.linspace(0, max(rows - span, 0), samples).astype(np.int64))
    misses = entries = 0
    for start in starts:
        found, counted = _followed(matrix, int(start), min(int(start) + span, rows), cache_bytes)
        misses += found
        entries += counted
    return float(SECTOR * misses * matrix.nnz / max(entries, 1))


def _followed(matrix: Any, first: int, last: int, cache_bytes: int) -> tuple[int, int]:
    """Return sectors that miss the cache, and entries, of the last window of some rows."""
    cache: OrderedDict[int, None] = OrderedDict()
    room = cache_bytes // SECTOR
    misses = entries = 0
    windows = range(first, last, WINDOW)
    for begin in windows:
        end = min(begin + WINDOW, last)
        if begin == windows[-1]:
            misses, entries = 0, int(matrix.indptr[end] - matrix.indptr[begin])
        for sectors in _steps(matrix, begin, end):
            for one in sectors:
                if one in cache:
                    cache.move_to_end(one)
                    continue
                misses += 1
                cache[one] = None
                if len(cache) > room:
                    cache.popitem(last=False)
    return misses, entries


def _steps(matrix: Any, begin: int, end: int) -> list[list[int]]:
    """Return the sectors of each step of each warp; warps take their steps in turn."""
    indptr = matrix.indptr[begin : end + 1].astype(np.int64)
    sectors = matrix.indices[indptr[0] : indptr[-1]].astype(np.int64) * VALUE // SECTOR
    length = np.diff(indptr)
    steps = []
    for k in range(int(length.max(initial=0))):
        for warp in range(0, end - begin, LANES):
            lanes = slice(warp, min(warp + LANES, end - begin))
            there = indptr[:-1][lanes][length[lanes] > k] + k - indptr[0]
            if there.size:
                steps.append(np.unique(sectors[there]).tolist())
    return steps
