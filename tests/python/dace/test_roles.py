"""Blocks in roles: the parts of a sweep are the whole, and only rims read what arrives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import dace_cases

from cpufree.compiler import ir
from cpufree.compiler.passes.accesses import accesses, region_access
from cpufree.compiler.ranks.live import without_idle_sites
from cpufree.compiler.ranks.on_gpu import grid_programs, kernel_of_ranks
from cpufree.compiler.ranks.roles import Divided, dividable, divided


def divided_of(name: str, ranks: int) -> list[tuple[ir.Group, Divided]]:
    """Return each group that is divided, and its parts."""
    found = []
    made = dace_cases.load(dace_cases.path(name, ranks))
    for k, program in enumerate(grid_programs(made)):
        arriving = {
            site
            for rank, variant in enumerate(made.variant_of)
            if variant == k
            for site, route in enumerate(made.receives[rank])
            if route.peer >= 0
        }
        allowed = dividable(program)
        for s in ir.walk(program.body):
            for block in ir.blocks(s):
                for one, two, three in zip(block, block[1:], block[2:], strict=False):
                    d = divided(one, two, three, arriving) if id(one) in allowed else None
                    if d is not None:
                        assert isinstance(three, ir.Group)
                        found.append((three, d))
    return found


def points(group: ir.Group) -> Counter[tuple[int, ...]]:
    box = group.stages[0].work.box
    return Counter(product(*(range(s.start, s.stop, s.step) for s in box)))


@pytest.mark.parametrize(
    ("name", "ranks", "rims"),
    [("jacobi_2d", 2, 1), ("jacobi_2d", 4, 2), ("heat_3d", 4, 2), ("jacobi_1d", 2, 1)],
)
def test_parts_are_the_whole_and_the_inside_needs_nothing(name: str, ranks: int, rims: int) -> None:
    found = divided_of(name, ranks)
    assert len(found) == 2 * ranks if name != "jacobi_1d" else len(found) == 4
    program = grid_programs(dace_cases.load(dace_cases.path(name, ranks)))[0]
    for group, d in found:
        assert len(d.rims) == rims
        parts = sum((points(g) for g in (d.inside, *d.rims)), Counter())
        assert parts == points(group)  # each point once
        arriving = [region_access(m.region, True) for m in d.finish.receives]
        inside = [a for s in d.inside.stages for a in accesses(program, s.work)]
        live = [r for r in arriving if any(r.conflicts(a) for a in _reads(program, d.rims))]
        assert live and not any(r.conflicts(a) for r in live for a in inside)


def _reads(program: ir.Program, groups: tuple[ir.Group, ...]) -> list[Any]:
    return [a for g in groups for s in g.stages for a in accesses(program, s.work)]


def test_kernels_divide_blocks() -> None:
    made = dace_cases.load(dace_cases.path("jacobi_2d", 4))
    text = kernel_of_ranks(made, 132).text
    assert text.text.count("divide_roles(") == 8  # two updates of four variants


def test_nothing_is_divided_where_no_barrier_follows() -> None:
    """Behind the sweep another one reads what arrives, with no barrier between."""
    made = dace_cases.load(dace_cases.path("jacobi_2d", 2))
    program = grid_programs(made)[0]
    assert len(dividable(program)) == 2
    loop = next(s for s in program.body if isinstance(s, ir.For))
    k = next(n for n, s in enumerate(loop.body) if isinstance(s, ir.Group))
    again = (*loop.body[: k + 1], loop.body[k], *loop.body[k + 1 :])
    body = tuple(replace(s, body=again) if s is loop else s for s in program.body)
    assert len(dividable(replace(program, body=body))) == 1


@pytest.mark.parametrize(("name", "ranks"), dace_cases.SAVED)
def test_sites_without_a_peer_are_taken_out(name: str, ranks: int) -> None:
    live = without_idle_sites(dace_cases.load(dace_cases.path(name, ranks)))
    for rank in range(ranks):
        program = live.variants[live.variant_of[rank]]
        sites = [m.site for s in ir.walk(program.body) if isinstance(s, ir.Start) for m in s.sends]
        sites += [s.site for s in ir.walk(program.body) if isinstance(s, ir.PutSignal)]
        assert sorted(sites) == list(range(len(live.sends[rank])))
        for k, send in enumerate(live.sends[rank]):
            assert send.peer >= 0
            if send.site >= 0:  # both ends name one another
                other = live.receives[send.peer][send.site]
                assert (other.peer, other.site) == (rank, k)
        assert all(r.peer >= 0 for r in live.receives[rank])
    if ranks == 1:
        assert not any(isinstance(s, ir.Start | ir.Grant) for s in ir.walk(live.variants[0].body))
