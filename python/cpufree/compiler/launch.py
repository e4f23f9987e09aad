"""Runs a program's kernel on the CPU engine: memory of the PEs, one launch, the results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.build import build
from cpufree.compiler.emit import Emitted, emit
from cpufree.compiler.layout import Layout
from cpufree.compiler.passes import add_temporaries, check_ghosts, exchange, fuse
from cpufree.cpu_kernels import Built
from cpufree.engines.watch import Watch
from cpufree.errors import OutOfMemoryError, ProgramError
from cpufree.extension import load_core
from cpufree.laps import Laps

_ALIGNMENT = 256
_FAULTS = {
    1: "a whole number does not fit in 64 bits",
    2: "division by zero",
    3: "an index is out of bounds",
    4: "a negative number to a power that is not whole is complex",
}
Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Kernel:
    """A program that all passes have been through, and its kernel."""

    program: ir.Program
    emitted: Emitted
    built: Built


def passes(program: ir.Program) -> ir.Program:
    """Return a program ready for a back end; checked."""
    made = exchange(fuse(add_temporaries(program)))
    check_ghosts(made)
    return made


def kernel_of(program: ir.Program) -> Kernel:
    """Return the kernel of a program, compiled if it has not been yet."""
    made = passes(program)
    emitted = emit(made)
    return Kernel(made, emitted, build(emitted.text))


@dataclass(frozen=True)
class Ran:
    """What a run leaves: arrays and scalars by name, seconds, and whether it was asked to stop."""

    arrays: dict[str, Array]
    scalars: dict[str, Any]
    seconds: float
    stopped: bool


class Run:
    """One run of a kernel."""

    def __init__(self, kernel: Kernel, pes: int) -> None:
        self.kernel, self.program = kernel, kernel.program
        self.layout = Layout(kernel.program, pes)
        self.pes = pes
        self.heaps = self._heaps()

    def run(
        self,
        arguments: Mapping[str, Array],
        values: Any,
        written: Set[str],
        wait_limit: float,
        watch: Watch,
        laps: Laps,
    ) -> Ran:
        """Load, launch, wait, and unload.

        The caller's arrays are written once the kernel has ended well: else they stay as they were.

        Raises
        ------
        ProgramError
            Python's rules for numbers were broken in the run.
        WaitTimeoutError, EngineError
            As the engine.
        """
        for f in self.program.fields:
            source = arguments.get(f.name) if f.role == "argument" else values.data.get(f.name)
            if source is not None:
                for pe in self.here:
                    self.layout.load(f, source, self.heaps[pe], pe)
        laps.lap("load")
        numbers = np.array([self.layout.number(k) for k in self.kernel.emitted.numbers], np.int64)
        scalars = scalar_table(self.program, values.scalars)
        count = len(self.program.variables)
        results = np.zeros(count + len(self.program.fields), np.int64)
        faults = np.zeros(2 * self.pes, np.int64)
        tables = [t.ctypes.data for t in (numbers, scalars, results, faults)]
        seconds, stopped = self._launch(tables, wait_limit, watch)
        stopped = stopped or watch.interrupted or watch.error is not None
        stopped, results, faults = self._ended(stopped, results, faults)
        laps.lap("run")
        check_faults(self.program, faults)
        if stopped:
            return Ran({}, {}, seconds, True)
        arrays, found = results_of(self.program, arguments, written, results, self._unload)
        laps.lap("store")
        return Ran(arrays, found, seconds, False)

    @property
    def here(self) -> range:
        """The PEs that this process runs."""
        return range(self.pes)

    def _heaps(self) -> list[Array]:
        return [aligned_heap(self.layout.size) for _ in range(self.pes)]

    def _launch(self, tables: list[int], wait_limit: float, watch: Watch) -> tuple[float, bool]:
        """Run the kernel; return the seconds, and whether it was asked to stop."""
        heaps = [heap.ctypes.data for heap in self.heaps]
        address = self.kernel.built.address
        seconds, stopped = load_core().run_program(address, heaps, tables, wait_limit, watch)
        return seconds, stopped

    def _ended(
        self, stopped: bool, results: Numbers, faults: Numbers
    ) -> tuple[bool, Numbers, Numbers]:
        """Return how the run has ended, as all processes know it."""
        return stopped, results, faults

    def _unload(self, f: ir.Field, array: Array) -> None:
        for pe, heap in enumerate(self.heaps):
            self.layout.unload(f, array, heap, pe)


def check_faults(program: ir.Program, faults: npt.NDArray[np.int64]) -> None:
    """Raise ProgramError where a PE has broken Python's rules for numbers."""
    for code, line in faults.reshape(-1, 2):
        if code:
            raise ProgramError(
                f"{program.name}, line {line}: {_FAULTS[int(code)]}; the arrays are as they were",
                line=int(line),
            )


def results_of(
    program: ir.Program,
    arguments: Mapping[str, Any],
    written: Set[str],
    results: npt.NDArray[np.int64],
    unload: Callable[[ir.Field, Any], None],
    wanted: Collection[str] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arrays and scalars by name, from what a kernel has left in its table of results.

    Parameters
    ----------
    program : ir.Program
        The program.
    arguments : mapping
        The caller's arrays; those in `written` get their final values.
    written : set of str
        Fields that the program writes.
    results : array of int64
        The variables, for each field the number of its storage, and where kernels move values
        without their storage (ir.Permute) that of the field at whose place they lie.
    unload : callable
        Writes the values of a field's storage into an array.
    wanted : collection of str, optional
        The program's own fields that somebody asks for; None: all.
    """
    fields = program.fields
    first, count = len(program.variables), len(fields)
    storage = [int(k) for k in results[first : first + count]]
    places = [int(k) for k in results[first + count :]] or storage
    lies_at = {k: fields[place] for k, place in zip(storage, places, strict=True)}
    # Names may have changed places: what a name stands for is its storage.
    asked = {
        fields[storage[k]].name for k, f in enumerate(fields) if wanted is None or f.name in wanted
    }
    kept: dict[str, Any] = {}
    for k, f in enumerate(fields):
        if f.role == "argument":
            kept[f.name] = arguments[f.name]
            if f.name in written:
                unload(lies_at[k], arguments[f.name])
        elif f.role == "local" and f.name in asked:
            kept[f.name] = np.empty(f.shape, f.type)
            unload(lies_at[k], kept[f.name])
    arrays = {
        f.name: kept[fields[storage[k]].name]
        for k, f in enumerate(fields)
        if fields[storage[k]].name in kept
    }
    scalars = {}
    for k, (name, kind) in enumerate(program.variables):
        scalars[name] = results[k : k + 1].view(np.uint8)[: np.dtype(kind).itemsize].view(kind)[0]
    return arrays, scalars


def aligned_heap(size: int) -> npt.NDArray[np.uint8]:
    """Return zeros at an address that arrays may begin at."""
    try:
        memory = np.zeros(size + _ALIGNMENT, np.uint8)
    except MemoryError:
        raise OutOfMemoryError(f"a PE's arrays take {size / 2**30:.4g} GiB: too much") from None
    first = -memory.ctypes.data % _ALIGNMENT
    return memory[first : first + size]


def scalar_table(program: ir.Program, values: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """Return scalars, eight bytes each."""
    words = [scalar_bytes(values[name], kind) for name, kind in program.scalars] or [bytes(8)]
    return np.frombuffer(b"".join(words), np.int64).copy()


def scalar_bytes(value: Any, kind: str) -> bytes:
    """Return a scalar of a type in eight bytes."""
    return np.array([value], kind).tobytes().ljust(8, b"\0")
