"""A trace as ui.perfetto.dev reads it: track events in protocol buffers.

The numbers of fields are those of Perfetto's public trace_packet.proto, track_event.proto,
track_descriptor.proto, interned_data.proto and debug_annotation.proto.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cpufree.trace.protobuf import Rows, number, piece
from cpufree.trace.records import Integers
from cpufree.trace.timeline import Timeline, track_name

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
OWN_FIELD = 7_003
"""Of a packet that other readers skip: the records themselves (files.py)."""
_PACKET, _SEQUENCE, _FLAGS = 1, 10, 13
_EPOCH, _BYTES = 1, 2  # numbers of the names of annotations
_HOST = 900_001
_EXPLICIT = 3  # children of a track in the order of their ranks


def to_perfetto(line: Timeline, own: bytes = b"") -> bytes:
    """Return the file of a time line; `own`: what else goes in, for this package alone."""
    events = [_host(line), *_slices(line), _puts(line), *_counters(line)]
    head = _tracks(line) + _names(line)
    return b"".join([head, *(e for e in events), _packet(piece(OWN_FIELD, own)) if own else b""])


def pe_uuid(pe: int) -> int:
    """Return the number of the track of a PE."""
    return 1 + pe


def track_uuid(line: Timeline) -> Integers:
    """Return the number of the track of each ring; puts are on that of the block."""
    return 1_000_000 + np.arange(len(line.trace.tracks))


def block_tracks(line: Timeline) -> Integers:
    """Return the ring of the first thread of the block of each ring."""
    tracks = line.trace.tracks
    firsts = {(pe, block): k for k, (pe, block, thread, *_) in reversed([*enumerate(tracks)])}
    return np.array([firsts[pe, block] for pe, block, *_ in tracks], np.int64)


def _counter_uuid(kind: int, pe: int) -> int:
    return 500_000 + 2 * pe + kind


def _packet(content: bytes) -> bytes:
    return piece(_PACKET, content + number(_SEQUENCE, 1))


def _descriptor(uuid: int, name: str, rank: int, parent: int = 0, more: bytes = b"") -> bytes:
    body = number(1, uuid) + piece(2, name) + number(12, rank) + more
    body += number(5, parent) if parent else b""
    return _packet(piece(60, body))


def _tracks(line: Timeline) -> bytes:
    """In order: PEs, of each its counters, its blocks, and threads of these."""
    trace, found = line.trace, []
    what = trace.facts.get("what", "kernel")
    found.append(_descriptor(900_000, f"cpufree {what}", 0, more=number(11, _EXPLICIT)))
    if line.host:
        found.append(_descriptor(_HOST, "host", 0, 900_000))
    for pe in range(trace.pes):
        order = number(11, _EXPLICIT)
        found.append(_descriptor(pe_uuid(pe), f"PE {pe}", 1 + pe, 900_000, order))
        for kind, (name, unit) in enumerate((("bytes under way", 3), ("blocks that wait", 2))):
            uuid = _counter_uuid(kind, pe)
            counter = piece(8, number(3, unit))
            found.append(_descriptor(uuid, name, kind, pe_uuid(pe), counter))
    for uuid, (pe, block, thread, *_) in zip(track_uuid(line), trace.tracks, strict=True):
        name = track_name(trace, block, thread)
        rank = 10 + int(block) * 64 + int(thread)
        found.append(_descriptor(int(uuid), name, rank, pe_uuid(int(pe))))
    return b"".join(found)


def _names(line: Timeline) -> bytes:
    """The names that events refer to, for all packets that follow."""
    _ = line.slices, line.put_names()
    names = [*line.names.texts, "comes"]
    texts = [piece(2, number(1, k + 1) + piece(2, t)) for k, t in enumerate(names)]
    keys = [piece(3, number(1, k) + piece(2, t)) for k, t in ((_EPOCH, "epoch"), (_BYTES, "bytes"))]
    return _packet(piece(12, b"".join(texts + keys)) + number(_FLAGS, 1))


def _event(line: Timeline, times: Integers, kind: int, tracks: Integers, inner: Rows) -> Rows:
    """Return packets of track events; `inner`: what else the events have."""
    event = Rows(len(times)).same(number(9, kind)).numbers(11, tracks).add(inner)
    packet = (
        Rows(len(times))
        .numbers(8, times + line.base)
        .same(number(_SEQUENCE, 1) + number(_FLAGS, 2))
    )
    return packet.add(event.within(11)).within(_PACKET)


def _annotation(name: int, values: Integers) -> Rows:
    """Return a number with a name, as an annotation of each event."""
    return Rows(len(values)).same(number(1, name)).numbers(3, values, 5).within(4)


def _host(line: Timeline) -> bytes:
    """Return the phases of the host, one after the other, with names of their own."""
    found = []
    for name, begin, end in line.host:
        for time, kind in ((begin, BEGIN), (end, END)):
            event = number(9, kind) + number(11, _HOST)
            event += piece(23, name) if kind == BEGIN else b""
            found.append(_packet(number(8, time) + piece(11, event)))
    return b"".join(found)


def _slices(line: Timeline) -> list[bytes]:
    """Begins and ends, in an order in which slices of one track are nested."""
    s, uuid = line.slices, track_uuid(line)
    seen = line.arrows.seen
    came, where = line.trace.time[seen], line.trace.track[seen]
    told = Rows(len(s.begin)).numbers(10, s.name + 1, 5).add(_annotation(_EPOCH, s.epoch.clip(0)))
    name = Rows(len(seen)).same(number(10, len(line.names.texts) + 1))
    tables = [
        # An arrow has to end after it begins, so not where the wait begins.
        _event(line, came, INSTANT, uuid[where], name.fixed(48, 1 + np.arange(len(seen)))),
        _event(line, s.end, END, uuid[s.track], Rows(len(s.end))),
        _event(line, s.begin, BEGIN, uuid[s.track], told),
    ]
    every = np.arange(len(s.begin))
    which = np.repeat([0, 1, 2], [len(seen), len(every), len(every)])
    place = np.concatenate([np.arange(len(seen)), every, every])
    # By track and time; at one time arrivals and ends first; of slices that begin together the
    # longest first, of those that end together the last to begin.
    time = np.concatenate([came, s.end, s.begin])
    inner = np.concatenate([np.zeros_like(came), -s.begin, -s.end])
    order = np.lexsort((inner, which, time, np.concatenate([where, s.track, s.track])))
    return [_interleaved([rows.table() for rows in tables], which[order], place[order])]


def _interleaved(tables: list[npt.NDArray[np.uint8]], which: Integers, row: Integers) -> bytes:
    """Return rows of several tables, one after the other."""
    widths = np.array([table.shape[1] for table in tables])
    places = np.concatenate([[0], np.cumsum(widths[which])])
    out = np.empty(places[-1], np.uint8)
    for number_, table in enumerate(tables):
        mine = which == number_
        at = places[:-1][mine]
        out[at[:, None] + np.arange(table.shape[1])] = table[row[mine]]
    return out.tobytes()


def _puts(line: Timeline) -> bytes:
    """Instants on the tracks of blocks: one for each receipt, and each put never seen."""
    trace, puts = line.trace, line.puts
    tracks = track_uuid(line)[block_tracks(line)] if len(trace.tracks) else np.zeros(0, np.int64)
    names = np.zeros(len(trace.kind), np.int64)
    names[puts] = line.put_names()
    receipts = line.arrows
    lonely = np.setdiff1d(puts, receipts.sent)

    def event(records: Integers) -> Rows:
        told = _annotation(_EPOCH, trace.lower[records])
        told = told.add(_annotation(_BYTES, line.payload[records]))
        return Rows(len(records)).numbers(10, names[records] + 1, 5).add(told)

    def packets(records: Integers, inner: Rows) -> bytes:
        at = tracks[trace.track[records]]
        return _event(line, trace.time[records], INSTANT, at, inner).table().tobytes()

    arrows = event(receipts.sent).fixed(47, 1 + np.arange(len(receipts.sent)))
    return packets(receipts.sent, arrows) + packets(lonely, event(lonely))


def _counters(line: Timeline) -> list[bytes]:
    found = []
    for kind, (time, pe, value) in enumerate((line.under_way, line.waiting)):
        uuid = np.array([_counter_uuid(kind, p) for p in range(line.trace.pes)], np.int64)
        rows = Rows(len(time)).numbers(30, value)
        found.append(_event(line, time, COUNTER, uuid[pe], rows).table().tobytes())
    return found
