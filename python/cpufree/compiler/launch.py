"""Programs on the CPU engine: their kernels, and threads that run them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.arrays import Part, in_heap
from cpufree.compiler.build import build
from cpufree.compiler.emit import Emitted, emit
from cpufree.compiler.layout import Layout
from cpufree.compiler.passes import add_temporaries, check_ghosts, exchange, fuse
from cpufree.compiler.runner import Outcome, RawTrace, Runner, Table, Words
from cpufree.cpu_kernels import Built
from cpufree.distributed import Team
from cpufree.engines.in_processes import following
from cpufree.engines.watch import Watch
from cpufree.errors import OutOfMemoryError
from cpufree.extension import load_core

_ALIGNMENT = 256
Follow: TypeAlias = Callable[[int, float], bool]


@dataclass(frozen=True)
class Kernel:
    """A program that all passes have been through, and its kernel."""

    program: ir.Program
    emitted: Emitted
    built: Built

    def numbers(self, layout: Layout) -> Words:
        """Return the numbers that it takes."""
        return np.array([layout.number(k) for k in self.emitted.numbers], np.int64)


def passes(program: ir.Program) -> ir.Program:
    """Return a program ready for a back end; checked."""
    made = exchange(fuse(add_temporaries(program)))
    check_ghosts(made)
    return made


def kernel_of(program: ir.Program, traced: bool = False) -> Kernel:
    """Return the kernel of a program, compiled if it has not been yet."""
    made = passes(program)
    emitted = emit(made)
    return Kernel(made, emitted, build(emitted.text, traced))


class Threads:
    """A thread for each PE, with a heap of the host's memory."""

    name = "cpu_threads"
    takes_gaps = True
    devices: tuple[int, ...] = ()
    team: Team | None = None
    """Of whose processes each runs a PE; None: this process runs all."""

    def __init__(self, layout: Layout, address: int, numbers: Words) -> None:
        """`address` is that of the kernel, `numbers` are those that it takes."""
        self.layout, self.address, self.numbers = layout, address, numbers
        self.heaps: list[npt.NDArray[np.uint8]] = []

    def load(self, parts: Sequence[Part], tables: Sequence[Table]) -> None:
        self.heaps = self._take_heaps()
        for part in parts:
            if part.pe in self._here():
                for place, rows in in_heap(self.layout, part, self.heaps[part.pe]):
                    place[...] = rows
        for pe, at, words in tables:
            self.heaps[pe][at : at + words.nbytes] = words.view(np.uint8)

    def launch(self, scalars: Words, results: int, wait_limit: float, watch: Watch) -> Outcome:
        found = np.zeros(results, np.int64)
        faults = np.zeros(2 * self.layout.pes, np.int64)
        tables = [t.ctypes.data for t in (self.numbers, scalars, found, faults)]
        follow = watch if self.team is None else following(self.team, watch)
        seconds, stopped, trace = self._run(tables, wait_limit, follow, watch.tracing)
        return Outcome(seconds, stopped or watch.ends, found, faults, trace)

    def store(self, parts: Sequence[Part]) -> None:
        for part in parts:
            for place, rows in in_heap(self.layout, part, self.heaps[part.pe]):
                rows[...] = place

    def free(self) -> None:
        self.heaps = []

    def _here(self) -> range:
        """Return the PEs that this process runs."""
        return range(self.layout.pes)

    def _take_heaps(self) -> list[npt.NDArray[np.uint8]]:
        return [_aligned_heap(self.layout.size) for _ in self._here()]

    def _run(
        self, tables: list[int], wait_limit: float, follow: Follow, tracing: dict[str, Any] | None
    ) -> tuple[float, bool, RawTrace]:
        """Run the kernel; return the seconds, whether it was asked to stop, and its trace."""
        heaps = [heap.ctypes.data for heap in self.heaps]
        seconds, stopped, trace = load_core().run_program(
            self.address, heaps, tables, wait_limit, follow, team=self.team,
            leave=self.layout.leave, trace=tracing,
        )  # fmt: skip
        return seconds, stopped, trace


def cpu_runner(kernel: Kernel, pes: int, kept: Collection[str]) -> Runner:
    """Return what runs a kernel on N PEs; `kept`: the program's fields that callers get."""
    layout = Layout(kernel.program, pes)
    threads = Threads(layout, kernel.built.address, kernel.numbers(layout))
    return Runner(layout, threads, kept)


def _aligned_heap(size: int) -> npt.NDArray[np.uint8]:
    """Return zeros at an address that arrays may begin at."""
    try:
        memory = np.zeros(size + _ALIGNMENT, np.uint8)
    except MemoryError:
        raise OutOfMemoryError(f"a PE's arrays take {size / 2**30:.4g} GiB: too much") from None
    first = -memory.ctypes.data % _ALIGNMENT
    return memory[first : first + size]
