"""Files of samples: what was measured of each way, as JSON lines.

The first line is a header, the last one counts the others, so that a file that was cut short is
known as such. Between them is a line for each way, mode and size, with all times.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpufree.errors import FileFormatError, unreadable
from cpufree.machine.files import Field
from cpufree.output_file import write_text

FORMAT = "cpufree samples"
VERSION = 1
MODES = ("single", "window", "send", "receive")
"""single: one message one way, half a round trip; of puts and gets, until who has begun it knows of
its end. window: `messages` of them one way and, but for puts, 8 bytes back, all in all. send: for
how long the call that sends keeps the sender. receive: for how long the call that receives keeps
the receiver, where the message is there already."""
EXTRA_MODES = ("flag", "allreduce", "fence", "pairs", "blocks", "launch", "queue")
"""What some ways are measured in besides. flag: a flag without values, one way. allreduce: a sum of
`bytes` / 8 values over both PEs. fence: what orders `bytes` stored before it. pairs, blocks: single
messages that `messages` pairs of PEs, or blocks of one pair, exchange at the same time. launch,
queue: `messages` kernels that do nothing, queued one behind the other, until the last one has
ended; the calls alone."""
COUNTED_MODES = ("window", "pairs", "blocks")
LAUNCH_MODES = ("launch", "queue")
EMPTY_MODES = ("fence", *LAUNCH_MODES)
"""Those in which there may be no bytes."""
PLACES = ("host", "device")
HOST_DRIVEN = ", host-driven"
"""What the names of patterns on GPUs end with whose messages and kernels the host drives."""
LEAST_REPEATS = 3
LARGE_SHARE = 0.1
"""Of runs in which other programs took a core, above which reports warn."""

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Kind:
    """Who does what in a way (Ismayilov 2023, 4.1), and what a message of it is."""

    initiated: str
    """Who decides that a message goes: host or device."""
    triggered: str
    """Who starts the transfer."""
    controlled: str
    """Who sees to its progress and its end."""
    verb: str
    """message (one way), put or get."""


@dataclass(frozen=True)
class Sample:
    """Times of one way, mode and size."""

    way: str
    kind: Kind
    mode: str
    messages: int
    """1, or those of a window, or the pairs or blocks of those modes."""
    bytes: int
    """Of one message."""
    seconds: tuple[float, ...]
    """One for each repeat, in the order in which they were measured."""


@dataclass(frozen=True)
class PatternSample:
    """Times of a pattern of messages among all PEs, which no fit uses."""

    pattern: str
    engine: str
    """threads or gpus."""
    pes: int
    gpus: tuple[int, ...]
    """One for each PE, which may share them; none for threads."""
    bytes: int
    """Of the largest message."""
    table: tuple[int, ...]
    """Bytes from PE p to PE q, at [p * pes + q]; none for products."""
    alone: float
    """Seconds without messages: of a product its compute, all steps, on the slowest PE."""
    seconds: tuple[float, ...]
    """Of rounds: of the slowest PE."""
    apart: float = 0.0
    """By how much the slowest PE takes longer than the fastest one without messages."""
    computes: tuple[float, ...] = ()
    """Of a product, the seconds that each PE computes; none: they are not known."""


@dataclass(frozen=True)
class Samples:
    """All that a file of samples says."""

    date: str
    command: str
    machine: Mapping[str, Any]
    held_out: tuple[int, ...]
    """Sizes that no fit may use."""
    rows: tuple[Sample, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Ways that the machine lacks, and why."""
    patterns: tuple[PatternSample, ...] = ()
    origin: str = ""
    """The file, and a digest of it: "" where there is none."""
    digest: str = ""

    def ways(self) -> list[str]:
        """Return the ways in the order in which they come first."""
        return list(dict.fromkeys(row.way for row in self.rows))

    @property
    def disturbed(self) -> str:
        """What to tell of other programs that took cores of PEs, "" where they took few."""
        share = float(self.machine.get("disturbed", 0.0))
        if share <= LARGE_SHARE:
            return ""
        return (
            f"in {share:.0%} of the runs of threads and processes other programs took a core: what "
            "small messages take is not identifiable on a machine so busy"
        )


def write_samples(path: PathLike, samples: Samples) -> None:
    """Write samples; the file appears under its name when it is complete."""
    lines: list[dict[str, Any]] = [
        {
            "kind": "header",
            "format": FORMAT,
            "version": VERSION,
            "date": samples.date,
            "command": samples.command,
            "machine": dict(samples.machine),
            "held_out": list(samples.held_out),
        }
    ]
    for row in samples.rows:
        lines.append(
            {
                "kind": "sample",
                "way": row.way,
                **dataclasses.asdict(row.kind),
                "mode": row.mode,
                "messages": row.messages,
                "bytes": row.bytes,
                "repeats": len(row.seconds),
                "seconds": list(row.seconds),
            }
        )
    for pattern in samples.patterns:
        lines.append({"kind": "pattern", **dataclasses.asdict(pattern)})
    lines += [
        {"kind": "missing", "way": way, "reason": why} for way, why in samples.missing.items()
    ]
    lines.append({"kind": "end", "lines": len(lines)})
    write_text(path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines))


def read_samples(path: PathLike) -> Samples:
    """Read a file of samples.

    Raises:
        FileFormatError: it is missing, cut short, of another version, or damaged; the message names
        the line.
    """
    try:
        content = Path(path).read_bytes()
        text = content.decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise unreadable(f"{path}: cannot be read: {why}", path, error) from error
    lines = text.splitlines()
    if not lines:
        raise FileFormatError(f"{path}: it is empty; write it with cpufree model measure", path)
    parsed = [_line(path, number, line) for number, line in enumerate(lines, 1)]
    header, *body, last = parsed if len(parsed) > 1 else [*parsed, parsed[0]]
    if header.optional("format") != FORMAT:
        raise header.error("it is no header of a file of samples of cpufree model measure")
    if header.optional("version") != VERSION:
        said = f"version {header.optional('version')!r} of the format; this cpufree reads {VERSION}"
        raise header.error(f"{said}: measure again")
    if last.optional("kind") != "end":
        raise last.error("the line that ends the file does not follow: it was cut short")
    if last.at("lines").count() != len(lines) - 1:
        written = last.optional("lines")
        raise last.error(f"{len(lines) - 1} lines come before it, and {written} were written")
    kinds: dict[str, list[Field]] = {kind: [] for kind in ("sample", "missing", "pattern")}
    for line in body:
        kinds[line.at("kind").word(kinds)].append(line)
    machine = header.at("machine")
    machine.names()
    return Samples(
        date=header.at("date").text(),
        command=header.at("command").text(),
        machine=machine.content,
        held_out=header.at("held_out").counts(),
        rows=tuple(map(_sample, kinds["sample"])),
        missing={one.at("way").text(): one.at("reason").text() for one in kinds["missing"]},
        patterns=tuple(map(_pattern, kinds["pattern"])),
        origin=os.fspath(path),
        digest=hashlib.sha256(content).hexdigest(),
    )


def _line(path: PathLike, number: int, text: str) -> Field:
    """Return a line; errors name it, and its keys as places in it."""
    try:
        found = Field(path, f"line {number}", json.loads(text))
    except ValueError as error:
        said = f"{path}: line {number}: not JSON: {error}; was the file cut short?"
        raise FileFormatError(said, path) from None
    found.names()
    return found


def _times(at: Field) -> tuple[float, ...]:
    times = at.numbers()
    if any(one <= 0 for one in times):
        raise at.error(f"it has {min(times)!r}: times must be above 0")
    return times


def _sample(line: Field) -> Sample:
    initiated, triggered, controlled = (
        line.at(who).word(PLACES) for who in ("initiated", "triggered", "controlled")
    )
    verb = line.at("verb").word(("message", "put", "get"))
    kind = Kind(initiated, triggered, controlled, verb)
    mode, messages = line.at("mode").word((*MODES, *EXTRA_MODES)), line.at("messages").count()
    if mode not in LAUNCH_MODES and (mode in COUNTED_MODES) != (messages > 1):
        raise line.error(f"'messages' is {messages} in mode {mode}: only windows have several")
    seconds = _times(line.at("seconds"))
    if line.at("repeats").count() != len(seconds):
        raise line.error(f"'repeats' is {line.optional('repeats')}, with {len(seconds)} times")
    if len(seconds) < LEAST_REPEATS:
        raise line.error(f"{len(seconds)} times: too few, at least {LEAST_REPEATS} are needed")
    size = line.at("bytes").count(0 if mode in EMPTY_MODES else 1)
    return Sample(line.at("way").text(), kind, mode, messages, size, seconds)


def _pattern(line: Field) -> PatternSample:
    pes = line.at("pes").count(2)
    gpus, table = line.at("gpus").counts(0), line.at("table").counts(0)
    if len(gpus) not in (0, pes) or len(table) not in (0, pes * pes):
        raise line.error(f"'gpus' and 'table' must be for the {pes} PEs, or empty")
    alone = line.at("alone").number()
    # Files before December 2026 have no 'apart', nor 'computes'.
    apart = line.at("apart").number() if "apart" in line.names() else 0.0
    if not 0.0 <= apart <= alone:
        said = "both must be times, and the first one at most as long as the second"
        raise line.error(f"'apart' is {apart:g}, 'alone' {alone:g}: {said}")
    computes = _times(line.at("computes")) if "computes" in line.names() else ()
    if len(computes) not in (0, pes):
        raise line.error(f"'computes' has {len(computes)} times: one for each of the {pes} PEs")
    return PatternSample(
        line.at("pattern").text(),
        line.at("engine").word(("threads", "gpus")),
        pes,
        gpus,
        line.at("bytes").count(),
        table,
        alone,
        _times(line.at("seconds")),
        apart,
        computes,
    )


def held_out_of(sizes: Iterable[int]) -> tuple[int, ...]:
    """Return the sizes that are not powers of two: those that measurements hold out."""
    return tuple(sorted({size for size in sizes if size & (size - 1)}))
