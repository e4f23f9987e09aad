"""Random programs of ranks: random partners, regions, loops and updates, against a simulation."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import ranks_on_cpu
from played_by_host import Played

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.ranks.host_messages import WAYS
from cpufree.compiler.ranks.hosted import RanksRecording
from cpufree.compiler.ranks.on_cpu import cpu_runner_of_ranks
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.compiler.ranks.rows import by_rows
from cpufree.dace.messages.events import Event
from cpufree.dace.messages.exchanges import Exchanges
from cpufree.dace.messages.matching import routes
from cpufree.dace.values.refusal import Place
from cpufree.engines.watch import Watch
from cpufree.laps import Laps

SHAPE = (11, 9)
FIELDS = ("a", "b")
PLACE = Place("random")


def spans(r: random.Random) -> tuple[ir.Span, ...]:
    """Return a random box."""
    found = []
    for n in SHAPE:
        count = r.choice((1, 2, 3, n - 2))
        step = r.choice((1, 1, 2)) if 2 * (count - 1) < n - 1 else 1
        first = r.randrange(n - step * (count - 1))
        found.append(ir.Span(first, step, count))
    return tuple(found)


def moved(r: random.Random, box: tuple[ir.Span, ...]) -> tuple[ir.Span, ...]:
    """Return a box of the same shape elsewhere."""
    return tuple(
        replace(s, start=r.randrange(n - s.step * (s.count - 1)))
        for s, n in zip(box, SHAPE, strict=True)
    )


class Messages:
    """One exchange of all ranks: each sends `count` regions along permutations of the ranks."""

    def __init__(self, r: random.Random, ranks: int) -> None:
        self.pairs = []
        taken: list[ir.Region] = []
        for tag in range(r.choice((1, 2, 3))):
            partners = r.sample(range(ranks), ranks)
            if r.random() < 0.3:
                partners[r.randrange(ranks)] = -1
            box = spans(r)
            source = ir.Region(r.choice(FIELDS), box)
            target = ir.Region(r.choice(FIELDS), moved(r, box))
            if _overlaps(target, [*taken, source]) or any(
                _overlaps(t, [source]) for t in taken[1::2]
            ):
                continue
            taken += [source, target]
            self.pairs.append((tag, partners, source, target))

    def events(self, rank: int, blocking: bool) -> list[Event]:
        sends, receives = [], []
        for tag, partners, source, target in self.pairs:
            ids = [] if blocking else [("req", 2 * tag), ("req", 2 * tag + 1)]
            key = ir.Literal(tag, "int64")
            sends.append(Event("send", PLACE, partners[rank], key, source, frozenset(ids[:1])))
            back = partners.index(rank) if rank in partners else -1
            receives.append(Event("receive", PLACE, back, key, target, frozenset(ids[1:])))
        all_ids = frozenset(i for e in (*sends, *receives) for i in e.requests)
        wait = [] if blocking else [Event("wait", PLACE, requests=all_ids)]
        return [*sends, *receives, *wait]

    def simulate(self, arrays: list[dict[str, Any]]) -> None:
        sent = [
            (to, target, arrays[rank][source.field][_index(source)].copy())
            for _, partners, source, target in self.pairs
            for rank, to in enumerate(partners)
            if to >= 0
        ]
        for to, target, values in sent:
            arrays[to][target.field][_index(target)] = values


def _overlaps(region: ir.Region, others: list[ir.Region]) -> bool:
    from cpufree.dace.messages.exchanges import meet

    return any(meet(region, other) for other in others)


def _index(region: ir.Region) -> tuple[slice, ...]:
    return tuple(slice(s.start, s.stop, s.step) for s in region.box)


class Update:
    """An update of the interior of a field by both fields, with a factor of the rank."""

    def __init__(self, r: random.Random) -> None:
        self.field, self.other = r.sample(FIELDS, 2)
        self.shift = (r.choice((-1, 0, 1)), r.choice((-1, 0, 1)))
        self.factor = r.choice((0.5, 0.25, -0.5))

    def statement(self, rank: int) -> ir.Assign:
        box = tuple(ir.Span(1, 1, n - 2) for n in SHAPE)
        here = ir.Read(self.field, tuple(ir.Axis(k, 1) for k in range(2)), "float64")
        axes = tuple(ir.Axis(k, 1 + d) for k, d in enumerate(self.shift))
        there = ir.Read(self.other, axes, "float64")
        scaled = ir.Op("multiply", (ir.Literal(self.factor + rank, "float64"), there), "float64")
        value = ir.Op(
            "add",
            (ir.Op("multiply", (here, ir.Literal(0.5, "float64")), "float64"), scaled),
            "float64",
        )
        return ir.Assign(self.field, box, value, 1)

    def simulate(self, arrays: list[dict[str, Any]]) -> None:
        for rank, own in enumerate(arrays):
            part = tuple(slice(1 + d, n - 1 + d) for d, n in zip(self.shift, SHAPE, strict=True))
            inner = (slice(1, -1), slice(1, -1))
            other = own[self.other][part]
            own[self.field][inner] = own[self.field][inner] * 0.5 + (self.factor + rank) * other


def program_of(seed: int) -> tuple[Ranks, Any, int]:
    """Return a random program, what simulates it, and its number of ranks."""
    r = random.Random(seed)
    ranks = r.randrange(1, 6)
    parts = [
        [Messages(r, ranks) if r.random() < 0.5 else Update(r) for _ in range(r.randrange(1, 5))]
        for _ in range(3)
    ]
    blocking = [r.random() < 0.3 for _ in range(64)]
    turns = r.randrange(4)
    bodies, ends = [], []
    for rank in range(ranks):
        flags = iter(blocking)

        def statements(part: list[Any], rank: int = rank, flags: Any = flags) -> list[Any]:
            out: list[Any] = []
            for x in part:
                if isinstance(x, Messages):
                    out += x.events(rank, next(flags))
                else:
                    out.append(x.statement(rank))
            return out

        before, inside, after = (statements(p) for p in parts)
        loop = ir.For("t", ir.Literal(0, "int64"), ir.Scalar("T", "int64"), 1, tuple(inside), 1)
        exchanges = Exchanges()
        bodies.append(tuple(exchanges.block([*before, loop, *after])))
        ends.append(exchanges.ends)
    fields = tuple(ir.Field(n, SHAPE, "float64", "argument") for n in FIELDS)
    programs = [
        ir.Program("random", fields, (("T", "int64"),), (("t", "int64"),), body) for body in bodies
    ]
    sends, receives = routes(ends, dict.fromkeys(FIELDS, "float64"))
    programs = by_rows(with_same_fields(programs))
    variants = tuple(dict.fromkeys(programs))
    made = Ranks(
        "random", variants, tuple(variants.index(p) for p in programs),
        tuple(map(tuple, sends)), tuple(map(tuple, receives)),
    )  # fmt: skip

    def simulate(arrays: list[dict[str, Any]]) -> None:
        for part, times in zip(parts, (1, turns, 1), strict=True):
            for _ in range(times):
                for x in part:
                    x.simulate(arrays)

    return made, simulate, turns


def start(ranks: int, seed: int) -> list[dict[str, Any]]:
    g = np.random.default_rng(seed)
    return [{n: g.standard_normal(SHAPE) for n in FIELDS} for _ in range(ranks)]


SEEDS = [
    *(0, 1, 11),
    *(pytest.param(s, marks=pytest.mark.thorough) for s in range(2, 7)),
    *(pytest.param(s, marks=pytest.mark.slow) for s in (*range(7, 11), *range(12, 40))),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_give_the_bits_of_a_simulation(seed: int) -> None:
    made, simulate, turns = program_of(seed)
    wanted = start(made.count, seed)
    simulate(wanted)
    given = [Arguments("random", a) for a in start(made.count, seed)]
    watch = Watch(None)
    with watch:
        cpu_runner_of_ranks(made).run(given, {}, {"T": turns}, 10.0, watch, Laps())
    for rank, arguments in enumerate(given):
        for name in FIELDS:
            np.testing.assert_array_equal(
                arguments.arrays[name], wanted[rank][name], err_msg=f"{name} of rank {rank}"
            )


@pytest.mark.parametrize(
    "seed",
    [
        *(0, 1),
        *(pytest.param(s, marks=pytest.mark.thorough) for s in (2, 3)),
        *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 20)),
    ],
)
def test_random_programs_of_many_blocks(seed: int) -> None:
    made, simulate, turns = program_of(seed)
    wanted = start(made.count, seed)
    simulate(wanted)
    given = start(made.count, seed)

    class Lowered:
        ranks, data, scalars = made, {}, {"T": turns}

    ranks_on_cpu.run(Lowered, given, 3)
    for rank, arrays in enumerate(given):
        for name in FIELDS:
            np.testing.assert_array_equal(arrays[name], wanted[rank][name])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(s, marks=pytest.mark.thorough) for s in range(4, 12))]
)
def test_random_programs_driven_by_the_host(seed: int, way: str) -> None:
    made, simulate, turns = program_of(seed)
    wanted = start(made.count, seed)
    simulate(wanted)
    recording = RanksRecording(made, {"T": turns}, 132, way)
    given = [Arguments("random", a) for a in start(made.count, seed)]
    played = Played(recording, given, {})
    played.play()
    for rank in range(made.count):
        for f in recording.ranks.fields:
            if f.name in FIELDS:
                found = np.zeros(f.shape)
                played.unload(rank, f, found)
                np.testing.assert_array_equal(found, wanted[rank][f.name])
