"""The protocol of measurement: which sizes, how often, in which order."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import platform
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from cpufree.errors import InvalidInputError
from cpufree.extension import load_core
from cpufree.host import memory_limits, processor_name, read_text, usable_cores
from cpufree.model.samples import LEAST_REPEATS, Sample, Samples, held_out_of
from cpufree.model.ways.catalog import Way
from cpufree.model.ways.peer_way import PeerWay

FIRST_WARM_UPS = 20
WARM_UPS = 3
"""Messages that are not measured, of each step: in the first round, and in each later one."""
POWERS = tuple(2**k for k in range(3, 24))
"""8 B to 8 MiB."""
OFF_POWERS = tuple(3 * 2**k for k in range(3, 22, 2))
"""Sizes between powers of two, kept for validation."""
SIZES = tuple(sorted(POWERS + OFF_POWERS))
WINDOWS = (16, 10_000)


@dataclass(frozen=True)
class Plan:
    """What is measured of each way.

    A round measures everything once, in an order of its own: what disturbs the machine for a while
    does not fall on a few sizes alone.
    """

    sizes: tuple[int, ...] = SIZES
    held_out: tuple[int, ...] = OFF_POWERS
    windows: tuple[int, ...] = WINDOWS
    window_bytes: int = 1 << 27
    """The most that a window may have in all."""
    rounds: int = 50
    seconds: float = 600.0
    """After so long and LEAST_ROUNDS nothing is measured again."""
    repeats: int = 20
    """Of an exchange in a round; fewer of large messages."""
    seed: int = 0
    """Of the order."""
    pattern_seconds: float = 60.0
    """After which no further pattern begins."""


QUICK = Plan(
    windows=WINDOWS[:1], window_bytes=1 << 24, rounds=15, seconds=20.0, repeats=2,
    pattern_seconds=10.0,
)  # fmt: skip
LEAST_ROUNDS = LEAST_REPEATS
"""What disturbs the machine for a while falls on no size alone, however little time there is."""
REPEATED_BYTES = 1 << 20
"""Bytes of a step in a round beyond which it is not repeated."""


def with_sizes(plan: Plan, sizes: Sequence[int]) -> Plan:
    """Return a plan of these sizes; those that are no powers of two are held out.

    Raises:
        InvalidInputError: a size is below 1.
    """
    for size in sizes:
        if size < 1:
            raise InvalidInputError(f"messages of {size} B: a message has at least 1")
    chosen = tuple(sorted(set(sizes)))
    return dataclasses.replace(plan, sizes=chosen, held_out=held_out_of(chosen))


Step = tuple[Way, str, int, int]


def steps_of(way: Way, plan: Plan) -> list[Step]:
    """Return (way, mode, bytes, messages) of all that is measured of a way.

    Raises:
        InvalidInputError: the way cannot send one of the sizes.
    """
    steps: list[Step] = []
    for size in plan.sizes:
        if size > way.most_bytes:
            raise InvalidInputError(
                f"way {way.name} cannot send messages of {size} B: at most {way.most_bytes}"
            )
        steps.append((way, "single", size, 1))
        for window in plan.windows:
            if window * size <= min(plan.window_bytes, way.most_window_bytes):
                steps.append((way, "window", size, window))
        if size <= way.most_call_bytes:
            steps += [(way, mode, size, 1) for mode in way.modes if mode in ("send", "receive")]
    return steps + [(way, *extra) for extra in way.extras()[0]]


def measure(
    ways: Sequence[Way],
    plan: Plan,
    command: str,
    progress: Callable[[int, int], None] = lambda done, rounds: None,
) -> Samples:
    """Measure ways, interleaved.

    Args:
        command: what is recorded as the command. progress: is told rounds done, and all rounds.

    Raises:
        InvalidInputError: a way cannot send one of the sizes. EngineError: a way broke down.
    """
    missing = missing_of(ways)
    there = [way for way in ways if way.name not in missing]
    steps = [step for way in there for step in steps_of(way, plan)]
    for way in there:
        missing.update(way.extras()[1])
    times: dict[Step, list[float]] = {step: [] for step in steps}
    end, order = time.monotonic() + plan.seconds, random.Random(plan.seed)
    with contextlib.ExitStack() as opened:
        for way in there:
            opened.callback(way.close)
            way.open()
        for done in range(plan.rounds):
            progress(done, plan.rounds)
            for step in order.sample(steps, len(steps)):
                if time.monotonic() < end or done < LEAST_ROUNDS:
                    times[step] += _seconds(step, plan, WARM_UPS if times[step] else FIRST_WARM_UPS)
            if time.monotonic() > end and done + 1 >= LEAST_ROUNDS:
                break
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    rows = tuple(
        Sample(way.name, way.kind, mode, messages, size, tuple(seconds))
        for (way, mode, size, messages), seconds in times.items()
    )
    facts = {**machine_facts(), "disturbed": disturbed_share(there)}
    return Samples(date, command, facts, plan.held_out, rows, missing)


def missing_of(ways: Sequence[Way]) -> dict[str, str]:
    """Return the ways that this machine lacks, and why.

    Processes of peers take seconds to start: those of all ways start beside one another.
    """
    found = {way.name: way.lacking() for way in ways if not isinstance(way, PeerWay)}
    peers = [way for way in ways if isinstance(way, PeerWay)]
    with ThreadPoolExecutor(max(1, len(peers))) as pool:
        reasons = pool.map(lambda way: way.lacking(), peers)
        found.update(zip((way.name for way in peers), reasons, strict=True))
    return {way.name: found[way.name] for way in ways if found[way.name]}


def disturbed_share(ways: Sequence[Way]) -> float:
    """Return the share of runs of kernels in which another program took a core of a PE."""
    runs = sum(way.runs for way in ways)
    return sum(way.disturbed for way in ways) / runs if runs else 0.0


def _seconds(step: Step, plan: Plan, warm_ups: int) -> list[float]:
    way, mode, size, messages = step
    repeats = max(1, min(plan.repeats, REPEATED_BYTES // max(size * messages, 1)))
    return way.times(mode, size, messages, warm_ups, repeats)


def machine_facts() -> dict[str, Any]:
    """Return what samples say of the machine."""
    total, _ = memory_limits(read_text("/proc/meminfo"), read_text("/sys/fs/cgroup/memory.max"))
    facts = {
        "cpu": processor_name(read_text("/proc/cpuinfo")),
        "cores": usable_cores(),
        "memory_bytes": total,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    there = load_core().gpus() if load_core().gpu_vendor() else []
    if there:
        facts["gpus"] = f"{len(there)} × {there[0]['name']}"
        facts["cuda"] = load_core().cuda_runtime()
    return facts
