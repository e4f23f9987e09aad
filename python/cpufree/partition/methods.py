"""Which PE owns which rows, in what sequence a PE keeps its rows, and what that costs.

A partition is judged by the balance of nonzeros (work) and by the halo: the values of rows of other
PEs that a PE reads in every product with the matrix (communication).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.extension import load_core
from cpufree.matrix.problem import CsrMatrix
from cpufree.partition.cache import PartitionCache
from cpufree.partition.compressed_graph import compress_graph
from cpufree.partition.cost import GOOD_HALO_SHARE, Gain, PartitionReport
from cpufree.partition.cost import report as report
from cpufree.partition.part_vector import PartitionLike, as_part_vector, require_length

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

METHODS = ("auto", "metis", "contiguous", "rows")
# METIS can do no more than guess where parts are this small.
MIN_ROWS_PER_PE = 8
# Nor does it balance vertices well that are this part of a PE's share.
LARGEST_VERTEX = 0.05
# Entries this close to the diagonal, on average, find their vector values in the second-level
# cache (32768 doubles are 256 KiB), so that another order gains little.
NEAR_DIAGONAL = 32768
# Reordering costs setup time and gives up the user's locality: it must pay clearly.
CLEAR_GAIN = 0.7
# Rows are stored in slices as wide as their longest row (32 rows on GPUs). Where that takes PADDED
# times the entries, rows of equal lengths are brought together, within windows that keep neighbours
# in the same lines of a cache, if only LEFT of the padding remains. Rows LONG times the mean are
# stored apart. Of rows with more than SHORT entries on average, neighbours read the same lines
# together, which saves more than the padding costs: bmwcra_1 (86 a row), cg on one H200, takes
# 64 us in its own order and 87 in windows of 512.
SLICE, WINDOW, LONG, SHORT = 32, 256, 4, 16
PADDED, LEFT = 1.2, 0.6
METIS_SEED = 1  # any fixed number: the same matrix gets the same partition


@dataclass(frozen=True)
class Partition:
    """Who owns which rows.

    `part[i]` is the PE of row i; `method`, "metis", "contiguous" or "rows", made it, or it is
    "given"; `why` this method. `fallback`: a better partition may be had, as `why` says.
    """

    part: Int32s
    method: str
    why: str
    report: PartitionReport
    fallback: bool = False
    notes: tuple[str, ...] = ()
    """What is wrong with a file or folder of partitions, in sentences."""


@dataclass(frozen=True)
class Ordering:
    """The sequence in which PEs keep their rows; `order` is None for the natural one."""

    order: Int32s | None
    why: str


def partition(
    A: CsrMatrix,
    pes: int,
    method: PartitionLike = "auto",
    gain: Gain | None = None,
    cache: PartitionCache | None = None,
) -> Partition:
    """Share the rows of A among PEs, about the same number of nonzeros each.

    Parameters: A, n rows, symmetric pattern; `pes` ≥ 1, which may exceed n (some PEs then own
    nothing); `method` is "metis" (multilevel graph partitioning, Karypis and Kumar 1998),
    "contiguous" (blocks of consecutive rows; no PE has more than the mean plus one row's
    nonzeros), "rows" (blocks of equal numbers of consecutive rows, whatever their nonzeros)
    or "auto" (of the two the one with the smaller halo, METIS being spared where blocks do well,
    and where it would take longer than it can save by `gain`; None: its time does not count);
    or the part of each row, numbers from 0 to `pes` - 1, shape (n,), of which some may be missing
    (of a complex matrix each row has two here, real and imaginary part, which stay together);
    `cache` has partitions that METIS has found before, which take no time, and gets new ones.

    Raises InvalidInputError for another method, part numbers that do not fit, or `pes` < 1,
    UnsupportedError when "metis" is asked for and pymetis is missing.
    """
    if isinstance(method, str) and method not in METHODS:
        raise InvalidInputError(
            f"unknown partition method {method!r}: choose one of {', '.join(METHODS)}, or give the "
            "part number of each row"
        )
    if isinstance(pes, bool) or int(pes) != pes or pes < 1:
        raise InvalidInputError(f"the number of PEs is {pes!r}: give an integer of at least 1")
    if not isinstance(method, str):
        return _given(A, pes, method)
    found = _found(A, pes, method, gain, cache)
    if not A.of_complex or pes == 1:
        return found
    part = np.repeat(found.part[::2], 2)
    return replace(found, part=part, report=report(A, part, pes))


def _found(
    A: CsrMatrix, pes: int, method: str, gain: Gain | None, cache: PartitionCache | None
) -> Partition:
    """Return the partition of a method."""
    if method == "rows":
        part = equal_rows(A.shape[0], pes)
        return Partition(part, "rows", "asked for", report(A, part, pes))
    blocks = contiguous(A, pes)
    if method == "contiguous":
        return Partition(blocks, "contiguous", "asked for", report(A, blocks, pes))
    if pes == 1:
        return Partition(blocks, "contiguous", "one PE owns all rows", report(A, blocks, 1))
    if A.shape[0] < MIN_ROWS_PER_PE * pes:
        why = f"{A.shape[0]} rows are too few for METIS to share among {pes} PEs"
        return Partition(blocks, "contiguous", why, report(A, blocks, pes))
    metis = _find_metis()
    if method == "metis":
        if metis is None:
            raise UnsupportedError(
                "METIS needs the package pymetis, which is not installed: pip install pymetis, "
                "or choose partition 'contiguous'"
            )
        known = _kept(pes, metis, cache)
        graph = _searched(A, pes, metis, cache) if known is None else known
        cost = report(A, graph, pes)
        return Partition(graph, "metis", "asked for", cost, notes=_notes(cache))
    return replace(_better(A, pes, blocks, metis, gain, cache), notes=_notes(cache))


def _notes(cache: PartitionCache | None) -> tuple[str, ...]:
    return () if cache is None else tuple(cache.notes)


def _kept(pes: int, metis: ModuleType, cache: PartitionCache | None) -> Int32s | None:
    """Return what METIS has found before, None where that is not known."""
    return None if cache is None else cache.read(pes, _how(metis))


def _searched(A: CsrMatrix, pes: int, metis: ModuleType, cache: PartitionCache | None) -> Int32s:
    """Return METIS's partition, and put it into the cache."""
    found = metis_parts(A, pes, metis)
    if cache is not None:
        cache.write(pes, _how(metis), found)
    return found


def _how(metis: ModuleType) -> dict[str, Any]:
    """Return what METIS's answer depends on, besides the pattern and the number of parts."""
    version = str(getattr(metis, "version", ""))
    vertices = {"least_rows": MIN_ROWS_PER_PE, "largest_vertex": LARGEST_VERTEX}
    return {"pymetis": version, "seed": METIS_SEED, **vertices}


def _given(A: CsrMatrix, pes: int, values: Any) -> Partition:
    part = as_part_vector(values, pes)
    require_length(part, A.given_shape[0])
    part = np.repeat(part, 2) if A.of_complex else part
    cost = report(A, part, pes)
    empty = cost.rows.count(0)
    why = f"{empty} of {pes} PEs have no rows" if empty else "every PE has rows"
    return Partition(part, "given", why, cost)


def _better(
    A: CsrMatrix,
    pes: int,
    blocks: Int32s,
    metis: ModuleType | None,
    gain: Gain | None,
    cache: PartitionCache | None,
) -> Partition:
    """Return the partition with the smaller halo; METIS runs only where it can gain something."""
    plain = report(A, blocks, pes)
    if plain.halo_values <= GOOD_HALO_SHARE * A.shape[0]:
        share = plain.halo_values / A.shape[0]
        why = f"blocks of consecutive rows exchange as little as {share:.1%} of the rows' values"
        return Partition(blocks, "contiguous", why, plain)
    known = None if metis is None else _kept(pes, metis, cache)
    if (
        known is None
        and gain is not None
        and (saved := gain.most(plain)) < (search := gain.search(A))
    ):
        expected = f"{gain.iterations(A.shape[0]):.0f} iterations"
        why = f"METIS would take {search:.2g} s, and save at most {saved:.2g} s in {expected}"
        return Partition(blocks, "contiguous", why, plain)
    if metis is None:
        why = "the package pymetis is not installed (pip install pymetis)"
        return Partition(blocks, "contiguous", why, plain, fallback=True)
    graph = _searched(A, pes, metis, cache) if known is None else known
    cut = report(A, graph, pes)
    if cut.halo_values >= plain.halo_values:
        why = f"METIS would exchange {cut.halo_values} values, this {plain.halo_values}"
        return Partition(blocks, "contiguous", why, plain)
    why = f"consecutive rows would exchange {plain.halo_values} values, this {cut.halo_values}"
    return Partition(graph, "metis", why, cut)


def contiguous(A: CsrMatrix, pes: int) -> Int32s:
    """Return blocks of consecutive rows: each cut is at the row boundary nearest to its ideal."""
    part: Int32s = load_core().contiguous_partition(A.indptr, pes)
    return part


def equal_rows(n: int, pes: int) -> Int32s:
    """Return blocks of equal numbers of n consecutive rows, which may differ by one row."""
    part: Int32s = load_core().contiguous_partition(np.zeros(n + 1, np.int64), pes)
    return part


def metis_parts(A: CsrMatrix, pes: int, metis: ModuleType) -> Int32s:
    """Return METIS's partition of the graph of A; rows weigh what they have nonzeros.

    Consecutive rows with the same columns stay together (compressed_graph.py), unless that would
    leave too few vertices to share out. METIS may leave parts empty (disconnected graphs, few heavy
    rows); those get half the rows of the heaviest part each.
    """
    graph = compress_graph(A)
    shares = graph.weights * (pes / max(1, graph.weights.sum()))  # of what a PE is to have
    if graph.weights.size < MIN_ROWS_PER_PE * pes or shares.max() > LARGEST_VERTEX:
        graph = compress_graph(A, merge=False)
    call: dict[str, Any] = {
        "vweights": graph.weights,
        "options": metis.Options(seed=METIS_SEED),
    }
    if hasattr(metis, "CSRAdjacency"):
        call["adjacency"] = metis.CSRAdjacency(graph.starts, graph.neighbours)
    else:
        call |= {"xadj": graph.starts, "adjncy": graph.neighbours}
    _, membership = metis.part_graph(pes, **call)
    part = np.array(membership, dtype=np.int32)[graph.vertex]
    weights = np.maximum(np.diff(A.indptr), 1).astype(np.int64)
    fill_empty_parts(part, weights, pes)
    return part


def fill_empty_parts(part: Int32s, weights: Int64s, pes: int) -> None:
    """Give each empty part half of the rows of the heaviest part, in place."""
    for empty in np.flatnonzero(np.bincount(part, minlength=pes) == 0):
        heaviest = np.argmax(np.bincount(part, weights, minlength=pes))
        rows = np.flatnonzero(part == heaviest)
        if rows.size < 2:
            return
        before = np.cumsum(weights[rows])
        keep = max(1, min(rows.size - 1, int(np.searchsorted(before, before[-1] / 2)) + 1))
        part[rows[keep:]] = empty


def rcm(A: CsrMatrix, part: Int32s | None = None) -> Int32s:
    """Return the reverse Cuthill-McKee order (George 1971) of the rows inside each part.

    `order[k]` is the row at position k; parts follow one another. Entries between parts do not
    count. A symmetric pattern is taken for granted. `part` None: one part.
    """
    from scipy.sparse import csr_array  # heavy imports
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    if part is None:
        ones = np.ones(A.nnz, np.int8)
        graph = csr_array((ones, A.indices, A.indptr.astype(np.int32)), shape=A.shape)
    else:
        inside = np.repeat(part, np.diff(A.indptr)) == part[A.indices]
        starts = np.concatenate(([0], np.cumsum(inside)))[A.indptr].astype(np.int32)
        graph = csr_array((np.ones(starts[-1], np.int8), A.indices[inside], starts), shape=A.shape)
    order = np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int32)
    return order if part is None else order[np.argsort(part[order], kind="stable")]


def mean_distance(A: CsrMatrix, part: Int32s | None, order: Int32s | None) -> float:
    """Return the mean of |i - j| over the entries inside parts, i and j being places in a part."""
    n = A.shape[0]
    place = None
    if order is not None or (part is not None and not in_sequence(part)):
        sequence = np.arange(n, dtype=np.int32) if order is None else order
        if part is not None:
            sequence = sequence[np.argsort(part[sequence], kind="stable")]
        place = np.empty(n, np.int32)
        place[sequence] = np.arange(n, dtype=np.int32)
    return float(load_core().mean_distance(A.indptr, A.indices, place, part))


def in_sequence(part: Int32s) -> bool:
    """Return whether parts are runs of consecutive rows, in their order."""
    return bool((part[1:] >= part[:-1]).all())


def padding(starts: Int64s) -> float:
    """Return what slices of SLICE consecutive rows, as wide as their longest, hold over the rows.

    Row i has starts[i + 1] - starts[i] entries.

    1 where no slice has rows of different lengths. Rows much longer than others do not count: they
    are stored apart.
    """
    most = LONG * int(starts[-1]) // max(1, starts.size - 1) + 1
    return float(load_core().slice_padding(starts, SLICE, most))


def starts_of(lengths: Int64s) -> Int64s:
    """Return where rows of these lengths begin, one after the other, and where the last ends."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def by_length(A: CsrMatrix, part: Int32s | None, order: Int32s | None) -> Int32s | None:
    """Return the sequence with rows of equal lengths together, None where that saves little.

    Rows stay within WINDOW places, and in sequence where they are equally long.
    """
    n = A.shape[0]
    if A.nnz > SHORT * n:
        return None
    as_it_is = order is None and (part is None or in_sequence(part))
    if as_it_is and padding(A.indptr) < PADDED:
        return None
    sequence = np.arange(n, dtype=np.int32) if order is None else order
    if part is not None:
        sequence = sequence[np.argsort(part[sequence], kind="stable")]
    lengths = np.diff(A.indptr)[sequence]
    before = padding(starts_of(lengths))
    if before < PADDED:
        return None
    window = np.arange(n) // WINDOW
    if part is not None:  # parts begin with windows of their own
        window += part[sequence]
    longest = int(lengths.max()) + 1
    sorting = np.argsort(window * longest + (longest - 1 - lengths), kind="stable")
    if padding(starts_of(lengths[sorting])) > 1.0 + LEFT * (before - 1.0):
        return None
    return np.asarray(sequence[sorting], dtype=np.int32)


def choose_order(
    A: CsrMatrix,
    part: Int32s | None,
    reorder: str | bool = "auto",
    gain: Gain | None = None,
) -> Ordering:
    """Choose the sequence of rows inside parts.

    `reorder` True or "rcm": reverse Cuthill-McKee; False or "natural": as they come; "auto": RCM
    where entries are far from the diagonal and it brings them clearly nearer, and where it can save
    the time that it takes by `gain` (None: its time does not count), then rows of equal lengths
    together where that saves clearly (`by_length`).

    Raises InvalidInputError for anything else.
    """
    if reorder in (False, "natural"):
        return Ordering(None, "natural order: asked for")
    if reorder not in (True, "rcm", "auto"):
        raise InvalidInputError(
            f"unknown reorder {reorder!r}: choose 'auto', 'rcm' (or True), 'natural' (or False)"
        )
    if A.nnz > np.iinfo(np.int32).max:
        return Ordering(None, "natural order: RCM is limited to 2^31 - 1 nonzeros")
    if reorder != "auto":
        return Ordering(rcm(A, part), "RCM order: asked for")
    chosen = _by_distance(A, part, gain)
    together = by_length(A, part, chosen.order) if A.shape[0] > NEAR_DIAGONAL else None
    if together is None:
        return chosen
    return Ordering(together, f"{chosen.why}; rows of equal lengths together")


def _by_distance(A: CsrMatrix, part: Int32s | None, gain: Gain | None) -> Ordering:
    if A.shape[0] <= NEAR_DIAGONAL:
        return Ordering(None, "natural order: the vectors fit in cache")
    natural = mean_distance(A, part, None)
    if natural <= NEAR_DIAGONAL:
        return Ordering(None, f"natural order: entries are {natural:.0f} rows apart on average")
    if gain is not None and not gain.order_pays(A.shape[0]):
        why = f"RCM takes longer than it can save in {gain.iterations(A.shape[0]):.0f} iterations"
        return Ordering(
            None, f"natural order: entries are {natural:.0f} rows apart on average, but {why}"
        )
    order = rcm(A, part)
    reordered = mean_distance(A, part, order)
    if reordered > CLEAR_GAIN * natural:
        why = f"natural order: entries are {natural:.0f} rows apart, with RCM {reordered:.0f}"
        return Ordering(None, why)
    return Ordering(order, f"RCM order: entries {reordered:.0f} rows apart, not {natural:.0f}")


def _find_metis() -> ModuleType | None:
    """Return the module pymetis, None where it is not installed or does not load."""
    try:
        return importlib.import_module("pymetis")
    except ImportError:
        return None
