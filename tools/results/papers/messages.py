"""Messages and launches: what LeBeane et al. 2017 and Groves et al. 2020 ask, out of samples."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable
from functools import cache

import numpy as np

from cpufree.machine.communication import Array, load_ways
from cpufree.model.fit import fit_curve, medians
from cpufree.model.samples import Sample, Samples, read_samples
from tools.results.papers.variability import Variability, variability
from tools.results.records import FOLDER, markdown

# Samples, the machine, and its file.
MACHINES = (
    ("model-2x-2026-11-26/samples.jsonl", "H100", "h100"),
    ("model-4x-2026-11-26/samples.jsonl", "H200", "h200"),
)
LAUNCHING = {"host-copy": "stream", "host-copy-graph": "graph"}
# Ways of which a page tells how times vary, of the device, of the host, of CPUs.
VARYING = (
    *("device-store-block", "device-packets", "device-get", "host-copy", "host-copy-graph"),
    *("host-nccl", "host-ipc", "host-managed", "threads-store", "processes-mpi"),
)
SENDING = ("device-store-block", "device-packets", "host-copy", "host-nccl", "threads-store")
DISTANCES = (
    ("same GPU, a flag", "shared-store-block", "flag", 8),
    ("same GPU, 8 B and a flag", "shared-store-block", "single", 8),
    ("NVLink, a flag", "device-store-block", "flag", 8),
    ("NVLink, a packet of 8 B", "device-packets", "single", 8),
    ("NVLink, 8 B and a flag", "device-store-block", "single", 8),
    ("memory of the host, 8 B and a flag", "device-pinned", "single", 8),
    ("the copy engine, 8 B", "host-copy", "single", 8),
    ("memory of another process, 8 B, the copy engine", "host-ipc", "single", 8),
)
GRAIN = ("nvshmem-p", "nvshmem-put-thread", "nvshmem-put-warp", "nvshmem-put-block")


@cache
def samples(record: str) -> Samples:
    """Return the samples of a record."""
    return read_samples(FOLDER / record)


def _rows(record: str, way: str, mode: str) -> list[Sample]:
    return [one for one in samples(record).rows if (one.way, one.mode) == (way, mode)]


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:.3g}" if seconds < 1e-3 else f"{1e6 * seconds:.0f}"


def launches() -> str:
    """Return what n empty kernels take, queued one behind the other: median and slowest repeat."""
    found: dict[int, list[str]] = {}
    heads = []
    for record, name, _ in MACHINES:
        for way, what in LAUNCHING.items():
            heads.append(f"{name}, {what}, µs (slowest)")
            for one in sorted(_rows(record, way, "launch"), key=lambda row: row.messages):
                median, most = statistics.median(one.seconds), max(one.seconds)
                found.setdefault(one.messages, []).append(f"{_micro(median)} ({_micro(most)})")
    return markdown(["kernels", *heads], [[str(n), *cells] for n, cells in found.items()])


def _time(record: str, way: str, mode: str, size: int) -> float | None:
    those = [one for one in _rows(record, way, mode) if one.bytes in (0, size)]
    return statistics.median(those[0].seconds) if those else None


def distances() -> str:
    """Return what the smallest message takes by distance."""
    rows = []
    for what, way, mode, size in DISTANCES:
        times = [_time(record, way, mode, size) for record, *_ in MACHINES]
        rows.append([what, f"`{way}`", *("–" if t is None else _micro(t) for t in times)])
    return markdown(["from where to where", "way", *(f"{n}, µs" for _, n, _ in MACHINES)], rows)


def synchronization() -> str:
    """Return S, what a fence takes, and its share of a message of 8 B by a device."""
    rows = []
    for record, name, file in MACHINES:
        for way, one in load_ways(file).ways.items():
            found, whole = one.parameters.get("S"), _time(record, way, "single", 8)
            if found is not None and whole is not None:
                cells = [name, f"`{way}`", _micro(found.value), _micro(whole)]
                rows.append([*cells, f"{found.value / whole:.0%}"])
    return markdown(["GPU", "way", "S, µs", "message of 8 B, µs", "share of S"], rows)


def fences() -> str:
    """Return what a fence takes, by what was stored before it."""
    found: dict[int, list[str]] = {}
    for record, *_ in MACHINES:
        for one in sorted(_rows(record, "device-store-block", "fence"), key=lambda row: row.bytes):
            found.setdefault(one.bytes, []).append(_micro(statistics.median(one.seconds)))
    names = [f"{name}, µs" for _, name, _ in MACHINES]
    return markdown(["bytes stored before", *names], [[f"{n:,}", *t] for n, t in found.items()])


def r_squared(t: Array, predicted: Array) -> float:
    """Return R² of the logarithms, by which validation goes."""
    mine, other = np.log(t), np.log(predicted)
    return float(1.0 - np.sum((mine - other) ** 2) / np.sum((mine - mine.mean()) ** 2))


def overheads() -> str:
    """Return how well the overhead of the call that sends follows a curve over the size, O(m)."""
    rows = []
    for record, name, _ in MACHINES:
        for way in SENDING:
            found = medians(samples(record), way, "send")
            if found is None:
                continue
            curve = fit_curve(found, way).curve
            t, m = found.seconds, found.sizes
            spread = f"{_micro(float(t.min()))} to {_micro(float(t.max()))}"
            rows.append([name, f"`{way}`", spread, f"{r_squared(t, curve(m)):.3f}"])
    return markdown(["GPU", "way", "least to most of all sizes, µs", "R² of the fit"], rows)


def granularity() -> str:
    """Return NVSHMEM's puts by thread, warp and block, over NVLink; Trotter et al., 2.1.4."""
    sizes = (8, 1024, 1 << 16)
    rows = []
    for way in GRAIN:
        times = [_time(MACHINES[0][0], way, "single", size) for size in sizes]
        rows.append([f"`{way}`", *("–" if t is None else _micro(t) for t in times)])
    return markdown(["way, two H100", "8 B, µs", "1 KiB", "64 KiB"], rows)


def varying() -> str:
    """Return how far times of one message vary, and how often further ones lie within that."""
    rows = []
    for record, name, _ in MACHINES:
        for way in VARYING:
            if (found := variability(samples(record), way)) is not None:
                rows.append([name, f"`{way}`", *_terms(found)])
    heads = ["GPU", "way", "sizes", "same for all sizes, µs", "share of the median"]
    return markdown([*heads, "of sizes held out, within"], rows)


def _terms(found: Variability) -> Iterable[str]:
    return (
        *(str(found.sizes), _micro(found.fixed), f"{found.share:.1%}"),
        f"{found.inside:.0%} of {found.held_out}",
    )


def identified() -> str:
    """Return of how many ways each parameter is known, and why not of others, on both machines."""
    rows = []
    for _, name, file in MACHINES:
        ways = load_ways(file).ways.values()
        for parameter in ("L", "o_send", "o_recv", "g", "G", "O", "S"):
            known = sum(parameter in way.parameters for way in ways)
            why = Counter(
                "only its sum with the overheads" if parameter == "L" else way.unknown[parameter]
                for way in ways
                if parameter in way.unknown
            )
            said = "; ".join(f"{count}: {reason}" for reason, count in why.most_common())
            rows.append([name, f"`{parameter}`", f"{known} of {len(ways)}", said or "–"])
    return markdown(["GPU", "parameter", "known of ways", "why not of others"], rows)
