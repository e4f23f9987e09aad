"""A trace in Chrome's format of trace events, JSON, which many viewers read."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from cpufree.trace.timeline import Timeline, track_name


def to_chrome(line: Timeline, own: bytes = b"") -> bytes:
    """Return the file of a time line; `own`: what else goes in, for this package alone."""
    head = json.dumps({"displayTimeUnit": "ns", "cpufree": own.decode()})[:-1]
    events = ",\n".join(_events(line))
    return f'{head}, "traceEvents": [\n{events}\n]}}\n'.encode()


def _events(line: Timeline) -> Iterator[str]:
    """One text for each event; times in microseconds, as the format has them."""
    trace = line.trace
    for pe in range(trace.pes):
        yield _meta("process_name", pe, 0, f"PE {pe}")
        yield _meta("process_sort_index", pe, 0, pe)
    if line.host:
        yield _meta("process_name", trace.pes, 0, "host")
    for number, (pe, block, thread, *_) in enumerate(trace.tracks.tolist()):
        name = track_name(trace, block, thread)
        yield _meta("thread_name", pe, number + 1, name)
        yield _meta("thread_sort_index", pe, number + 1, block * 64 + thread)
    for name, begin, end in line.host:
        lasts = f'"ts":{begin / 1000:.3f},"dur":{(end - begin) / 1000:.3f}'
        yield f'{{"ph":"X","name":{json.dumps(name)},"pid":{trace.pes},"tid":0,{lasts}}}'
    yield from _slices(line)
    yield from _arrows(line)
    for name, (time, pes, value) in (
        ("bytes under way", line.under_way),
        ("blocks that wait", line.waiting),
    ):
        for t, p, v in zip(_micro(time + line.base), pes.tolist(), value.tolist(), strict=True):
            yield (
                f'{{"ph":"C","name":"{name}","pid":{p},"tid":0,"ts":{t},"args":{{"value":{v}}}}}'
            )


def _slices(line: Timeline) -> Iterator[str]:
    slices, pes = line.slices, line.trace.tracks[:, 0].tolist()
    texts = [json.dumps(text) for text in line.names.texts]
    columns = (slices.track, slices.name, slices.epoch)
    numbers = (column.tolist() for column in columns)
    times = _micro(slices.begin + line.base), _micro(slices.end - slices.begin)
    for track, name, epoch, begin, lasts in zip(*numbers, *times, strict=True):
        told = f',"args":{{"epoch":{epoch}}}' if epoch >= 0 else ""
        yield (
            f'{{"ph":"X","name":{texts[name]},"pid":{pes[track]},"tid":{track + 1},'
            f'"ts":{begin},"dur":{lasts}{told}}}'
        )


def _arrows(line: Timeline) -> Iterator[str]:
    """Instants where something is put, and arrows from there to the end of the wait."""
    trace, pes = line.trace, line.trace.tracks[:, 0].tolist()
    texts = [json.dumps(line.names.texts[k]) for k in line.put_names()]
    puts = line.puts
    for text, track, t, epoch, size in zip(
        texts, trace.track[puts].tolist(), _micro(trace.time[puts] + line.base),
        trace.lower[puts].tolist(), line.payload[puts].tolist(), strict=True,
    ):  # fmt: skip
        yield (
            f'{{"ph":"i","s":"t","name":{text},"pid":{pes[track]},"tid":{track + 1},"ts":{t},'
            f'"args":{{"epoch":{epoch},"bytes":{size}}}}}'
        )
    for phase, records in (("s", line.arrows.sent), ("f", line.arrows.seen)):
        binds = ',"bp":"e"' if phase == "f" else ""
        for number, (track, t) in enumerate(
            zip(trace.track[records].tolist(), _micro(trace.time[records] + line.base), strict=True)
        ):
            yield (
                f'{{"ph":"{phase}","id":{number},"name":"message","cat":"message",'
                f'"pid":{pes[track]},"tid":{track + 1},"ts":{t}{binds}}}'
            )


def _meta(name: str, pe: int, track: int, value: str | int) -> str:
    key = "sort_index" if isinstance(value, int) else "name"
    found = {"ph": "M", "name": name, "pid": pe, "tid": track, "args": {key: value}}
    return json.dumps(found)


def _micro(time: np.ndarray) -> list[str]:
    return [f"{t // 1000}.{t % 1000:03d}" for t in time.tolist()]
