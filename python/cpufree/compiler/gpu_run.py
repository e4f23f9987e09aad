"""Programs on GPUs: a kernel with its memory there, arrays from wherever they lie, and back."""

from __future__ import annotations

import atexit
import math
import weakref
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from cpufree import device_arrays
from cpufree.compiler.arrays import Part
from cpufree.compiler.emit.blocks import BlockPlan, tile_memory
from cpufree.compiler.grid import GridKernel
from cpufree.compiler.layout import GridLayout
from cpufree.compiler.runner import Outcome, Runner, Table, Words
from cpufree.engines.watch import Watch
from cpufree.errors import EngineError
from cpufree.extension import load_core, load_for_programs
from cpufree.machine import Machine, of_gpu

Copy = list[int]
"""PE, offset in its heap, bytes from row to row; address, bytes from row to row; width, rows."""


_HELD: weakref.WeakSet[GpuMemory] = weakref.WeakSet()
"""What has kernels and memory on GPUs, to be given up before the interpreter ends."""


@atexit.register
def _release() -> None:
    for engine in list(_HELD):
        engine.on_gpus = None


class GpuMemory:
    """Heaps of PEs on GPUs, which are kept from one run to the next."""

    takes_gaps = False

    def __init__(self, layout: GridLayout, devices: Sequence[int], on_gpus: Any) -> None:
        """`on_gpus`: a program of the extension's, with its memory."""
        self.layout, self.devices, self.on_gpus = layout, list(devices), on_gpus
        _HELD.add(self)

    def load(self, parts: Sequence[Part], tables: Sequence[Table]) -> None:
        copies = self._copies(parts)
        for pe, at, words in tables:
            size = words.nbytes
            copies.append([pe, at, size, _address_of(words), size, size, 1])
        self.on_gpus.load(copies)

    def store(self, parts: Sequence[Part]) -> None:
        self.on_gpus.store(self._copies(parts))

    def _copies(self, parts: Sequence[Part]) -> list[Copy]:
        return [copy for part in parts for copy in _copies_of(self.layout, part)]

    def free(self) -> None:
        """Keep the memory for the next run."""


class Gpus(GpuMemory):
    """One kernel on all GPUs, one for each PE; it runs a whole program."""

    name = "cuda_p2p"

    def __init__(self, kernel: GridKernel, devices: Sequence[int], traced: bool = False) -> None:
        """Compile the kernel, if it is not on disk, and take memory.

        Raises
        ------
        UnsupportedError
            There is no compiler for kernels of GPUs, or the GPUs do not reach one another.
        OutOfMemoryError, EngineError
            As the engine.
        """
        self.kernel = kernel
        text, layout = kernel.text, kernel.layout
        on_gpus = load_for_programs().make_gpu_program(
            text.on_gpu(traced),
            list(devices),
            layout.size,
            layout.leave,
            text.threads,
            text.thread_bytes,
            min(text.most_blocks, layout.most_blocks),
            traced=traced,
        )
        super().__init__(layout, devices, on_gpus)
        is_resident = isinstance(text.on_chip, BlockPlan) and text.on_chip.tile is None
        if is_resident and self.blocks != text.most_blocks:
            raise EngineError(
                f"{text.most_blocks} blocks whose values stay on chip are to run together, "
                f"and {self.blocks} do; please report this"
            )

    @property
    def blocks(self) -> int:
        """Blocks of each GPU."""
        return int(self.on_gpus.blocks)

    def launch(self, scalars: Words, results: int, wait_limit: float, watch: Watch) -> Outcome:
        seconds, stopped, *left = self.on_gpus.run(
            scalars.tolist(), results, wait_limit, watch, trace=watch.tracing
        )
        found, faults = (np.array(words, np.int64) for words in left[:2])
        return Outcome(seconds, stopped or watch.ends, found, faults, left[2])


def gpu_runner(
    kernel: GridKernel, devices: Sequence[int], kept: Collection[str], traced: bool = False
) -> Runner:
    """Return what runs a kernel on GPUs; `kept`: the program's fields that callers get.

    Raises
    ------
    UnsupportedError, OutOfMemoryError, EngineError
        As Gpus.
    """
    return Runner(kernel.layout, Gpus(kernel, devices, traced), kept)


def multiprocessors_of(devices: Sequence[int]) -> int:
    """Return the multiprocessors of a GPU, of the least if they differ."""
    return min(int(gpu["multiprocessors"]) for gpu in load_core().gpus() if gpu["index"] in devices)


def machine_of(devices: Sequence[int]) -> Machine:
    """Return the machine file that choices for these GPUs go by."""
    names = (str(gpu["name"]) for gpu in load_core().gpus() if gpu["index"] in devices)
    return of_gpu(next(names, ""))


def tile_memory_of(devices: Sequence[int]) -> int:
    """Return the bytes that tiles of a block may take, on a GPU that has least if they differ."""
    there = [gpu["compute_capability"] for gpu in load_core().gpus() if gpu["index"] in devices]
    return min(tile_memory((major, minor)) for major, minor in there)


def _address_of(array: Any) -> int:
    """Return where the values of an array begin, on the host or on a GPU."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    return device_arrays.address(array)


def _copies_of(layout: GridLayout, part: Part) -> list[Copy]:
    """Return a part as the extension copies it: the array has no gaps, the heap has some."""
    f, size = part.field, np.dtype(part.field.type).itemsize
    row, heap_row = math.prod(f.shape[1:]) * size, layout.strides(f)[0] * size
    offset, address = layout.offsets[f.name], _address_of(part.array)
    found = []
    for to, first, count in part.rows:
        at, values = offset + to * heap_row, address + first * row
        if len(f.shape) == 1:
            width = count * size
            found.append([part.pe, at, width, values, width, width, 1])
        else:  # lines along the last axis have no gaps
            line, heap_line = f.shape[-1] * size, layout.inner(f)[-1] * size
            lines = count * math.prod(f.shape[1:-1])
            found.append([part.pe, at, heap_line, values, line, line, lines])
    return found
