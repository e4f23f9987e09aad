"""Programs of ranks driven by the host: a launch for each sweep, copies for messages, CUDA graphs.

The honest opponent of the persistent kernel of ranks: the same representation, the same sweeps, the
same layout of memory. Messages go in one of two ways. "copies": regions without gaps by copies
between GPUs; others are packed by a kernel of the sender's, copied, and unpacked by one of the
receiver's. "stores": a kernel of the sender's stores all its messages into the memory of the
receivers. All ranks wait for one another before and after messages. Loops whose turns are alike are
recorded once as a graph over all GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit.hosted import HEAD, stage_kernels
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions
from cpufree.compiler.gpu_run import hold
from cpufree.compiler.hosted import LAUNCH, LEAST_COMMANDS, Command, Segment, depends
from cpufree.compiler.interpret import Scalars
from cpufree.compiler.launch import check_faults, scalar_bytes
from cpufree.compiler.passes import add_temporaries
from cpufree.compiler.passes.accesses import scalar_accesses
from cpufree.compiler.passes.points import group_points
from cpufree.compiler.ranks.host_messages import HostMessages, Kernel, Sent
from cpufree.compiler.ranks.layout import RankGridLayout
from cpufree.compiler.ranks.live import without_idle_sites
from cpufree.compiler.ranks.on_cpu import RanksRan
from cpufree.compiler.ranks.on_gpu import collect, copies_to, multiprocessors_of_rank
from cpufree.compiler.ranks.on_grid import kept_fields, result_words
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.engines import core
from cpufree.errors import UnsupportedError

MOST_COMMANDS = 1_000_000
_PACK_THREADS = 256
_MOST_PACK_BLOCKS = 264
_MOVE = """
extern "C" __global__ void __launch_bounds__({threads})
stage_{number}(const __grid_constant__ HostedPlace place) {{
  const LaunchedBlock me{{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x),
                         static_cast<int>(threadIdx.x)}};
{moves}
}}
"""


class RanksByHost:
    """A program of ranks for one call after another, driven by the host."""

    def __init__(
        self,
        ranks: Ranks,
        devices: Sequence[int],
        scalars: dict[str, Any],
        way: str = "copies",
        options: SweepOptions = STANDARD,
    ) -> None:
        """Compile and record, for given values of scalars; `way` is one of WAYS.

        Raises
        ------
        UnsupportedError
            The program has reductions, loops that the values of arrays end, or puts of its own.
        """
        self.devices = list(devices)
        self.recorded = recorded = Recording(
            ranks, scalars, multiprocessors_of_rank(self.devices), way, options
        )
        self.ranks, self.programs, self.layout = recorded.ranks, recorded.programs, recorded.layout
        self.on_gpus: Any = core.load_for_programs().make_hosted_program(
            recorded.text(), recorded.kernels, self.devices, self.layout.size, options.threads
        )
        hold(self)
        segments = [(s.commands, s.repeats) for s in recorded.segments]
        self.on_gpus.prepare(segments, bytes(recorded.arguments), recorded.size)

    def run(
        self, arguments: list[Arguments], data: dict[str, Any], wait_limit: float = 60.0
    ) -> RanksRan:
        """Load, run, and store into the arrays of all ranks."""
        copies, _kept = copies_to(self, arguments, data)
        self.on_gpus.load(copies)
        seconds, faults = self.on_gpus.run(wait_limit)
        check_faults(self.programs[0], np.array(faults))
        ran = RanksRan(seconds=float(seconds))
        results = np.zeros(result_words(self.programs[0]), np.int64)
        fields = len(self.ranks.fields)
        results[len(self.programs[0].variables) :] = [*range(fields), *range(fields)]
        for rank, of_rank in enumerate(arguments):
            collect(self, rank, of_rank, results.copy(), ran)
        return ran


class Recording:
    """What the host does for programs of ranks, written down; no GPU is needed."""

    def __init__(
        self,
        ranks: Ranks,
        scalars: dict[str, Any],
        multiprocessors: int,
        way: str = "copies",
        options: SweepOptions = STANDARD,
    ) -> None:
        ranks = without_idle_sites(ranks)
        self.programs = with_same_fields([group_points(add_temporaries(p)) for p in ranks.variants])
        self.ranks = replace(ranks, variants=tuple(self.programs))
        self.layout = RankGridLayout(self.programs[0], self.ranks)
        self.options = options
        self.lines: list[str] = []
        self.kernels = 0
        self.groups: list[dict[ir.Group, tuple[int, int]]] = []
        """Of each variant, of each group: its kernel, and blocks."""
        for p in self.programs:
            kept = kept_fields(self.ranks, p)
            lines, groups, blocks = stage_kernels(
                p, self.layout, kept, multiprocessors, options, self.kernels, alone=True
            )
            self.lines += lines
            numbered = enumerate(zip(groups, blocks, strict=True), self.kernels)
            self.groups.append({g: (number, b) for number, (g, b) in numbered})
            self.kernels += len(groups)
        self.moves: dict[Kernel, int] = {}
        self.arguments = bytearray()
        self.known: dict[bytes, int] = {}
        types = (*self.programs[0].scalars, *self.programs[0].variables)
        self.size = 8 * (len(self.ranks.fields) + max(1, len(types)))
        self.segments: list[Segment] = []
        self.commands: list[Command] = []
        self.messages = HostMessages(self.ranks, self.layout, way)
        self.follow(scalars)

    # --- the programs ---

    def follow(self, scalars: dict[str, Any]) -> None:
        """Write down what all ranks do."""
        count = self.ranks.count
        follows = [_Rank(self, rank, scalars) for rank in range(count)]
        self.together([f.block(f.program.body, 0) for f in follows], follows)
        self.flush()

    def together(self, runs: list[Iterator[ir.Statement]], follows: list[_Rank]) -> None:
        """Let ranks go on, each to its next wait, until all have ended."""
        at: dict[int, ir.Statement | None] = {}

        def go_on(rank: int) -> None:
            at[rank] = next(runs[rank], None)

        for rank in range(len(runs)):
            go_on(rank)
        while any(s is not None for s in at.values()):
            loops = [s for s in at.values() if isinstance(s, ir.For)]
            if len(loops) == len(runs):
                self.loop(loops, follows)
                ready = list(at)
            else:
                self.deliver()
                ready = [
                    r for r, s in at.items() if isinstance(s, ir.Finish) and follows[r].is_done(s)
                ]
            if not ready:
                self.refuse("ranks wait for one another")
            for rank in ready:
                go_on(rank)

    def loop(self, loops: list[ir.For], follows: list[_Rank]) -> None:
        """Write down the turns of a loop of all ranks, one round of them where they are alike."""
        turns = [f.scalars.turns(s) for f, s in zip(follows, loops, strict=True)]
        if len(set(map(len, turns))) != 1:
            self.refuse("a loop has other turns on other ranks")
        alike = not any(depends(s) for s in loops)

        def turn(k: int) -> None:
            for f, s, values in zip(follows, loops, turns, strict=True):
                f.scalars.values[s.var] = np.int64(values[k])
            runs = [f.block(s.body, 1) for f, s in zip(follows, loops, strict=True)]
            self.together(runs, follows)
            if self.messages.pending:
                self.refuse("messages are under way from turn to turn of a loop")

        count, total = 0, len(turns[0])
        if alike and total > 1:
            self.flush()
            while count < total and (count == 0 or len(self.commands) < LEAST_COMMANDS):
                turn(count)
                count += 1
            repeats = total // count
            self.segments.append(Segment(self.commands, repeats))
            self.commands = []
            count *= repeats
        for k in range(count, total):
            turn(k)
        for f, s, values in zip(follows, loops, turns, strict=True):
            if total:  # as the last turn leaves it, repeated or not
                f.scalars.values[s.var] = np.int64(values[-1])

    def flush(self) -> None:
        """End a segment."""
        if self.commands:
            self.segments.append(Segment(self.commands))
        self.commands = []

    def refuse(self, why: str) -> NoReturn:
        """Say why there is no such variant."""
        raise UnsupportedError(f"{self.ranks.name} has no host-driven variant: {why}")

    # --- commands ---

    def add(self, *commands: Command) -> None:
        """Write down commands."""
        self.commands += commands
        if len(self.commands) > MOST_COMMANDS:
            self.refuse("there is too much to be written down")

    def deliver(self) -> None:
        """Write down how all messages go whose regions are granted."""
        for step in self.messages.deliver():
            if isinstance(step, tuple):
                self.move(*step)
            else:
                self.add(step)

    def place_of(self, blob: bytes) -> int:
        """Return where the arguments of a launch begin."""
        if blob not in self.known:
            self.known[blob] = len(self.arguments)
            self.arguments += blob
        return self.known[blob]

    def move(self, what: str, rank: int, sites: tuple[int, ...]) -> None:
        """Write down a launch that packs, unpacks or puts messages."""
        kernel = (what, rank, sites)
        if kernel not in self.moves:
            self.moves[kernel] = self.kernels
            self.kernels += 1
        values = sum(self.messages.part(what != "unpack", rank, site).values for site in sites)
        blocks = max(1, min(_MOST_PACK_BLOCKS, values // _PACK_THREADS))
        self.add([LAUNCH, rank, self.moves[kernel], blocks, self.place_of(bytes(self.size))])

    def text(self) -> str:
        """Return the text of all kernels."""
        lines = [*HEAD, *self.lines]
        for (what, rank, sites), number in self.moves.items():
            calls = [self._call(what, rank, site) for site in sites]
            # Launches have the threads of all kernels: those that are too many do nothing.
            threads = max(_PACK_THREADS, self.options.threads)
            lines.append(_MOVE.format(threads=threads, number=number, moves="\n".join(calls)))
        return "\n".join(lines) + "\n"

    def _call(self, what: str, rank: int, site: int) -> str:
        one, other, peer = self.messages.ends(what, rank, site)
        kind = {8: "std::uint64_t", 4: "std::uint32_t", 1: "std::uint8_t"}[one.size]
        texts = (", ".join(map(str, x)) for x in (one.steps, other.steps, one.counts))
        steps, to_steps, counts = (f"{{{t}}}" for t in texts)
        region = f"{{{one.offset}, {steps}, {other.offset}, {to_steps}, {counts}}}"
        to = f"place.heaps[{peer}]" if what == "put" else "place.heap"
        return f"  copy_region<{kind}>(place.heap, {to}, {region}, me, {_PACK_THREADS});"


class _Rank:
    """Follows the program of one rank."""

    def __init__(self, recording: Recording, rank: int, scalars: dict[str, Any]) -> None:
        self.all, self.rank = recording, rank
        self.variant = recording.ranks.variant_of[rank]
        self.program = recording.programs[self.variant]
        self.scalars = Scalars(self.program, SimpleNamespace(scalars=scalars, data={}))
        self.started: Counter[int] = Counter()
        offsets = [recording.layout.offsets[f.name] for f in self.program.fields]
        self.offsets = np.array(offsets, np.int64).tobytes()

    def block(self, body: tuple[ir.Statement, ...], depth: int) -> Iterator[ir.Statement]:
        """Write down statements; yield those at which ranks wait, and the outermost loops."""
        for s in body:
            if any(True for _ in scalar_accesses(self.program, s)):
                self.all.refuse("the host would wait for values of arrays")
            if isinstance(s, ir.If):
                yield from self.block(s.then if self.scalars.truth(s) else s.otherwise, depth)
            elif isinstance(s, ir.For):
                yield from self.loop(s, depth)
            elif isinstance(s, ir.Finish):
                yield s
            else:
                self.statement(s)

    def loop(self, s: ir.For, depth: int) -> Iterator[ir.Statement]:
        """Write down a loop, the outermost one with all ranks."""
        if depth == 0:
            yield s
            return
        for turn in self.scalars.turns(s):
            self.scalars.values[s.var] = np.int64(turn)
            yield from self.block(s.body, depth + 1)

    def statement(self, s: ir.Statement) -> None:
        messages = self.all.messages
        if isinstance(s, ir.Group):
            self.group(s)
        elif isinstance(s, ir.Set):
            self.scalars.set(s)
        elif isinstance(s, ir.Grant):
            messages.granted.update((self.rank, m.site) for m in s.receives)
        elif isinstance(s, ir.Start):
            self.started[s.exchange] += 1
            messages.pending += [
                Sent(self.rank, m.site, self.started[s.exchange])
                for m in s.sends
                if self.all.ranks.sends[self.rank][m.site].peer >= 0
            ]
        else:
            self.all.refuse(f"there is none of {type(s).__name__}")

    def is_done(self, s: ir.Finish) -> bool:
        """Return whether all messages of an exchange have come and gone."""
        epoch, messages, ranks = self.started[s.exchange], self.all.messages, self.all.ranks

        def done(site: int, peer: int, counts: Callable[[tuple[int, int]], int]) -> bool:
            return peer < 0 or counts((self.rank, site)) >= epoch

        return all(
            done(m.site, ranks.sends[self.rank][m.site].peer, messages.sent.__getitem__)
            for m in s.sends
        ) and all(
            done(m.site, ranks.receives[self.rank][m.site].peer, messages.arrived.__getitem__)
            for m in s.receives
        )

    def group(self, s: ir.Group) -> None:
        """Write down a sweep."""
        if any(isinstance(stage.work, ir.Reduce) for stage in s.stages):
            self.all.refuse("it has reductions")
        names = [n for n, _ in (*self.program.scalars, *self.program.variables)]
        values = [scalar_bytes(self.scalars.values.get(n, 0), self.scalars.types[n])
                  for n in names] or [bytes(8)]  # fmt: skip
        number, blocks = self.all.groups[self.variant][s]
        place = self.all.place_of(self.offsets + b"".join(values))
        self.all.add([LAUNCH, self.rank, number, blocks, place])
