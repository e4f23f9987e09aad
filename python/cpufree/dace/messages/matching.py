"""Pairs sends with receives: the k-th message with a tag from one rank to another one.

MPI's messages between two ranks with one tag do not overtake one another. So the pairs are known if
both ranks run through their sites in the same order, in the same loops and branches: that is asked
for. Regions of a pair have the same shape, up to axes of one point.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from cpufree.compiler import ir
from cpufree.compiler.ranks.routes import ReceiveRoute, SendRoute
from cpufree.compiler.show import expression
from cpufree.dace.messages.exchanges import End, Ends
from cpufree.dace.messages.signals import OneSidedEvent

Stream = list[tuple[int, End]]
"""Sites and ends, in the order of the program."""


def routes(
    ends: list[Ends], types: dict[str, str]
) -> tuple[list[list[SendRoute]], list[list[ReceiveRoute]]]:
    """Return where each site of each rank sends to, and from where each receives.

    `types` are those of fields.

    Raises
    ------
    ProgramError
        A message has no counterpart, or another shape than it.
    """
    sends = [[_one_sided(end) for end in e.sends] for e in ends]
    receives = [[ReceiveRoute(-1)] * len(e.receives) for e in ends]
    outgoing, incoming = _streams(ends, "sends"), _streams(ends, "receives")
    for source, target in sorted({*outgoing, *incoming}):
        one, other = outgoing[source, target], incoming[source, target]
        _require_plain_tags([*one, *other])
        for tag in {*map(_key, one), *map(_key, other)}:
            pairs = _pairs(
                (source, [x for x in one if _key(x) == tag]),
                (target, [x for x in other if _key(x) == tag]),
                types,
            )
            for (k, _), (n, end) in pairs:
                sends[source][k] = SendRoute(target, n, end.event.region)
                receives[target][n] = ReceiveRoute(source, k)
    return sends, receives


def _one_sided(end: End) -> SendRoute:
    """Return the route of a put or get; a message has no target until its pair is found."""
    event = end.event
    if isinstance(event, OneSidedEvent):
        return SendRoute(event.peer, -1, event.there)
    return SendRoute(-1)


def _streams(ends: list[Ends], which: str) -> dict[tuple[int, int], Stream]:
    found: dict[tuple[int, int], Stream] = defaultdict(list)
    for rank, of_rank in enumerate(ends):
        for k, end in enumerate(getattr(of_rank, which)):
            peer = end.event.peer
            if peer >= 0 and not isinstance(end.event, OneSidedEvent):
                found[(rank, peer) if which == "sends" else (peer, rank)].append((k, end))
    return found


def _key(x: tuple[int, End]) -> Any:
    return x[1].event.tag


def _tag(tag: Any) -> str:
    return tag if isinstance(tag, str) else f"tag {expression(tag)}"


def _require_plain_tags(stream: Stream) -> None:
    """Refuse tags of which it is not known whether they are the same."""
    tags = {_key(x) for x in stream if not isinstance(_key(x), str)}
    moving = [t for t in tags if not isinstance(t, ir.Literal)]
    if moving and len(tags) > 1:
        text = " and ".join(sorted(_tag(t) for t in tags))
        stream[0][1].event.place.fail(
            f"two ranks exchange messages with {text}, which may be the same",
            "use numbers as tags, or one expression for all messages between two ranks",
        )


def _pairs(
    one: tuple[int, Stream], other: tuple[int, Stream], types: dict[str, str]
) -> list[tuple[tuple[int, End], tuple[int, End]]]:
    (source, sent), (target, received) = one, other
    if len(sent) != len(received):
        more = sent if len(sent) > len(received) else received
        x = more[min(len(sent), len(received))][1].event
        x.place.fail(
            f"rank {source} has {len(sent)} sends with {_tag(x.tag)} to rank {target}, which has "
            f"{len(received)} receives for them",
            "let every send have its receive, with the same tag",
        )
    for a, b in zip(_paths(sent), _paths(received), strict=True):
        if a[0] != b[0]:
            a[1].event.place.fail(
                f"rank {source} sends in other loops or branches than rank {target} receives "
                f"(line {b[1].event.place.line})",
                "let both ranks go through the same loops and branches between messages",
            )
    for (_, end), (_, other_end) in zip(sent, received, strict=True):
        _require_same_shape(source, end, target, other_end, types)
    return list(zip(sent, received, strict=True))


def _paths(stream: Stream) -> list[tuple[Any, End]]:
    """Return the loops and branches of each end, numbered as they appear in the stream."""
    numbers: dict[int, int] = {}
    found = []
    for _, end in stream:
        path = []
        for kind, number, what in end.path:
            path.append((kind, numbers.setdefault(number, len(numbers)), what))
        found.append((tuple(path), end))
    return found


def shape_of(region: ir.Region) -> tuple[int, ...]:
    """Return the points of a region along axes that have more than one."""
    return tuple(s.count for s in region.box if s.count != 1)


def _require_same_shape(source: int, a: End, target: int, b: End, types: dict[str, str]) -> None:
    of, to = a.event.region, b.event.region
    assert of is not None and to is not None
    if shape_of(of) != shape_of(to) or types[of.field] != types[to.field]:
        a.event.place.fail(
            f"rank {source} sends {types[of.field]} {list(shape_of(of))} of {of.field}, and rank "
            f"{target} receives {types[to.field]} {list(shape_of(to))} of {to.field} "
            f"(line {b.event.place.line})",
            "send and receive regions of the same shape and type",
        )
    if len(shape_of(of)) > 3:
        a.event.place.fail("a region of four axes is sent", "send parts of three axes or fewer")
