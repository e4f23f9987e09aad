"""Runs a program driven by the host: a launch for each group, copies between GPUs, CUDA graphs.

The honest opponent of the persistent kernel: the same representation, the same sweeps, the same
layout of memory. Loops whose turns are alike are recorded once as a graph over all GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit.hosted import Kernels, emit_hosted, values_of
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions
from cpufree.compiler.front.lowered import Lowered
from cpufree.compiler.gpu_run import GpuMemory, multiprocessors_of
from cpufree.compiler.grid import returned_fields, swept_groups
from cpufree.compiler.interpret import Scalars
from cpufree.compiler.layout import GridLayout, most_pes
from cpufree.compiler.passes import exchange
from cpufree.compiler.passes.accesses import scalar_accesses
from cpufree.compiler.passes.rows import scalars_read
from cpufree.compiler.runner import Outcome, Runner, Words, scalar_bytes
from cpufree.engines.watch import Watch
from cpufree.errors import UnsupportedError
from cpufree.extension import load_for_programs
from cpufree.laps import Laps

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


class HostDriven(GpuMemory):
    """Kernels on GPUs that the host launches, as a recording says."""

    name = "host-driven"

    def __init__(
        self, recording: Recording, text: str, kernels: int, devices: Sequence[int], threads: int
    ) -> None:
        layout, self.left = recording.layout, recording.left
        on_gpus = load_for_programs().make_hosted_program(
            text, kernels, list(devices), layout.size, threads
        )
        super().__init__(layout, devices, on_gpus)
        segments = [(s.commands, s.repeats) for s in recording.segments]
        on_gpus.prepare(segments, bytes(recording.arguments), recording.size)

    def launch(self, scalars: Words, results: int, wait_limit: float, watch: Watch) -> Outcome:
        """Run; the scalars are those of the recording."""
        seconds, faults = self.on_gpus.run(wait_limit)
        found = np.array(self.left * (results // len(self.left)), np.int64)
        return Outcome(float(seconds), watch.ends, found, np.array(faults, np.int64))


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
        kept = returned_fields(self.lowered.result)
        made = swept_groups(self.lowered.program, kept)
        self.devices = devices[: most_pes(made, len(devices))]
        layout = GridLayout(made, len(self.devices))
        multiprocessors = multiprocessors_of(self.devices)
        self.text = emit_hosted(made, layout, kept, multiprocessors, options)
        text, kernels = self.text.text, self.text.kernels
        recording = _Whole(exchange(made), layout, self.lowered, kernels)
        engine = HostDriven(recording, text, len(kernels), self.devices, options.threads)
        self.runner = Runner(layout, engine, kept)

    def run(self, wait_limit: float = 60.0) -> float:
        """Load, run, and store into the caller's arrays; return the seconds of the run."""
        data, scalars = self.lowered.data, self.lowered.scalars
        ran = self.runner.run([self.arguments], data, scalars, wait_limit, Watch(None), Laps())
        return ran.seconds


class Recording:
    """What the host does, written down; no GPU is needed."""

    def __init__(self, name: str, program: ir.Program, layout: GridLayout) -> None:
        self.name, self.layout = name, layout
        self.size = 8 * (len(program.fields) + max(1, len(values_of(program))))
        """Bytes of the arguments of a launch."""
        self.left = [0] * layout.results
        """What the layout's results say of a program once it has run."""
        self.segments: list[Segment] = []
        self.commands: list[Command] = []
        self.arguments = bytearray()
        self._known: dict[bytes, int] = {}

    def flush(self) -> None:
        """End a segment."""
        if self.commands:
            self.segments.append(Segment(self.commands))
        self.commands = []

    def add(self, *commands: Command) -> None:
        """Write down commands."""
        self.commands += commands
        if len(self.commands) > MOST_COMMANDS:
            self.refuse("there is too much to be written down")

    def refuse(self, why: str) -> NoReturn:
        """Say why there is no such variant."""
        raise UnsupportedError(f"{self.name} has no host-driven variant: {why}")

    def place_of(self, blob: bytes) -> int:
        """Return where the arguments of a launch begin."""
        if blob not in self._known:
            self._known[blob] = len(self.arguments)
            self.arguments += blob
        return self._known[blob]

    def loop(self, loops: Sequence[ir.For], follows: Sequence[Follower]) -> None:
        """Write down the turns of a loop of all followers.

        Where turns are alike, one round of them becomes a segment.
        """
        turns = [f.scalars.turns(s) for f, s in zip(follows, loops, strict=True)]
        if len(set(map(len, turns))) != 1:
            self.refuse("a loop has other turns on other ranks")

        def turn(k: int) -> None:
            for f, s, values in zip(follows, loops, turns, strict=True):
                f.scalars.values[s.var] = np.int64(values[k])
            self.bodies([f.block(s.body, 1) for f, s in zip(follows, loops, strict=True)])

        done, total = 0, len(turns[0])
        if total > 1 and not any(depends(s) for s in loops):
            self.flush()
            before = self.storage()
            while done < total:
                turn(done)
                done += 1
                if self.storage() == before and len(self.commands) >= LEAST_COMMANDS:
                    break
            self.segments.append(Segment(self.commands, total // done))
            self.commands = []
            done *= total // done
        for k in range(done, total):
            turn(k)
        for f, s, values in zip(follows, loops, turns, strict=True):
            if total:  # as the last turn leaves it, repeated or not
                f.scalars.values[s.var] = np.int64(values[-1])

    def bodies(self, runs: list[Iterator[ir.Statement]]) -> None:
        """Write down a turn of a loop of all followers."""
        raise NotImplementedError

    def storage(self) -> Any:
        """Return what turns that are alike leave as it was: where fields lie."""
        return None


class Follower:
    """Follows a program as the host would."""

    def __init__(self, recording: Recording, program: ir.Program, values: Any) -> None:
        """`values` has those of the program's scalars."""
        self.all, self.program = recording, program
        self.scalars = Scalars(program, values)
        self.offsets = [recording.layout.offsets[f.name] for f in program.fields]

    def block(self, body: tuple[ir.Statement, ...], depth: int) -> Iterator[ir.Statement]:
        """Write down statements; yield those at which ranks wait, and the outermost loops."""
        for s in body:
            if any(True for _ in scalar_accesses(self.program, s)):
                self.all.refuse("the host would wait for values of arrays")
            if isinstance(s, ir.If):
                yield from self.block(s.then if self.scalars.truth(s) else s.otherwise, depth)
            elif isinstance(s, ir.Finish) or (isinstance(s, ir.For) and depth == 0):
                yield s
            elif isinstance(s, ir.For):
                for turn in self.scalars.turns(s):
                    self.scalars.values[s.var] = np.int64(turn)
                    yield from self.block(s.body, depth + 1)
            elif isinstance(s, ir.Set):
                self.scalars.set(s)
            elif isinstance(s, ir.Group):
                if any(isinstance(stage.work, ir.Reduce) for stage in s.stages):
                    self.all.refuse("it has reductions")
                self.group(s)
            else:
                self.statement(s)

    def group(self, s: ir.Group) -> None:
        """Write down a sweep."""
        raise NotImplementedError

    def statement(self, s: ir.Statement) -> None:
        """Write down another statement, or refuse it."""
        raise NotImplementedError

    def launch(self, pes: Sequence[int], kernel: int, blocks: int, offsets: list[int]) -> None:
        """Write down launches of a kernel, for fields at these offsets."""
        values = [
            scalar_bytes(self.scalars.values.get(name, 0), kind)
            for name, kind in values_of(self.program).items()
        ] or [bytes(8)]
        place = self.all.place_of(np.array(offsets, np.int64).tobytes() + b"".join(values))
        self.all.add(*([LAUNCH, pe, kernel, blocks, place] for pe in pes))


class _Whole(Recording, Follower):
    """A program whose rows are divided among PEs, which all do the same."""

    def __init__(
        self,
        program: ir.Program,
        layout: GridLayout,
        values: Any,
        kernels: Kernels,
    ) -> None:
        Recording.__init__(self, program.name, program, layout)
        Follower.__init__(self, self, program, values)
        self.kernels = kernels
        self.names = [f.name for f in program.fields]
        self.stored = list(range(len(self.names)))
        self.places = list(range(len(self.names)))
        self.bodies([self.block(program.body, 0)])
        self.flush()
        self.left = [0] * len(program.variables) + self.stored + self.places

    def bodies(self, runs: list[Iterator[ir.Statement]]) -> None:
        for s in runs[0]:
            assert isinstance(s, ir.For)
            self.loop([s], [self])

    def storage(self) -> Any:
        return self.stored, self.places

    def group(self, s: ir.Group) -> None:
        offsets = [self.offsets[k] for k in self.places]
        self.launch(range(self.layout.slabs.pes), *self.kernels[s], offsets)

    def statement(self, s: ir.Statement) -> None:
        if isinstance(s, ir.Put):
            self._exchange(s)
        elif isinstance(s, ir.Permute):
            self._permute(s)
        elif not isinstance(s, ir.Wait):
            self.refuse(f"{type(s).__name__} is for loops that values of the run end")

    def _permute(self, s: ir.Permute) -> None:
        """Have fields change their storage, or their values alone."""
        stored, places = list(self.stored), list(self.places)
        for name, source in zip(s.fields, s.sources, strict=True):
            to, origin = self.names.index(name), self.names.index(source)
            places[to] = self.places[origin]
            if not s.values:
                stored[to] = self.stored[origin]
        self.stored, self.places = stored, places

    def _exchange(self, s: ir.Put) -> None:
        """Write down the copies of halos, and that the PEs wait for one another around them."""
        slabs = self.layout.slabs
        copies = []
        for h in s.halos:
            f = self.program.field(h.field)
            base = self.offsets[self.places[self.names.index(h.field)]]
            row = self.layout.strides(f)[0] * np.dtype(f.type).itemsize
            reach = self.layout.reach(f)
            counts = [
                hi - lo for lo, hi in (self.layout.own_rows(f, pe) for pe in range(slabs.pes))
            ]
            for pe, mine in enumerate(counts):
                above, below = pe + 1, pe - 1
                if h.below and (above < slabs.pes or h.periodic):
                    at = base + (reach.below + mine - h.below) * row
                    to = base + (reach.below - h.below) * row
                    copies.append([COPY, pe, above % slabs.pes, at, to, h.below * row])
                if h.above and (below >= 0 or h.periodic):
                    other = below % slabs.pes
                    at = base + reach.below * row
                    to = base + (reach.below + counts[other]) * row
                    copies.append([COPY, pe, other, at, to, h.above * row])
        if copies:
            meet = [[MEET]] if slabs.pes > 1 else []
            self.add(*meet, *copies, *meet)


def depends(s: ir.For) -> bool:
    """Return whether a turn of a loop depends on its number or on what earlier turns have set."""
    exprs = []
    for part in ir.walk(s.body):
        if isinstance(part, ir.Set):
            return True
        if isinstance(part, ir.Assign):
            exprs += [part.value, *(s.index for s in part.box if s.index is not None)]
        elif isinstance(part, ir.If):
            exprs.append(part.condition)
        elif isinstance(part, ir.For):
            exprs += [part.start, part.stop]
    names = {n for e in exprs for n in scalars_read(e)}
    return s.var in names or any(scalars_read(e.index) for x in exprs for e in ir.elements(x))
