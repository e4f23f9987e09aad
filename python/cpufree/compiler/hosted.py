"""Runs a program driven by the host: a launch for each group, copies between GPUs, CUDA graphs.

The honest opponent of the persistent kernel: the same representation, the same sweeps, the same
layout of memory. Loops whose turns are alike are recorded once as a graph over all GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit.hosted import emit_hosted
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions
from cpufree.compiler.front.lowering import Lowered
from cpufree.compiler.gpu_run import address_of, copies_out, hold, load, multiprocessors_of
from cpufree.compiler.grid import grid_groups, returned_fields
from cpufree.compiler.interpret import Scalars
from cpufree.compiler.launch import check_faults, results_of, scalar_bytes
from cpufree.compiler.layout import GridLayout, most_pes
from cpufree.compiler.passes import exchange
from cpufree.compiler.passes.accesses import elements, scalar_accesses
from cpufree.compiler.passes.rows import scalars_read
from cpufree.engines import core
from cpufree.errors import UnsupportedError

LEAST_COMMANDS = 48
"""Of a graph: launching one takes as long as several of its kernels."""
MOST_COMMANDS = 1_000_000
LAUNCH, MEET, COPY = 0, 1, 2

Command = list[int]
"""[LAUNCH, PE, kernel, blocks, where its arguments begin], [MEET] or
[COPY, PE, other PE, offset, offset there, bytes]."""


@dataclass
class Segment:
    """Commands that are done again and again."""

    commands: list[Command] = field(default_factory=list)
    repeats: int = 1


class HostedRun:
    """A program for one call after another, driven by the host."""

    def __init__(
        self,
        program: Any,
        args: tuple[Any, ...],
        devices: list[int],
        options: SweepOptions = STANDARD,
    ) -> None:
        """Lower, compile and record; the order of tiles is the GPU's own, whatever `options` say.

        Raises
        ------
        UnsupportedError
            The program has reductions, or loops that the values of arrays end.
        """
        self.arguments = Arguments.of(program.signature, program.name, args, {})
        self.lowered: Lowered = program._lowered(self.arguments)
        self.kept = returned_fields(self.lowered.result)
        made = grid_groups(self.lowered.program, self.kept)
        devices = devices[: most_pes(made, len(devices))]
        self.program, self.devices = exchange(made), devices
        self.layout = GridLayout(made, len(devices))
        multiprocessors = multiprocessors_of(devices)
        self.text = emit_hosted(made, self.layout, self.kept, multiprocessors, options)
        recorded = _Recorder(self)
        recorded.block(self.program.body)
        recorded.flush()
        self.storage, self.places = recorded.storage, recorded.places
        self.on_gpus: Any = core.load_for_programs().make_hosted_program(
            self.text.text,
            len(self.text.groups),
            devices,
            self.layout.size,
            self.text.threads,
        )
        hold(self)
        self.on_gpus.prepare(
            [(s.commands, s.repeats) for s in recorded.segments], bytes(recorded.arguments),
            recorded.size,
        )  # fmt: skip

    def run(self, wait_limit: float = 60.0) -> float:
        """Load, run, and store into the caller's arrays; return the seconds of the run."""
        arguments, layout = self.arguments, self.layout
        load(self.on_gpus, layout, arguments, self.lowered)
        seconds, faults = self.on_gpus.run(wait_limit)
        check_faults(self.program, np.array(faults))
        written = self.program.written
        out = {key: arguments.contiguous(key, copy_values=False) for key in arguments.arrays}
        results = np.zeros(len(self.program.variables) + 2 * len(self.program.fields), np.int64)
        results[len(self.program.variables) :] = [*self.storage, *self.places]

        def unload(f: ir.Field, array: Any) -> None:
            self.on_gpus.store(copies_out(layout, f, address_of(array)))

        arrays, _ = results_of(
            self.program, out, written, results, unload, {*arguments.arrays, *self.kept}
        )
        arguments.take_results(arrays, out, written)
        return float(seconds)


class _Recorder:
    """Follows a program as the host would, and writes down what it would launch."""

    def __init__(self, run: HostedRun) -> None:
        self.program, self.layout, self.text = run.program, run.layout, run.text
        self.scalars = Scalars(run.program, run.lowered)
        self.names = [f.name for f in self.program.fields]
        self.storage = list(range(len(self.names)))
        self.places = list(range(len(self.names)))
        self.segments: list[Segment] = []
        self.commands: list[Command] = []
        self.arguments = bytearray()
        self.known: dict[bytes, int] = {}
        self.size = 8 * (len(self.names) + max(1, len(self.text.values)))
        self.numbers = {group: k for k, group in enumerate(self.text.groups)}
        self.depth = 0

    def permute(self, s: ir.Permute) -> None:
        """Have fields change their storage, or their values alone."""
        storage, places = list(self.storage), list(self.places)
        for name, source in zip(s.fields, s.sources, strict=True):
            to, origin = self.names.index(name), self.names.index(source)
            self.places[to] = places[origin]
            if not s.values:
                self.storage[to] = storage[origin]

    def flush(self) -> None:
        """End a segment."""
        if self.commands:
            self.segments.append(Segment(self.commands))
        self.commands = []

    def block(self, body: tuple[ir.Statement, ...]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: ir.Statement) -> None:
        if any(True for _ in scalar_accesses(self.program, s)):
            self.refuse("the host would wait for values of arrays")
        if isinstance(s, ir.Group):
            self.group(s)
        elif isinstance(s, ir.Put):
            self.exchange(s)
        elif isinstance(s, ir.Set):
            self.scalars.set(s)
        elif isinstance(s, ir.Permute):
            self.permute(s)
        elif isinstance(s, ir.If):
            self.block(s.then if self.scalars.truth(s) else s.otherwise)
        elif isinstance(s, ir.For):
            self.loop(s)
        elif not isinstance(s, ir.Wait):
            self.refuse(f"{type(s).__name__} is for loops that values of the run end")
        if len(self.commands) > MOST_COMMANDS:
            self.refuse("there is too much to be written down")

    def refuse(self, why: str) -> None:
        raise UnsupportedError(f"{self.program.name} has no host-driven variant: {why}")

    def group(self, s: ir.Group) -> None:
        if any(isinstance(stage.work, ir.Reduce) for stage in s.stages):
            self.refuse("it has reductions")
        number = self.numbers[s]
        offsets = [self.layout.offsets[self.names[k]] for k in self.places]
        values = [scalar_bytes(self.scalars.values.get(n, 0), self.scalars.types[n])
                  for n in self.text.values] or [bytes(8)]  # fmt: skip
        blob = np.array(offsets, np.int64).tobytes() + b"".join(values)
        if blob not in self.known:
            self.known[blob] = len(self.arguments)
            self.arguments += blob
        for pe in range(self.layout.slabs.pes):
            self.commands.append([LAUNCH, pe, number, self.text.blocks[number], self.known[blob]])

    def exchange(self, s: ir.Put) -> None:
        """Write down the copies of halos, and that the PEs wait for one another around them."""
        slabs = self.layout.slabs
        copies = []
        for h in s.halos:
            f = self.program.field(h.field)
            storage = self.program.fields[self.places[self.names.index(h.field)]]
            base = self.layout.offsets[storage.name]
            row = self.layout.strides(f)[0] * np.dtype(f.type).itemsize
            reach = self.layout.reach(f)
            for pe in range(slabs.pes):
                mine = self._rows(f, pe)
                above, below = pe + 1, pe - 1
                if h.below and (above < slabs.pes or h.periodic):
                    at = base + (reach.below + mine - h.below) * row
                    to = base + (reach.below - h.below) * row
                    copies.append([COPY, pe, above % slabs.pes, at, to, h.below * row])
                if h.above and (below >= 0 or h.periodic):
                    other = below % slabs.pes
                    at = base + reach.below * row
                    to = base + (reach.below + self._rows(f, other)) * row
                    copies.append([COPY, pe, other, at, to, h.above * row])
        if copies:
            meet = [[MEET]] if slabs.pes > 1 else []
            self.commands += [*meet, *copies, *meet]

    def _rows(self, f: ir.Field, pe: int) -> int:
        lo, hi = self.layout.slabs.bounds(pe)
        return min(hi, f.shape[0]) - lo

    def loop(self, s: ir.For) -> None:
        """Write down the turns of a loop; where they are alike, one round of them as a segment."""
        turns = self.scalars.turns(s)
        alike = self.depth == 0 and not depends(s)
        self.depth += 1
        if alike and len(turns) > 1:
            self._alike(s, turns)
        else:
            for turn in turns:
                self.scalars.values[s.var] = np.int64(turn)
                self.block(s.body)
        self.depth -= 1

    def _alike(self, s: ir.For, turns: range) -> None:
        self.flush()
        before, count = (list(self.storage), list(self.places)), 0
        while count < len(turns):
            self.scalars.values[s.var] = np.int64(turns[count])
            self.block(s.body)
            count += 1
            if (self.storage, self.places) == before and len(self.commands) >= LEAST_COMMANDS:
                break
        left = len(turns) - count
        repeats = 1 + left // count
        self.segments.append(Segment(self.commands, repeats))
        self.commands = []
        for turn in turns[count * repeats :]:
            self.scalars.values[s.var] = np.int64(turn)
            self.block(s.body)
        self.scalars.values[s.var] = np.int64(turns[-1])  # repeated or not
        self.flush()


def depends(s: ir.For) -> bool:
    """Return whether a turn of a loop depends on its number or on what earlier turns have set."""
    exprs = []
    for part in ir.walk(s.body):
        if isinstance(part, ir.Set):
            return True
        if isinstance(part, ir.Assign):
            exprs.append(part.value)
        elif isinstance(part, ir.If):
            exprs.append(part.condition)
        elif isinstance(part, ir.For):
            exprs += [part.start, part.stop]
    names = {n for e in exprs for n in scalars_read(e)}
    return s.var in names or any(scalars_read(e.index) for x in exprs for e in elements(x))
