"""Files of traces: pictures of a time line for other programs, with the records in them."""

from __future__ import annotations

import io
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import IO

import numpy as np

from cpufree.errors import FileFormatError
from cpufree.output_file import PathLike, write_file
from cpufree.trace import chrome, clocks, perfetto, protobuf, table
from cpufree.trace.asked import require_suffix
from cpufree.trace.records import Trace
from cpufree.trace.timeline import Timeline

OWN_HEAD = b"cpufree trace 1\n"


def save(trace: Trace, path: PathLike) -> None:
    """Write a trace: by the end of its name for Perfetto, for Chrome, or as a table.

    Parameters
    ----------
    trace
        As `Result.trace` has it.
    path
        .pftrace (ui.perfetto.dev; `load` reads it), .json (Chrome's format, which `load` reads,
        too), .csv.

    Raises
    ------
    InvalidInputError
        Another ending.
    FileFormatError
        The file cannot be written.

    Examples
    --------
    >>> import numpy as np
    >>> A = cpufree.generate.generate("poisson2d", nx=32, ny=32)
    >>> result = cpufree.solve(A, np.ones(1024), pes=2, engine="cpu_threads", trace=True)
    >>> cpufree.trace.save(result.trace, "out.pftrace")
    """
    suffix = require_suffix(path)
    writers: dict[str, Callable[[Timeline, IO[bytes]], object]] = {
        ".pftrace": lambda line, f: f.write(perfetto.to_perfetto(line, pack(line.trace))),
        ".json": lambda line, f: f.write(chrome.to_chrome(line, b64encode(pack(line.trace)))),
        ".csv": lambda line, f: f.write(table.to_csv(line)),
    }
    line = Timeline(checked(trace))
    with write_file(path) as file:
        writers[suffix](line, file)


def checked(trace: Trace) -> Trace:
    """Return a trace on one clock, in whose facts stands how well that is known.

    "clock_bound": by how many ns the clocks of two PEs may differ, -1 where that is not known of
    some; "early": messages that are seen before they are sent by more than that, which must not be.
    """
    trace = clocks.aligned(trace)
    line = Timeline(trace)
    known = clocks.measure(trace, line.messages)
    if trace.facts.get("one_clock", False):
        known = replace(known, bounds=np.zeros_like(known.bounds))
    early = clocks.violations(trace, line.messages, known.bounds)
    facts = {"clock_bound": known.bound, "early": len(early)}
    return Trace(trace.tracks, trace.words, trace.bytes, trace.starts, {**trace.facts, **facts})


def load(path: PathLike) -> Trace:
    """Read a trace from a file .pftrace or .json that this package has written.

    Or from one of a kernel of your own in C++ (docs/own-kernel.md).

    Parameters
    ----------
    path
        Of the file.

    Returns
    -------
    Trace
        The records, as they were saved.

    Raises
    ------
    FileFormatError
        There is no such file, or no records of this package are in it.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise FileFormatError(f"{path}: {error.strerror or error}", path) from error
    try:
        if content.startswith(OWN_HEAD):
            return of_own_kernel(content)
        own = _own_of_json(content) if content[:1] == b"{" else _own_of_perfetto(content)
        if own is not None:
            return unpack(own)
    except (ValueError, IndexError, KeyError, zlib.error, OSError, EOFError):
        pass
    raise FileFormatError(
        f"{path}: no trace of cpufree: it reads .pftrace and .json that --trace has written", path
    )


def _own_of_json(content: bytes) -> bytes | None:
    text = json.loads(content).get("cpufree")
    return None if text is None else b64decode(text)


def _own_of_perfetto(content: bytes) -> bytes | None:
    for _, packet in protobuf.fields(content):
        if isinstance(packet, int):
            continue
        for field, part in protobuf.fields(packet):
            if field == perfetto.OWN_FIELD and not isinstance(part, int):
                return bytes(part)
            if field != perfetto.OWN_FIELD:
                break
    return None


def of_own_kernel(content: bytes) -> Trace:
    """Return the trace of a kernel in C++ (write_trace in cpufree/trace/host_trace.hpp)."""
    numbers = np.frombuffer(content, np.int64, offset=len(OWN_HEAD))
    tracks, records, pes = numbers[:3].tolist()
    sizes = (5 * tracks, 2 * records, pes * pes, pes)
    if min(sizes) < 0 or sum(sizes) + 3 != len(numbers):
        raise ValueError("another number of records than the file says")
    parts = np.split(numbers[3:], np.cumsum(sizes)[:-1])
    facts = {"what": "own kernel", "engine": "cpu_threads", "one_clock": True, "pes": pes}
    facts["blocks"] = int(parts[0].reshape(-1, 5)[:, 1].max(initial=0)) + 1
    return Trace(
        parts[0].reshape(-1, 5), parts[1].view(np.uint64).reshape(-1, 2),
        parts[2].reshape(pes, pes), parts[3], facts,
    )  # fmt: skip


def pack(trace: Trace) -> bytes:
    """Return the records as bytes."""
    out = io.BytesIO()
    facts = np.frombuffer(json.dumps(trace.facts).encode(), np.uint8)
    np.savez_compressed(
        out, tracks=trace.tracks, words=trace.words, bytes=trace.bytes, starts=trace.starts,
        facts=facts,
    )  # fmt: skip
    return out.getvalue()


def unpack(content: bytes) -> Trace:
    """Return the records that `pack` has packed; ValueError and others where they are damaged."""
    with np.load(io.BytesIO(content), allow_pickle=False) as held:
        return Trace(
            held["tracks"], held["words"], held["bytes"], held["starts"],
            json.loads(held["facts"].tobytes()),
        )  # fmt: skip
