"""Patterns of messages among all PEs: measured beside the ways, and never used for a fit.

Products of matrices in tiles on a square grid of PEs (Groves et al. 2020, section V), whose tiles
kernels move, or the host; rings, many-to-one, and the exchange of halos of a real matrix. Each is
predicted from the curves of ways between two PEs (`predict`), and `validate` holds both against one
another.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cpufree.errors import CpufreeError, EngineError, WaitTimeoutError
from cpufree.extension import load_core, load_gpu_core
from cpufree.model.samples import HOST_DRIVEN, LEAST_REPEATS, PatternSample

if TYPE_CHECKING:
    from cpufree._core import Probe

LIMIT = 20.0
"""Seconds that a PE waits for another one."""
GPU_THREADS = 256
VALUE_BYTES = 8
MESSAGES = (8, 1024, 32768, 262144)
"""Bytes of the messages of rings and of many-to-one."""
GRIDS = (4, 9, 16)
"""PEs of products."""
TILES = {
    "threads": (8, 16, 32, 64),
    "gpus": (8, 16, 32, 64, 128),
    "host": (32, 128, 256, 512, 1024),
}
"""Rows of a tile; `host`: of products on GPUs that the host drives, whose small tiles all take as
long."""
REPEATS = 15
WARM_UPS = 3
MOST_RUNS = 8
"""Of a pattern, while other programs take a core of a PE in each of them."""
PRODUCTS = {
    "product, gets": (False, False),
    "product, puts": (True, False),
    "product, gets overlapped": (False, True),
    "product, puts overlapped": (True, True),
}
"""Whether tiles are put, and whether they move while others are multiplied."""

Table = tuple[int, ...]
"""Bytes from PE p to PE q, at [p * PEs + q]."""


@dataclass(frozen=True)
class Place:
    """The PEs that patterns are measured on."""

    engine: str
    """threads or gpus."""
    pes: int
    gpus: tuple[int, ...] = ()
    """One for each PE; none: threads."""


def ring(pes: int, size: int) -> Table:
    """Return the bytes of a ring, in which each PE sends to the next one.

    >>> ring(3, 8)
    (0, 8, 0, 0, 0, 8, 8, 0, 0)
    """
    return tuple(size * (q == (p + 1) % pes and q != p) for p in range(pes) for q in range(pes))


def many_to_one(pes: int, size: int) -> Table:
    """Return the bytes of a pattern in which all PEs send to the first one."""
    return tuple(size * (q == 0 and p != 0) for p in range(pes) for q in range(pes))


def places(engine: str) -> tuple[list[Place], str]:
    """Return where patterns are measured on this machine, or why nowhere."""
    if engine == "threads":
        return [Place("threads", pes) for pes in (2, *GRIDS)], ""
    try:
        found = tuple(gpu["index"] for gpu in load_core().gpus())
        why = str(load_core().gpu_note()) if not found else str(load_core().peer_problem(found))
    except CpufreeError as error:
        return [], str(error)
    if why or not found:
        return [], why or "there is no GPU"
    pair = [Place("gpus", 2, found[:2])] if len(found) > 1 else []
    return pair + [Place("gpus", pes, sharing(found, pes)) for pes in GRIDS], ""


def sharing(gpus: Sequence[int], pes: int) -> tuple[int, ...]:
    """Return a GPU for each of N PEs, neighbours on the same one.

    >>> sharing((0, 1), 5)
    (0, 0, 0, 1, 1)
    """
    return tuple(sorted(gpus[pe % len(gpus)] for pe in range(pes)))


def measure_patterns(
    halos: Mapping[str, Callable[[int], Table]],
    seconds: float = 30.0,
    engines: Sequence[str] = ("gpus", "threads"),
) -> tuple[list[PatternSample], dict[str, str]]:
    """Measure all patterns; return them, and what this machine lacks, with the reason.

    Args:
        halos: by the name of a matrix, what gives the bytes of its halos on N PEs.
        seconds: after which no further pattern begins.

    Raises:
        EngineError: values arrived wrong.
    """
    found: list[PatternSample] = []
    lacking: dict[str, str] = {}
    end = time.monotonic() + seconds
    for engine in engines:
        there, why = places(engine)
        if why:
            lacking[f"patterns on {engine}"] = why
        for place in there:
            name = f"patterns on {place.pes} PEs, {engine}"
            if time.monotonic() > end:
                lacking[name] = f"{seconds:g} s were over"
                continue
            try:
                found += _exchanges(place, halos) + _products(place)
            except WaitTimeoutError as error:  # where GPUs do not run all PEs together
                lacking[name] = str(error)
            except CpufreeError as error:
                raise EngineError(f"{name}: {error}") from None
    return found, lacking


def _probe(place: Place, blocks: int, room: int) -> Probe:
    if place.gpus:
        probe: Probe = load_gpu_core().Probe(
            place.pes, blocks, room, gpus=list(place.gpus), threads=GPU_THREADS
        )
        return probe
    made: Probe = load_core().Probe(place.pes, blocks, room)
    return made


def _exchanges(place: Place, halos: Mapping[str, Callable[[int], Table]]) -> list[PatternSample]:
    pes = place.pes
    tables = [("ring", size, ring(pes, size)) for size in MESSAGES]
    if pes > 2:
        tables += [("many to one", size, many_to_one(pes, size)) for size in MESSAGES]
    for name, halo in halos.items():
        table = halo(pes)
        tables.append((f"halos of {name}", max(table), table))
    room = max(sum(table[q::pes]) for _, _, table in tables for q in range(pes))
    probe = _probe(place, 1, room + 128 * pes)
    found = []
    # What a round takes that has no messages: the way through the table, and the barrier's end.
    nothing = partial(probe.exchange, [0] * (pes * pes), WARM_UPS, REPEATS, LIMIT)
    empty = _apart(_run(probe, pes, nothing)[0])
    for name, size, table in tables:
        order = partial(probe.exchange, list(table), WARM_UPS, REPEATS, LIMIT)
        rounds = _run(probe, pes, order)[0]
        # A round is over when its last PE is; all begin within a barrier.
        found.append(_sample(place, name, size, table, rounds.max(axis=0), empty))
    return found


def _products(place: Place) -> list[PatternSample]:
    pes, side = place.pes, round(place.pes**0.5)
    if side * side != pes:
        return []
    tiles = TILES[place.engine]
    room = VALUE_BYTES * 2 * (side + 1) * max(tiles) ** 2
    found = []
    for overlapped in (False, True):
        multiply = _by_kernels(_probe(place, 1 + overlapped, room), pes)
        found += _products_of(place, multiply, tiles, overlapped, "")
    if place.gpus:
        multiply = _by_host(place)
        for overlapped in (False, True):
            found += _products_of(place, multiply, TILES["host"], overlapped, HOST_DRIVEN)
    return found


Multiply = Callable[[int, bool, bool, bool], np.ndarray]
"""Of a tile's rows, puts, overlapped, local (nothing travels): rounds and moves of all PEs."""


def _by_kernels(probe: Probe, pes: int) -> Multiply:
    def multiply(tile: int, puts: bool, overlapped: bool, local: bool) -> np.ndarray:
        order = (tile, puts, overlapped, local, WARM_UPS, REPEATS, LIMIT)
        return _run(probe, pes, lambda: probe.multiply(*order))

    return multiply


def _by_host(place: Place) -> Multiply:
    product = load_gpu_core().HostProduct(list(place.gpus), max(TILES["host"]))

    def multiply(tile: int, puts: bool, overlapped: bool, local: bool) -> np.ndarray:
        order = (tile, puts, overlapped, local, WARM_UPS, REPEATS, LIMIT)
        times = product.multiply(*order)
        return np.array(times).reshape(2, place.pes, REPEATS)

    return multiply


def _products_of(
    place: Place, multiply: Multiply, tiles: Sequence[int], overlapped: bool, driver: str
) -> list[PatternSample]:
    """Return the products that overlap, or those that do not.

    What the PEs' kernels compute is measured in the product by gets that does not overlap: tiles
    that have just come are not in the L1 cache, as those would be that a PE reads in all steps. A
    kernel that the host launches begins with an empty one, and is measured alone.
    """
    found = []
    for tile in tiles:
        gets = multiply(tile, False, False, False)
        computed = multiply(tile, False, overlapped, True)[0] if driver else gets[0] - gets[1]
        for name, (puts, overlaps) in PRODUCTS.items():
            if overlaps != overlapped:
                continue
            known = not (puts or overlaps)
            times = gets if known else multiply(tile, puts, overlaps, False)
            # Blocking: what moving takes. Overlapped, that has no time of its own.
            spent = times[0 if overlaps else 1].max(axis=0)
            size = VALUE_BYTES * tile**2
            one = _sample(place, name + driver, size, (), spent, _apart(computed))
            computes = tuple(map(float, np.maximum(np.median(computed, axis=1), 1e-9)))
            found.append(dataclasses.replace(one, computes=computes))
    return found


def _run(probe: Probe, pes: int, call: Callable[[], list[float]]) -> np.ndarray:
    """Return rounds and moves of all PEs: of the run in which others took the fewest cores."""
    best, least = call(), probe.disturbances()
    for _ in range(MOST_RUNS - 1):
        if least == 0 or pes > load_core().available_cores():
            break
        again, count = call(), probe.disturbances()
        if count < least:
            best, least = again, count
    return np.array(best).reshape(2, pes, REPEATS)


def _apart(rounds: np.ndarray) -> tuple[float, float]:
    """Return what the slowest PE takes, and how much less the fastest one does."""
    medians = np.median(rounds, axis=1)
    return float(medians.max()), float(medians.max() - medians.min())


def _sample(
    place: Place, name: str, size: int, table: Table, times: np.ndarray,
    alone: tuple[float, float],
) -> PatternSample:  # fmt: skip
    assert len(times) >= LEAST_REPEATS
    return PatternSample(
        name,
        place.engine,
        place.pes,
        place.gpus,
        size,
        tuple(map(int, table)),
        alone[0],
        tuple(max(float(one), 1e-9) for one in times),
        alone[1],
    )
