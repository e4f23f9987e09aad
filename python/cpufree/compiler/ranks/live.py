"""Takes messages without a partner out of programs of ranks.

A rank at the border has sites whose peer is MPI_PROC_NULL. Where sizes are in a kernel's text, each
kind of rank has a function of its own anyway: those sites cost nothing there once they are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cpufree.compiler import ir
from cpufree.compiler.ranks.routes import Ranks, ReceiveRoute, SendRoute

Numbers = dict[int, int]
"""Sites, and their numbers among those that are left."""


def without_idle_sites(ranks: Ranks) -> Ranks:
    """Return programs of ranks in which every site has a peer on some rank of its variant."""
    of = ranks.variant_of
    count = len(ranks.variants)
    sends = [
        _numbers([ranks.sends[r] for r in range(ranks.count) if of[r] == v]) for v in range(count)
    ]
    receives = [
        _numbers([ranks.receives[r] for r in range(ranks.count) if of[r] == v])
        for v in range(count)
    ]
    variants = tuple(
        replace(p, body=_block(p.body, sends[v], receives[v], _idle(p, sends[v], receives[v])))
        for v, p in enumerate(ranks.variants)
    )
    return replace(
        ranks,
        variants=variants,
        sends=tuple(
            tuple(_to(route, receives, of) for k, route in enumerate(own) if k in sends[of[r]])
            for r, own in enumerate(ranks.sends)
        ),
        receives=tuple(
            tuple(_from(route, sends, of) for k, route in enumerate(own) if k in receives[of[r]])
            for r, own in enumerate(ranks.receives)
        ),
    )


def _numbers(routes: list[tuple[SendRoute, ...]] | list[tuple[ReceiveRoute, ...]]) -> Numbers:
    peers = [[route.peer for route in own] for own in routes]
    live = sorted({k for own in peers for k, peer in enumerate(own) if peer >= 0})
    return {site: number for number, site in enumerate(live)}


def _idle(program: ir.Program, sends: Numbers, receives: Numbers) -> set[int]:
    """Return the exchanges of which nothing is left."""
    return {
        s.exchange
        for s in ir.walk(program.body)
        if isinstance(s, ir.Finish)
        and not any(m.site in sends for m in s.sends)
        and not any(m.site in receives for m in s.receives)
    }


def _to(route: SendRoute, receives: list[Numbers], of: tuple[int, ...]) -> SendRoute:
    if route.peer < 0 or route.site < 0:
        return route
    return replace(route, site=receives[of[route.peer]][route.site])


def _from(route: ReceiveRoute, sends: list[Numbers], of: tuple[int, ...]) -> ReceiveRoute:
    if route.peer < 0:
        return route
    return replace(route, site=sends[of[route.peer]][route.site])


def _block(
    body: tuple[ir.Statement, ...], sends: Numbers, receives: Numbers, idle: set[int]
) -> tuple[ir.Statement, ...]:
    def messages(given: tuple[ir.Message, ...], numbers: Numbers) -> tuple[ir.Message, ...]:
        return tuple(replace(m, site=numbers[m.site]) for m in given if m.site in numbers)

    found: list[ir.Statement] = []
    for s in body:
        found += _statement(s, messages, sends, receives, idle)
    return tuple(found)


def _statement(
    s: ir.Statement,
    messages: Callable[[tuple[ir.Message, ...], Numbers], tuple[ir.Message, ...]],
    sends: Numbers,
    receives: Numbers,
    idle: set[int],
) -> list[ir.Statement]:
    if isinstance(s, ir.Grant):
        left = messages(s.receives, receives)
        return [replace(s, receives=left)] if left else []
    if isinstance(s, ir.Start | ir.Finish) and s.exchange in idle:
        return []
    if isinstance(s, ir.Start):
        return [replace(s, sends=messages(s.sends, sends))]
    if isinstance(s, ir.Finish):
        mine, theirs = messages(s.sends, sends), messages(s.receives, receives)
        others = tuple(k for k in s.others if k not in idle)
        return [replace(s, sends=mine, receives=theirs, others=others)]
    if isinstance(s, ir.PutSignal | ir.Get):
        return [replace(s, site=sends[s.site])] if s.site in sends else []
    return [ir.with_blocks(s, lambda inner: _block(inner, sends, receives, idle))]
