"""Ways between PEs that kernels use, timed inside a kernel: CPU threads, processes, GPUs.

One text in C++ over the engines' port (`cpufree/probes/`) measures all of them. On CPU engines the
receiver of a message reads its values, which is when they come over; on GPUs a message has come
when its flag is seen.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from cpufree.errors import CpufreeError, EngineError, InvalidInputError, WaitTimeoutError
from cpufree.extension import load_core, load_gpu_core
from cpufree.model.samples import Kind
from cpufree.model.ways.line_peers import LinePeers, why_no_pair
from cpufree.model.ways.probe_verbs import GPU_VERBS, PINNED_VERBS, SHARED_VERBS, VERBS, Verb

if TYPE_CHECKING:
    from cpufree._core import Probe

LIMIT = 60.0
"""Seconds that a PE waits for the other one."""
TRY = 10.0
"""The same, of the first message of a way."""
MOST_BYTES = 1 << 23
WINDOW_BYTES = 1 << 24
MOST_RUNS = 4
"""Of an order, while other programs take a core in each of them."""
RETRY_SECONDS = 3.0
"""That a way spends on such further runs."""
BULK_CAPABILITY = (9, 0)
"""The compute capability that bulk copies out of shared memory came with."""
GPU_THREADS = 256
"""Of a block; messages of one block are what is measured."""
TIMED_BYTES = 1 << 16
MOST_ROUNDS = 16
"""Round trips that one time is of: fewer where these have more bytes than TIMED_BYTES."""
VALUE_BYTES = 8
SUMS = (1, 2, 4, 8)
PAIRS = (2, 4)
BLOCKS = (2, 4, 16, 64)
CROWD_BYTES = (8, 65536)
"""Messages that several pairs, or blocks of a pair, exchange at the same time."""
DIRTY = (0, 8, 64, 512, 4096, 32768, 262144, 1048576)
"""Bytes stored before a fence that is timed."""

Extra = tuple[str, int, int]
"""Mode, bytes, and how many pairs or blocks exchange at the same time."""


class ProbeWay:
    """A way between two threads of this process; other engines are derived from it."""

    engine = "threads"
    place = "host"
    most_bytes = MOST_BYTES
    most_call_bytes = 8192
    most_window_bytes = WINDOW_BYTES

    def __init__(self, name: str, verb: Verb) -> None:
        self.name = name
        self.verb = verb
        self.kind = Kind(self.place, self.place, self.place, verb.message)
        self.what = f"{verb.what}, between {self.engine}"
        self.modes = verb.modes
        self._probe: Probe | None = None
        self._crowds: dict[tuple[str, int], Probe] = {}
        self.runs = 0
        """Runs of kernels whose times count, and those in which another program took a core."""
        self.disturbed = 0
        self._spent = 0.0

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        try:
            cores = self._cores()
        except CpufreeError as error:
            return str(error)
        return "" if cores >= 2 else f"two PEs need a core each, and there is {cores}"

    @staticmethod
    def _cores() -> int:
        return int(load_core().available_cores())

    def extras(self) -> tuple[list[Extra], dict[str, str]]:
        """Return what is measured beside messages, and what cannot be, with the reason."""
        if not self.verb.leads:
            return [], {}
        there: list[Extra] = [("flag", VALUE_BYTES, 1)]
        there += [("allreduce", VALUE_BYTES * values, 1) for values in SUMS]
        crowds, lacking = self._crowd_extras()
        return there + crowds, lacking

    def _crowd_extras(self) -> tuple[list[Extra], dict[str, str]]:
        there: list[Extra] = []
        lacking = {f"{self.name}, fence": "flags of this engine order what is stored before them"}
        cores = self._cores()
        for pairs in PAIRS:
            if 2 * pairs <= cores:
                there += [("pairs", size, pairs) for size in CROWD_BYTES]
            else:
                lacking[f"{self.name}, {pairs} pairs at once"] = (
                    f"{2 * pairs} PEs need a core each, and there are {cores}: what would be "
                    "measured is the operating system"
                )
        return there, lacking

    def open(self) -> None:
        """Set the way up, unless it is."""
        if self._probe is None:
            self._probe = self._make(2, 1, WINDOW_BYTES)

    def _make(self, pes: int, blocks: int, window_bytes: int) -> Probe:
        probe: Probe = load_core().Probe(pes, blocks, window_bytes)
        return probe

    def _crowd(self, mode: str, count: int) -> Probe:
        if (mode, count) not in self._crowds:
            shape = (2 * count, 1) if mode == "pairs" else (2, count)
            self._crowds[mode, count] = self._make(*shape, max(CROWD_BYTES))
        return self._crowds[mode, count]

    def times(
        self, mode: str, size: int, messages: int, warm_ups: int, repeats: int
    ) -> list[float]:
        """Return the seconds of exchanges in one run of a kernel.

        Args:
            mode: one of `modes`, or of an extra. size: bytes of a message, of the values of a sum,
            or those stored before a fence. messages: of a window; pairs or blocks at the same
            time. warm_ups: exchanges before those that count.

        Raises:
            InvalidInputError: the way cannot send messages of this size. EngineError: the other
            PE did not answer within LIMIT, or values arrived wrong.
        """
        least = 0 if mode == "fence" else VALUE_BYTES
        if not least <= size <= self.most_bytes or size % VALUE_BYTES:
            raise InvalidInputError(
                f"way {self.name} cannot send messages of {size} B: give multiples of "
                f"{VALUE_BYTES} up to {self.most_bytes}"
            )
        rounds = 1 if mode in ("window", "send", "receive", "fence") else rounds_of(size)
        warm_ups = -(-warm_ups // rounds)
        if mode in ("pairs", "blocks"):
            order = (self.verb.probe, "single", size, 1, rounds, warm_ups, repeats, LIMIT)
            return self._run(order, self._crowd(mode, messages))
        assert self._probe is not None, "open comes before times"
        order = (self.verb.probe, mode, size, messages, rounds, warm_ups, repeats, LIMIT)
        return self._run(order, self._probe)

    def _run(self, order: tuple[Any, ...], probe: Probe) -> list[float]:
        """Run an order, again where another program took a core meanwhile; the best run counts."""
        seconds, least = self._run_once(order, probe)
        begin = time.monotonic()
        for _ in range(MOST_RUNS - 1):
            if least == 0 or self._spent > RETRY_SECONDS:
                break
            again, disturbances = self._run_once(order, probe)
            if disturbances < least:
                seconds, least = again, disturbances
        self._spent += time.monotonic() - begin
        self.runs += 1
        self.disturbed += least > 0
        return seconds

    def _run_once(self, order: tuple[Any, ...], probe: Probe) -> tuple[list[float], int]:
        """Return the times of a run, and how often another program took a core meanwhile."""
        try:
            return probe.run(*order), probe.disturbances()
        except WaitTimeoutError as error:
            raise EngineError(f"way {self.name}: the other PE did not answer: {error}") from None

    def close(self) -> None:
        """Free what `open` has made."""
        self._probe = None
        self._crowds.clear()


def rounds_of(size: int) -> int:
    """Return how many round trips one time is of.

    >>> rounds_of(8), rounds_of(16384), rounds_of(1 << 20)
    (16, 4, 1)
    """
    return max(1, min(MOST_ROUNDS, TIMED_BYTES // max(size, 1)))


class ProcessProbe(ProbeWay):
    """A way between two processes that share memory."""

    engine = "processes"

    def __init__(self, name: str, verb: Verb) -> None:
        super().__init__(name, verb)
        self._peer = LinePeers(f"way {name}: the process at the other end", LIMIT)
        self._watch: threading.Thread | None = None

    def _crowd_extras(self) -> tuple[list[Extra], dict[str, str]]:
        return [], {}  # as between threads

    def open(self) -> None:
        """Start the process of the other PE, and share memory with it."""
        program = [sys.executable, "-m", "cpufree.model.ways.probe_peer", str(WINDOW_BYTES)]
        self._peer.start(program, 1)
        self._probe = load_core().Probe(2, 1, WINDOW_BYTES, 0)
        mine = self._probe.address()
        (theirs,) = self._peer.ask([{"address": mine}])
        self._probe.connect([mine, tuple(theirs["address"])])
        # Both have opened what the other one has made.
        self._peer.ask([{"connected": True}])
        watched = self._peer.first, self._probe
        self._watch = threading.Thread(target=_leave_when_gone, args=watched, daemon=True)
        self._watch.start()

    def _run_once(self, order: tuple[Any, ...], probe: Probe) -> tuple[list[float], int]:
        # An order ends in both processes before the next one begins, as the probe needs.
        self._peer.send([{"order": order}])
        try:
            seconds, disturbances = super()._run_once(order, probe)
        except EngineError:
            self._peer.kill()
            raise
        return seconds, disturbances + int(self._peer.answers(1)[0]["disturbances"])

    def close(self) -> None:
        """End the other process."""
        super().close()
        self._peer.close()
        if self._watch is not None:
            self._watch.join()


def _leave_when_gone(process: subprocess.Popen[str], probe: Probe) -> None:
    process.wait()
    probe.leave()


class GpuProbe(ProbeWay):
    """A way between two GPUs that reach one another's memory."""

    engine = "GPUs"
    place = "device"
    memory = "device"
    """Where the memory of PEs lies: device or pinned, which is on the host."""

    def lacking(self) -> str:
        """Return why this machine lacks the way, "" where it has it."""
        try:
            return why_no_pair(self._gpus()) or self._too_old() or self._try()
        except CpufreeError as error:
            return str(error)

    def _too_old(self) -> str:
        if self.verb.probe != "bulk":
            return ""
        old = [gpu for gpu in load_core().gpus() if gpu["compute_capability"] < BULK_CAPABILITY]
        return f"{old[0]['name']} has no bulk copies: they came with capability 9.0" if old else ""

    def _try(self) -> str:
        """Return why the way does not work, whatever the machine says of itself.

        It stays open where it does: kernels are loaded then.
        """
        try:
            self.open()
            assert self._probe is not None
            self._run_once((self.verb.probe, "single", VALUE_BYTES, 1, 1, 0, 1, TRY), self._probe)
        except CpufreeError as error:
            self.close()
            return str(error)
        return ""

    @staticmethod
    def _gpus() -> list[int]:
        return [gpu["index"] for gpu in load_core().gpus()]

    def _crowd_extras(self) -> tuple[list[Extra], dict[str, str]]:
        there: list[Extra] = [("fence", dirty, 1) for dirty in DIRTY]
        there += [("blocks", size, blocks) for blocks in BLOCKS for size in CROWD_BYTES]
        lacking = {}
        gpus = len(self._gpus())
        for pairs in PAIRS:
            if 2 * pairs <= gpus:
                there += [("pairs", size, pairs) for size in CROWD_BYTES]
            else:
                lacking[f"{self.name}, {pairs} pairs at once"] = (
                    f"{2 * pairs} PEs need a GPU each, and there are {gpus}"
                )
        return there, lacking

    def _make(self, pes: int, blocks: int, window_bytes: int) -> Probe:
        gpus = self._gpus()[:pes]
        probe: Probe = load_gpu_core().Probe(
            pes, blocks, window_bytes, gpus=gpus, threads=GPU_THREADS, place=self.memory
        )
        return probe


class PinnedProbe(GpuProbe):
    """A way between two GPUs through memory of the host, which their kernels write and read."""

    engine = "GPUs, through memory of the host"
    memory = "pinned"

    def extras(self) -> tuple[list[Extra], dict[str, str]]:
        """Return nothing: messages are all that is measured."""
        return [], {}


class SharedProbe(GpuProbe):
    """A way between two PEs that share a GPU."""

    engine = "PEs that share a GPU"

    @staticmethod
    def _gpus() -> list[int]:
        return [gpu["index"] for gpu in load_core().gpus()][:1] * 2

    def _crowd_extras(self) -> tuple[list[Extra], dict[str, str]]:
        return [("fence", dirty, 1) for dirty in DIRTY], {}


PROBE_WAYS: dict[str, Callable[[], ProbeWay]] = {
    f"{engine}-{name}": partial(way, f"{engine}-{name}", verb)
    for engine, way, verbs in (
        ("threads", ProbeWay, VERBS),
        ("processes", ProcessProbe, VERBS),
        ("device", GpuProbe, GPU_VERBS),
        ("device", PinnedProbe, PINNED_VERBS),
        ("shared", SharedProbe, SHARED_VERBS),
    )
    for name, verb in verbs.items()
}
"""What makes each way, by its name."""
