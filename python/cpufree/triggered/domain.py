"""PEs with NICs of triggered operations, on CPU threads of this process or on GPUs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import (
    CpufreeWarning,
    InvalidInputError,
    UnsupportedError,
    WaitTimeoutError,
)
from cpufree.trace import asked
from cpufree.trace.asked import Recording, TraceGiven
from cpufree.trace.records import Trace
from cpufree.triggered.buffer import Buffer, Place, as_place
from cpufree.triggered.extension import (
    BACK_ENDS,
    GPU_BACK_ENDS,
    load_extension,
    load_gpu_extension,
)
from cpufree.triggered.program import Program
from cpufree.triggered.report import Report, report_of

if TYPE_CHECKING:
    from cpufree._triggered import Operation


EVENTS = 1 << 15
"""That the ring of a block, or of a NIC, holds."""


_WHOLE = (Recording.every, Recording.on_wait, Recording.after)


def _traced(given: TraceGiven) -> Recording | None:
    """Return how a domain is traced, None where it is not; errors for what it cannot do."""
    recording = asked.checked(given)
    if recording is not None and (recording.every, recording.on_wait, recording.after) != _WHOLE:
        raise UnsupportedError(
            "a domain has no iterations of which some could be left out, and its blocks tell of "
            "waits when they end: leave out every, on_wait and after"
        )
    return recording


@dataclass(frozen=True)
class Run:
    """A program that has ended.

    Attributes
    ----------
    seconds : float
        From the launch to the end of the last block.
    arrivals : list of list of (int, int)
        Tag and epoch of what each block took from its PE's queues; block b of PE q at
        q * blocks + b.
    """

    seconds: float
    arrivals: list[list[tuple[int, int]]]


class Domain:
    """PEs with symmetric memory and a NIC each; kernels trigger what the host has posted.

    After LeBeane, Hamidouche, Benton, Breternitz, Reinhardt, John (2017), GPU Triggered Networking
    for Intra-Kernel Communications. Operations may be posted before, while or after programs
    trigger them. At the end of `with`, triggers that did not fit are a TriggerError, and operations
    that never fired a CpufreeWarning.

    Parameters
    ----------
    pes : int
        PEs, each a group of CPU threads.
    blocks : int, default 1
        Blocks of each PE, which run concurrently.
    back_end : str, default "thread", and "copy_engine" on GPUs
        What carries operations out: "thread", a CPU thread for each PE; "libfabric" and
        "libfabric_queue", triggered operations of libfabric over loopback, by calls or by its
        deferred work queue. On GPUs "copy_engine", streams that wait for a counter; "block", a
        block of each GPU; "proxy", a CPU thread that copies for the GPU; "on_stream", copies at the
        end of a kernel.
    gpus : sequence of int, optional
        The GPU of each PE; several PEs may share one. Without it PEs are groups of CPU threads.
    operations, signals : int, default 64
        How many there are room for, numbered from 0.
    depth : int, default 64
        Triggers of a block, and posts of a PE, that may be on their way; entries of a queue.
    memory : int, default 1048576
        Bytes of buffers on each PE.
    wait_limit : float, default 60.0
        Seconds after which a wait is given up.
    times : bool, default False
        Whether to record when operations fire (`firings`).
    trace : True, file name or Recording, optional
        Record what blocks and NICs do, of all runs, on CPU threads: `trace` has it once the domain
        is closed, and the file, .pftrace, .json or .csv (docs/trace.md). NICs of libfabric write
        nothing; what they send is not known then.

    Raises
    ------
    InvalidInputError
        A number makes no sense.
    UnsupportedError
        This build has no such back end; `missing_back_ends` says why.

    Examples
    --------
    A put of PE 0 that both of its blocks trigger, seen by PE 1 before the kernel ends:

    >>> import cpufree
    >>> with cpufree.triggered.Domain(pes=2, blocks=2) as domain:
    ...     source, target = domain.buffer("source", 2), domain.buffer("target", 2)
    ...     domain.put(7, source, target, pe=0, to=1, threshold=2, signal=0)
    ...     program = domain.program()
    ...     for block in range(2):
    ...         steps = program.block(0, block).store(source.at(block, 1), 10.0 + block)
    ...         _ = steps.trigger(7)
    ...     _ = program.block(1).wait_signal(0, origin=0)
    ...     run = domain.run(program)
    ...     print(target.on(1))
    [10. 11.]
    """

    def __init__(
        self,
        pes: int,
        blocks: int = 1,
        *,
        back_end: str | None = None,
        gpus: Sequence[int] | None = None,
        operations: int = 64,
        signals: int = 64,
        depth: int = 64,
        memory: int = 1 << 20,
        wait_limit: float = 60.0,
        times: bool = False,
        trace: TraceGiven = None,
    ) -> None:
        if not 0.0 < wait_limit <= 1e6:
            raise InvalidInputError(f"wait_limit is {wait_limit}; it is 0 to 1000000 seconds")
        if memory < 0:
            raise InvalidInputError(f"memory is {memory} bytes; it must not be negative")
        self.pes = pes
        self.blocks = blocks
        self._operations = operations
        sizes = {
            "pes": pes,
            "blocks": blocks,
            "depth": depth,
            "operations": operations,
            "signals": signals,
            "bytes": memory,
        }
        self._ended = False
        self._core: Any
        self._asked = _traced(trace)
        self.trace: Trace | None = None
        self.back_end = back_end or (BACK_ENDS if gpus is None else GPU_BACK_ENDS)[0]
        if gpus is None:
            name, self._structs = self.back_end, load_extension()
            events = EVENTS if self._asked else 0
            self._core = self._structs.Domain(sizes, name, wait_limit, times, events)
        elif self._asked:
            raise UnsupportedError("domains are traced on CPU threads: leave out gpus, or trace")
        else:
            name, self._structs = self.back_end, load_gpu_extension()
            places = [int(gpu) for gpu in gpus]
            self._core = self._structs.Domain(sizes, name, wait_limit, times, places)

    def buffer(self, name: str, size: int) -> Buffer:
        """Return a new buffer of `size` float64 values on every PE, zeros."""
        if size < 0:
            raise InvalidInputError(f"buffer '{name}' of {size} values")
        return Buffer(self._core, name, size)

    def put(
        self,
        tag: int,
        source: Buffer | Place,
        target: Buffer | Place,
        *,
        pe: int,
        to: int = 0,
        threshold: int = 1,
        epoch: int = 0,
        epochs: int = 1,
        slots: int = 1,
        signal: int | None = None,
        reports: bool = False,
        open: Iterable[str] = (),
    ) -> None:
        """Register a put with PE `pe`'s NIC: `source` there goes to `target` on PE `to`.

        Parameters
        ----------
        tag : int
            Its number among the NIC's operations.
        source, target : Buffer or Place
            Of the same size. Of an open field the size counts.
        pe : int
            Whose NIC carries it out.
        to : int, default 0
            The PE that it writes to.
        threshold : int, default 1
            Triggers that it waits for: 0 to 2147483647. With 0 it fires at once.
        epoch : int, default 0
            The first epoch. Epochs are posted in order.
        epochs : int, default 1
            How many: each is armed as the one before has fired, without the host.
        slots : int, default 1
            Buffers that epochs take in turn: the place of epoch e is e % slots times its size
            further on.
        signal : int, optional
            A flag on `to` that tells of each epoch.
        reports : bool, default False
            Whether `to` finds the tag in its queue from `pe`.
        open : iterable of {"source", "target", "pe"}
            What triggers supply.

        Raises
        ------
        InvalidInputError
            The threshold is out of range, the epoch was posted already, buffers overlap, are freed
            or of different sizes, or a PE or signal does not exist.
        """
        operation = self._operation(tag, source, target, threshold, epoch, epochs, slots)
        operation.pe = to
        operation.signal = -1 if signal is None else signal
        operation.reports = reports
        for field in open:
            operation.leave_open(field)
        self._core.post(pe, operation)

    def get(
        self,
        tag: int,
        source: Buffer | Place,
        target: Buffer | Place,
        *,
        pe: int,
        origin: int,
        threshold: int = 1,
        epoch: int = 0,
        epochs: int = 1,
        slots: int = 1,
        signal: int | None = None,
    ) -> None:
        """Register a get with PE `pe`'s NIC: `source` on PE `origin` comes to `target` on `pe`.

        The parameters are those of `put`; the signal tells `origin` that its values were read.
        """
        operation = self._operation(tag, source, target, threshold, epoch, epochs, slots)
        operation.kind = self._structs.OperationKind.get
        operation.pe = origin
        operation.signal = -1 if signal is None else signal
        self._core.post(pe, operation)

    def _operation(
        self,
        tag: int,
        source: Buffer | Place,
        target: Buffer | Place,
        threshold: int,
        epoch: int,
        epochs: int,
        slots: int,
    ) -> Operation:
        """Return what a put and a get have in common, of the struct that the NICs read."""
        first = as_place(source, self._core, f"tag {tag}, source")
        there = as_place(target, self._core, f"tag {tag}, target")
        if first.count != there.count:
            raise InvalidInputError(
                f"tag {tag}: source has {first.count} values and target {there.count}"
            )
        for name, value, least in (("tag", tag, 0), ("epoch", epoch, 0), ("slots", slots, 1)):
            if not least <= value < 1 << 32:
                raise InvalidInputError(f"{name} is {value}; it is {least} to 4294967295")
        if not 1 <= epochs < 1 << 32 or not 0 <= threshold < 1 << 63:
            raise InvalidInputError(
                f"tag {tag}: epochs is {epochs} and threshold {threshold}; epochs are 1 to "
                "4294967295, thresholds 0 to 2147483647"
            )
        operation: Operation = self._structs.Operation()
        operation.first = self._structs.Tag(tag, epoch)
        operation.epochs, operation.threshold, operation.slots = epochs, threshold, slots
        operation.source, operation.target = first.offset, there.offset
        operation.bytes = first.bytes
        operation.source_step = operation.target_step = first.bytes if slots > 1 else 0
        return operation

    def program(self) -> Program:
        """Return an empty program for `run`."""
        return Program(self._core, self._structs, self.pes, self.blocks)

    def run(self, program: Program) -> Run:
        """Launch a kernel on every PE that runs the program; return when all have ended.

        Raises WaitTimeoutError where a wait is given up: it says what the NICs had seen, and the
        domain is closed. Raises InvalidInputError, before the launch, where the program is of
        another domain, names a buffer that has been freed, or supplies what does not fit the
        operation that has been posted.
        """
        program.require_runs_in(self._core)
        outcome = self._core.run(program.steps(), program.values())
        if outcome["waits"]:
            raise WaitTimeoutError(
                "a block waited longer than allowed; all PEs have left their kernels"
                + outcome["text"],
                outcome["waits"],
            )
        return Run(outcome["seconds"], outcome["arrivals"])

    def firings(self, pe: int) -> npt.NDArray[np.int64]:
        """Return what PE `pe`'s NIC has fired, once the domain is closed.

        Rows of tag, epoch, and the nanoseconds of the steady clock at which it was found ready and
        at which its flags were set.
        """
        rows: npt.NDArray[np.int64] = self._core.firings(pe)
        return rows

    def close(self) -> Report:
        """End the NICs; what has not fired never will, and is in the report."""
        report = report_of(self._core.close())
        if self._asked and not self._ended:
            self.trace = self._traced()
        self._ended = True
        return report

    def _traced(self) -> Trace:
        from cpufree.trace.finished import finished  # for those who want traces

        facts = {
            "what": "triggered operations",
            "engine": "cpu_threads",
            "pes": self.pes,
            "blocks": self.blocks,
            "back_end": self.back_end,
            "nics": True,
            "sections": {str(tag): f"fires operation {tag}" for tag in range(self._operations)},
        }
        assert self._asked is not None
        return finished(self._core.trace(), facts, self._asked, True)

    def __enter__(self) -> Domain:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        told = self._ended  # who closes it has the report
        report = self.close()
        if kind is not None:
            return
        report.check()
        if report.waiting and not told:
            text = "a domain has ended before all of its operations fired" + report.text
            warnings.warn(text, CpufreeWarning, stacklevel=2)
