"""What triggered operations on two GPUs aimed at, and what the records say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpufree.bench.triggered.measure import TIMES, Series
from cpufree.bench.triggered.tables import to_seen as _to_seen

PATHS = {
    ("host", "none"): "HDN",
    ("at_end", "none"): "GDS",
    ("triggered", "copy_engine"): "copy engine",
    ("triggered", "block"): "block",
    ("triggered", "proxy"): "proxy",
    ("stores", "none"): "stores",
}
LARGEST_ORDERED = 65536  # bytes
REDUCE_TARGETS = ((8192, 1.5), (32768, 1.5), (131072, 1.5), (262144, 1.5), (1048576, 1.0),
                  (67108864, 0.9))  # fmt: skip
MANY_TRIGGERS, MANY_EPOCHS = 1_000_000, 10_000_000
BLOCK_WHY = (
    "{sent:.1f} µs until the trigger is sent, {begun:.1f} more until the NIC copies, {seen:.1f} "
    "more until the target sees it. Plain stores with a flag take {stores:.1f} µs: a fence of "
    "system scope, which waits for the link's answer, stands between data and flag in both"
)
ORDER_WHY = (
    "such a kernel has nothing that the message could overlap, and the stream behind it starts "
    "its copy sooner than one that waits for a word"
)
OVERLAP_WHY = (
    "{more:.1f} µs more a copy than copies in a row take. Between copies of a stream one wait or "
    "write of a word costs as much as two, and four streams are no faster than one: copy engine "
    "and what handles words take turns, and turns cost "
    "(`bench/results/stream-words-2x-2026-11-25.json`)"
)
SHORT_WHY = (
    "8 kB take {least:.1f} µs already: what does not depend on the bytes, which was not taken apart"
)
LONG_WHY = (
    "the vector's bytes over the time are {ours:.0f} GB/s, with NCCL {theirs:.0f}. In a ring of n "
    "GPUs each sends 2 (n − 1)/n times as many bytes"
)


@dataclass(frozen=True)
class Goal:
    """One line: what was to be reached, and what is; `why` where it is missed."""

    what: str
    aim: str
    reached: str
    good: bool
    why: str = ""

    def cells(self) -> list[str]:
        return [self.what, self.aim, self.reached, "met" if self.good else "**missed**"]


def goal(what: str, aim: str, reached: str, good: bool, why: str = "") -> Goal:
    """Return a goal whose reason is told only where it is missed."""
    return Goal(what, aim, reached, bool(good), "" if good else why)


def median(one: Series) -> float:
    """Return the median of a series of seconds."""
    return float(np.median(one.array()))


def to_seen(one: Series) -> npt.NDArray[np.float64]:
    """Return seconds from data ready to seen, of each message."""
    times: npt.NDArray[np.float64] = _to_seen(one)
    return times


def _is_nccl(one: Series) -> bool:
    return one.back_end == "NCCL"


def over_collective(measured: list[Series], count: int) -> float:
    """Return by how much the best all-reduce in a kernel is faster than NCCL's best."""
    here = [one for one in measured if one.size == count]
    ours = min(median(one) for one in here if not _is_nccl(one))
    return min((median(one) for one in here if _is_nccl(one)), default=np.nan) / ours


def best_jacobi(measured: list[Series], points: int, way: str) -> float:
    """Return seconds of an iteration, of the best number of blocks and NIC; nan: none ran."""
    those = [one for one in measured if one.size == points and one.name.startswith(way)]
    return min(map(median, those), default=np.nan)


def all_goals(measured: dict[str, list[Series]]) -> list[Goal]:
    """Return the goals of all studies that there are records of."""
    return [
        one
        for study, goals in _GOALS.items()
        if measured.get(study)
        for one in goals(measured[study])
    ]


def _messages(measured: list[Series]) -> Iterator[Goal]:
    afters = sorted({one.detail["after"] for one in measured}, reverse=True)
    for after in afters:
        yield from _small_message([one for one in measured if one.detail["after"] == after])
    for after in afters:
        good, rounds = _ordered([one for one in measured if one.detail["after"] == after])
        what = f"copy engine < GDS < HDN, each round and size up to 64 kB; {_kernels(after)}"
        yield goal(what, "all", f"{good} of {rounds}", good == rounds, ORDER_WHY)


def _kernels(after: float) -> str:
    return "kernels that go on" if after > 0 else "kernels that end with the trigger"


def _small_message(measured: list[Series]) -> Iterator[Goal]:
    """Yield the goals of 64 B, of kernels that all go on or all end."""
    those = {(one.name, one.back_end): one for one in measured if one.size == 64}
    after = measured[0].detail["after"]

    def of(name: str, back_end: str = "none") -> float:
        return float(np.median(to_seen(those[name, back_end])))

    kernels, ends = _kernels(after), ORDER_WHY if after == 0 else ""
    engine, block = of("triggered", "copy_engine"), of("triggered", "block")
    reached = f"{1e6 * engine:.1f} µs"
    yield goal(f"copy engine, 64 B; {kernels}", "≤ 13 µs", reached, engine <= 13e-6, ends)
    for name, way, most in (("GDS", "at_end", 0.75), ("HDN", "host", 0.65)):
        ratio = engine / of(way)
        what = f"copy engine over {name}, 64 B; {kernels}"
        yield goal(what, f"≤ {most}", f"{ratio:.2f}", ratio <= most, ends)
    stamps = np.median(those["triggered", "block"].array(), axis=0)
    ready, sent, begun, seen = (
        1e6 * stamps[TIMES.index(name)] for name in ("ready", "sent", "nic_begun", "seen")
    )
    why = BLOCK_WHY.format(
        sent=sent - ready, begun=begun - sent, seen=seen - begun, stores=1e6 * of("stores")
    )
    yield goal(f"block, 64 B; {kernels}", "≤ 3 µs", f"{1e6 * block:.1f} µs", block <= 3e-6, why)


def _ordered(measured: list[Series]) -> tuple[int, int]:
    """Return in how many of all rounds the order was as it should be."""
    those = {(one.size, one.name, one.back_end): one for one in measured}
    good = rounds = 0
    for count in {key[0] for key in those if key[0] <= LARGEST_ORDERED}:
        ways = [those[(count, *way)] for way in list(PATHS)[2::-1]]  # copy engine, GDS, HDN
        repeats = len(ways[0].detail["clock_errors"])
        medians = [np.median(to_seen(way).reshape(repeats, -1), axis=1) for way in ways]
        good += int(np.sum((medians[0] < medians[1]) & (medians[1] < medians[2])))
        rounds += repeats
    return good, rounds


def _overlap(measured: list[Series]) -> Iterator[Goal]:
    def rate(one: Series) -> float:
        return float(np.median(one.array()[:, 4] / one.array()[:, 3]))

    best = max((one for one in measured if one.back_end == "copy_engine"), key=rate)
    loss = float(np.median(best.array()[:, 1] / best.array()[:, 0])) - 1
    what = "copy engine, 8 MB, beside a kernel on all multiprocessors"
    share = rate(best)
    why = OVERLAP_WHY.format(more=1e6 * float(np.median(best.array()[:, 3] - best.array()[:, 4])))
    yield goal(f"{what}: rate", "≥ 95 %", f"{100 * share:.1f} %", share >= 0.95, why)
    yield goal("the kernel's loss", "≤ 2 %", f"{100 * loss:.2f} %", loss <= 0.02)


def _allreduce(measured: list[Series]) -> Iterator[Goal]:
    sizes = {one.size for one in measured}
    least_time = min(median(one) for one in measured if not _is_nccl(one))
    for count, least in REDUCE_TARGETS:
        if count not in sizes:
            continue
        over = over_collective(measured, count)
        unit = f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} kB"
        ours = min(median(one) for one in measured if one.size == count and not _is_nccl(one))
        why = (
            LONG_WHY.format(ours=1e-9 * count / ours, theirs=1e-9 * count / ours / over)
            if count > 1 << 20
            else SHORT_WHY.format(least=1e6 * least_time)
        )
        what = f"all-reduce in a kernel, {unit}, over NCCL's best"
        yield goal(what, f"≥ {least}×", f"{over:.2f}×", over >= least, why)


def _jacobi(measured: list[Series]) -> Iterator[Goal]:
    for way, name, least in (("at_end", "GDS", 1.1), ("host", "HDN", 1.2)):
        ratios = {
            n: best_jacobi(measured, n, way) / best_jacobi(measured, n, "triggered")
            for n in {one.size for one in measured}
        }
        n = max(ratios, key=lambda points: np.nan_to_num(ratios[points]))
        what = f"Jacobi, triggered halos, over its {name} form, best grid"
        yield goal(what, f"≥ {least}×", f"{ratios[n]:.2f}× ({n}²)", ratios[n] >= least)


def _soak(measured: list[Series]) -> Iterator[Goal]:
    for one in measured:
        epochs = int(one.name.split()[0])
        equal = one.detail["checksum"] == one.detail["expected"] and not one.detail["wrong"]
        reached = f"{epochs} epochs, {'equal' if equal else 'DIFFERENT'}"
        why = (
            f"at {1e6 * median(one):.1f} µs an epoch, 10⁷ take "
            f"{median(one) * MANY_EPOCHS / 60:.0f} minutes, which have not been run"
        )
        good = equal and epochs >= MANY_EPOCHS
        yield goal(f"long run by {one.back_end}, checksum", "10⁷ epochs", reached, good, why)


def _flood(measured: list[Series]) -> Iterator[Goal]:
    for one in measured:
        count = int(one.name.split()[0])
        what = f"triggers of 4 096 threads absorbed by {one.back_end}"
        reached = f"{count}, in {1e3 * median(one):.0f} ms"
        yield goal(what, "10⁶", reached, count >= MANY_TRIGGERS)


_GOALS = {
    "messages": _messages,
    "overlap": _overlap,
    "allreduce": _allreduce,
    "jacobi": _jacobi,
    "soak": _soak,
    "flood": _flood,
}
