"""From a few solves on a machine to the numbers that choices and predictions go by.

On the CPU two systems tell latency and bandwidth of an iteration, a straight line through both. The
first set-up of a process tells what the start of CUDA takes, later ones what set-ups take. What
solves on GPUs take is held against what they would take on a machine that is like this one, which
is predicted, and corrected by how much longer the same solves took there than predicted: the
difference of the small system is put down to exchanges, that of the large one to the rate of
memory, and that of a thin one, whose parts send each other much, to the link. All else is as on
that machine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cpufree.errors import InvalidInputError
from cpufree.machine import Machine
from cpufree.machine.files import Quantity
from cpufree.model.solve import SystemFacts, solve_seconds

SMALL, LARGE, THIN = "small", "large", "thin"
METHOD = "prcg"
MEMORY_RATES = ("product.memory_rate", "loop.memory_rate", "gpu.memory_rate", "stencil.memory_rate")
EXCHANGES = ("exchange.packets", "exchange.stores")
MOST_FACTOR = 16.0
MOST_LINK = 4.0
"""Times the rate of the like machine's link, from which on solves do not tell a rate."""
LEAST_WAIT = 1e-7
"""Seconds that an exchange takes at least, however soon the small system is done."""


@dataclass(frozen=True)
class Solve:
    """What a solve on a place took [s]."""

    what: str
    """SMALL, LARGE or THIN."""
    gpus: int
    """0: the CPU."""
    nnz: int
    moved: float
    """Bytes that an iteration moves on all PEs."""
    setup: float
    """Without the start of CUDA."""
    start: float
    """Of CUDA, 0 where it ran already."""
    iteration: float
    """With its share of the launch."""
    iterations: int = 50
    facts: SystemFacts | None = None
    """On GPUs, as far as they are known before a system is laid out."""


Values = Callable[[Sequence[Solve]], float]


def choices_of(solves: Sequence[Solve], cores: int, like: Machine) -> dict[str, Quantity]:
    """Return the section `choices` of a machine file, with 95 % intervals of a bootstrap.

    Args:
        solves: of a small and a large system on each place, several times; of the CPU, and of 1, 2,
        ... GPUs if there are any; on several GPUs of a thin system, too. cores: that the CPU engine
        had. like: the machine whose numbers hold for all else.

    Raises:
        InvalidInputError: one of the systems is missing.
    """
    said = f"cpufree model calibrate, {len(solves)} solves"
    cpu = _on(solves, 0)
    found = {
        "cpu.core_bandwidth": _entry(lambda s: _line(s)[1] / cores, "B/s", cpu, said),
        "cpu.most_cores": Quantity(cores, "1", provenance=said),
        "setup.cpu_nonzero": _entry(lambda s: cores * _setup_of_nonzero(s), "s", cpu, said),
    }
    latency = _entry(lambda s: _line(s)[0], "s", cpu, said)
    if latency.low:  # else the scatter of the large system hides it
        found["cpu.latency"] = latency
    counts = sorted({one.gpus for one in solves if one.gpus})
    if counts:
        found |= _of_gpus(solves, counts, said)
        found |= _predicted_by([corrected(one, like) for one in solves], counts, like, said)
    return found


def corrected(one: Solve, like: Machine) -> Solve:
    """Return a solve as if predictions for the like machine met the ones that were done there."""
    if not one.gpus or f"calibrate.{one.what}" not in like.entries:
        return one
    return replace(one, iteration=one.iteration / like.at(f"calibrate.{one.what}", "1", one.gpus))


def _of_gpus(solves: Sequence[Solve], counts: Sequence[int], said: str) -> dict[str, Quantity]:
    """Return the numbers by which `auto` chooses among the CPU and GPUs."""
    started = np.cumsum([max(one.start for one in _on(solves, count)) for count in counts])
    starts = {count: max(float(s), 1e-3) for count, s in zip(counts, started, strict=True)}
    setups = {count: _median(_on(solves, count), SMALL, "setup") for count in counts}
    return {"setup.context": _table(starts, "s", said), "setup.gpu": _table(setups, "s", said)}


def _predicted_by(
    solves: Sequence[Solve], counts: Sequence[int], like: Machine, said: str
) -> dict[str, Quantity]:
    """Return the numbers of a like machine that predictions go by, changed to meet the solves."""
    factor, low, high = _with_interval(_rate_over(_on(solves, 1), like), _on(solves, 1))
    scaled = f"{like.gpu}'s times {factor:.3g} ({low:.3g} to {high:.3g}), {said}"
    faster = _with_memory(like, factor, scaled)
    found = {name: faster.entries[name] for name in MEMORY_RATES}
    late = {count: _late(_on(solves, count), SMALL, faster) for count in counts}
    for name in EXCHANGES:
        waits = {count: max(LEAST_WAIT, like.at(name, "s", count) + late[count]) for count in late}
        found[name] = _table(waits, "s", said)
    if several := counts[1:]:
        more = {
            count: max(0.0, like.at("stencil.exchange_between", "s", count) + late[count] - late[1])
            for count in several
        }
        found["stencil.exchange_between"] = _table(more, "s", said)
        slower = replace(like, entries={**faster.entries, **found})
        rate = min(_link_rate(_on(solves, count), slower) for count in several)
        if rate < MOST_LINK * like.number("link.store_rate", "B/s"):
            found["link.store_rate"] = Quantity(rate, "B/s", provenance=said)
    return found


def _on(solves: Sequence[Solve], gpus: int) -> list[Solve]:
    return [one for one in solves if one.gpus == gpus]


def _of(solves: Sequence[Solve], what: str) -> list[Solve]:
    found = [one for one in solves if one.what == what]
    if not found:
        raise InvalidInputError(f"no solve of a {what} system: each place needs one")
    return found


def _median(solves: Sequence[Solve], what: str, name: str) -> float:
    return float(np.median([getattr(one, name) for one in _of(solves, what)]))


def _line(solves: Sequence[Solve]) -> tuple[float, float]:
    """Return latency [s] and bandwidth [B/s] of an iteration."""
    few, many = (_of(solves, what)[0].moved for what in (SMALL, LARGE))
    small, large = (_median(solves, what, "iteration") for what in (SMALL, LARGE))
    slope = max((large - small) / (many - few), 1e-15)
    return max(small - slope * few, 0.0), 1.0 / slope


def _setup_of_nonzero(solves: Sequence[Solve]) -> float:
    return _median(solves, LARGE, "setup") / _of(solves, LARGE)[0].nnz


def _predicted(
    solves: Sequence[Solve], what: str, machine: Machine, part: str | None = None
) -> float:
    """Return what is predicted for an iteration on GPUs with its share of the launch, or a part."""
    one = _of(solves, what)[0]
    assert one.facts is not None
    told = solve_seconds(one.facts, METHOD, machine, one.iterations)
    return (told.parts[part] if part else told.seconds) / one.iterations


def _late(solves: Sequence[Solve], what: str, machine: Machine) -> float:
    """Return by how much an iteration takes longer than predicted."""
    return _median(solves, what, "iteration") - _predicted(solves, what, machine)


def _rate_over(solves: Sequence[Solve], like: Machine) -> Values:
    """Return what finds, of solves, the rate of memory over that of a like machine."""
    factors = np.geomspace(MOST_FACTOR, 1.0 / MOST_FACTOR, 257)
    machines = [_with_memory(like, float(one), "") for one in factors]

    def longer(seconds: Callable[[str], float]) -> float:
        return seconds(LARGE) - seconds(SMALL)

    told = [longer(functools.partial(_predicted, solves, machine=one)) for one in machines]

    def found(drawn: Sequence[Solve]) -> float:
        took = longer(lambda what: _median(drawn, what, "iteration"))
        return float(np.exp(np.interp(took, told, np.log(factors))))

    return found


def _with_memory(like: Machine, factor: float, said: str) -> Machine:
    """Return a machine with rates of memory that are N times those of a like one."""
    found = {name: _times(like.entries[name], factor, said) for name in MEMORY_RATES}
    return replace(like, entries={**like.entries, **found})


def _link_rate(solves: Sequence[Solve], machine: Machine) -> float:
    """Return the rate of stores to another GPU, by what parts of the thin system send."""
    halo = _predicted(solves, THIN, machine, "halo")
    longer = _late(solves, THIN, machine)
    return machine.number("link.store_rate", "B/s") * halo / max(halo + longer, halo / MOST_LINK)


def _times(entry: Quantity, factor: float, said: str) -> Quantity:
    """Return a number, or all of a table, times a factor."""
    table = entry.table and {key: factor * one for key, one in entry.table.items()}
    return Quantity(factor * entry.value, entry.unit, provenance=said, table=table)


def _table(values: Mapping[int, float], unit: str, said: str) -> Quantity:
    return Quantity(next(iter(values.values())), unit, provenance=said, table=dict(values))


def _entry(value: Values, unit: str, chosen: Sequence[Solve], said: str) -> Quantity:
    found, low, high = _with_interval(value, chosen)
    return Quantity(found, unit, low, high, said)


def _with_interval(value: Values, solves: Sequence[Solve]) -> tuple[float, float, float]:
    """Return a number, and the middle 95 % of those of solves drawn again within each system."""
    random = np.random.default_rng(0)
    groups = [_of(solves, what) for what in dict.fromkeys(one.what for one in solves)]
    drawn = [
        value([group[k] for group in groups for k in random.integers(len(group), size=len(group))])
        for _ in range(200)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return value(solves), float(low), float(high)
