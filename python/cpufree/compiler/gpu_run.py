"""Runs a program's kernel on GPUs: one for each PE, arrays from wherever they lie, and back."""

from __future__ import annotations

import atexit
import math
import weakref
from typing import Any

import numpy as np

from cpufree import device_arrays
from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit.blocks import BlockPlan, tile_memory
from cpufree.compiler.front.lowering import Lowered
from cpufree.compiler.grid import GridKernel, returned_fields
from cpufree.compiler.launch import Ran, check_faults, results_of, scalar_table
from cpufree.compiler.layout import GridLayout
from cpufree.engines import core
from cpufree.engines.watch import Watch
from cpufree.errors import EngineError
from cpufree.laps import Laps

Copy = list[int]
"""PE, offset in its heap, bytes from row to row; address, bytes from row to row; width, rows."""


_HELD: weakref.WeakSet[Any] = weakref.WeakSet()
"""Whatever holds a kernel and memory on GPUs."""


def hold(run: Any) -> None:
    """Have a run give up its kernel and memory, `on_gpus`, before the interpreter ends."""
    _HELD.add(run)


@atexit.register
def _release() -> None:
    for run in list(_HELD):
        run.on_gpus = None


class GpuRun:
    """A kernel on GPUs, with the memory of its PEs, for one call after another."""

    def __init__(self, kernel: GridKernel, devices: list[int]) -> None:
        """Compile the kernel, if it is not on disk, and take memory.

        Raises
        ------
        UnsupportedError
            There is no compiler for kernels of GPUs, or the GPUs do not reach one another.
        OutOfMemoryError, EngineError
            As the engine.
        """
        self.kernel, self.devices = kernel, devices
        self.layout = kernel.layout
        self.on_gpus: Any = core.load_for_programs().make_gpu_program(
            kernel.text.on_gpu(),
            devices,
            self.layout.size,
            self.layout.leave,
            kernel.text.threads,
            kernel.text.thread_bytes,
            min(kernel.text.most_blocks, self.layout.most_blocks),
        )
        hold(self)
        plan = kernel.text.on_chip
        is_resident = isinstance(plan, BlockPlan) and plan.tile is None
        if is_resident and self.blocks != kernel.text.most_blocks:
            raise EngineError(
                f"{kernel.text.most_blocks} blocks whose values stay on chip are to run together, "
                f"and {self.blocks} do; please report this"
            )

    @property
    def blocks(self) -> int:
        """Blocks of each GPU."""
        return int(self.on_gpus.blocks)

    def run(
        self, arguments: Arguments, lowered: Lowered, wait_limit: float, watch: Watch, laps: Laps
    ) -> Ran:
        """Load, launch, wait, and store.

        The caller's arrays are written once the kernel has ended well: else they stay as they were.

        Raises
        ------
        ProgramError
            Python's rules for numbers were broken in the run.
        WaitTimeoutError, EngineError
            As the engine.
        """
        program = self.kernel.program
        load(self.on_gpus, self.layout, arguments, lowered)
        laps.lap("load")
        seconds, stopped, results, faults = self.on_gpus.run(
            scalar_table(program, lowered.scalars).tolist(),
            len(program.variables) + 2 * len(program.fields),
            wait_limit,
            watch,
        )
        laps.lap("run")
        check_faults(program, np.array(faults))
        if stopped or watch.interrupted or watch.error is not None:
            return Ran({}, {}, seconds, True)
        written = program.written
        out = {key: arguments.contiguous(key, copy_values=False) for key in arguments.arrays}
        arrays, scalars = results_of(
            program,
            out,
            written,
            np.array(results, np.int64),
            self._unload,
            {*arguments.arrays, *returned_fields(lowered.result)},
        )
        arrays = arguments.take_results(arrays, out, written)
        laps.lap("store")
        return Ran(arrays, scalars, seconds, False)

    def _unload(self, f: ir.Field, array: Any) -> None:
        self.on_gpus.store(copies_out(self.layout, f, address_of(array)))


def multiprocessors_of(devices: list[int]) -> int:
    """Return the multiprocessors of a GPU, of the least if they differ."""
    return min(gpu["multiprocessors"] for gpu in core.gpus() if gpu["index"] in devices)


def tile_memory_of(devices: list[int]) -> int:
    """Return the bytes that tiles of a block may take, on a GPU that has least if they differ."""
    there = [gpu["compute_capability"] for gpu in core.gpus() if gpu["index"] in devices]
    return min(tile_memory((major, minor)) for major, minor in there)


def load(on_gpus: Any, layout: GridLayout, arguments: Arguments, lowered: Lowered) -> None:
    """Bring arguments and constants to the PEs."""
    given: dict[str, Any] = {key: arguments.contiguous(key) for key in arguments.arrays}
    copies: list[Copy] = []
    for f in layout.program.fields:
        if f.role == "constant":
            given[f.name] = np.ascontiguousarray(lowered.data[f.name], f.type)
        if f.role in ("argument", "constant"):
            copies += copies_in(layout, f, address_of(given[f.name]))
    on_gpus.load(copies)


def address_of(array: Any) -> int:
    """Return where the values of an array begin, on the host or on a GPU."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    return device_arrays.address(array)


def copies_in(layout: GridLayout, f: ir.Field, address: int) -> list[Copy]:
    """Return what brings a field's values to all PEs, those of ghosts too."""
    rows = _Rows(layout, f, address)
    found: list[Copy] = []
    for pe in range(layout.slabs.pes):
        if not f.distributed:
            found.append(rows.copy(pe, 0, 0, f.shape[0]))
            continue
        lo, hi = layout.slabs.bounds(pe)
        hi, n = min(hi, f.shape[0]), f.shape[0]
        if lo >= hi:
            continue
        reach = layout.reach(f)
        found.append(rows.copy(pe, reach.below, lo, hi - lo))
        if not layout.keeps_ghosts(f):
            continue
        for k in range(reach.below):
            found.append(rows.copy(pe, k, (lo - reach.below + k) % n, 1))
        for k in range(reach.above):
            found.append(rows.copy(pe, reach.below + hi - lo + k, (hi + k) % n, 1))
    return found


def copies_out(layout: GridLayout, f: ir.Field, address: int) -> list[Copy]:
    """Return what brings the own rows of all PEs to an array."""
    rows = _Rows(layout, f, address)
    if not f.distributed:
        return [rows.copy(0, 0, 0, f.shape[0])]
    found = []
    for pe in range(layout.slabs.pes):
        lo, hi = layout.slabs.bounds(pe)
        hi = min(hi, f.shape[0])
        if lo < hi:
            found.append(rows.copy(pe, layout.reach(f).below, lo, hi - lo))
    return found


class _Rows:
    """Rows of a field, as they lie in a heap and in an array without gaps."""

    def __init__(self, layout: GridLayout, f: ir.Field, address: int) -> None:
        self.offset, self.address = layout.offsets[f.name], address
        size = np.dtype(f.type).itemsize
        self.heap_row = layout.strides(f)[0] * size
        self.row = math.prod(f.shape[1:]) * size
        # Of one dimension a row is a value; of others only lines along the last axis have no gaps.
        self.lines = 0 if len(f.shape) == 1 else math.prod(f.shape[1:-1])
        self.line = self.row if self.lines == 0 else f.shape[-1] * size
        self.heap_line = self.row if self.lines == 0 else layout.inner(f)[-1] * size

    def copy(self, pe: int, to: int, first: int, rows: int) -> Copy:
        """Return the copy of rows first, ... of the array, which are rows to, ... of the heap."""
        offset, address = self.offset + to * self.heap_row, self.address + first * self.row
        if self.lines == 0:
            size = rows * self.row
            return [pe, offset, size, address, size, size, 1]
        lines = rows * self.lines
        return [pe, offset, self.heap_line, address, self.line, self.line, lines]
