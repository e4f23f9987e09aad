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
from typing import Any

from cpufree.compiler import ir
from cpufree.compiler.emit.hosted import HEAD, Kernels, stage_kernels
from cpufree.compiler.emit.names import in_ascii
from cpufree.compiler.emit.tiles import STANDARD, SweepOptions
from cpufree.compiler.hosted import LAUNCH, Follower, HostDriven, Recording
from cpufree.compiler.passes import add_temporaries
from cpufree.compiler.passes.points import group_points
from cpufree.compiler.ranks.host_messages import HostMessages, Kernel, Sent
from cpufree.compiler.ranks.layout import RankGridLayout
from cpufree.compiler.ranks.live import without_idle_sites
from cpufree.compiler.ranks.on_gpu import multiprocessors_of_rank
from cpufree.compiler.ranks.on_grid import kept_fields
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.compiler.runner import Runner

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


def hosted_runner_of_ranks(
    ranks: Ranks,
    devices: Sequence[int],
    scalars: dict[str, Any],
    way: str = "copies",
    options: SweepOptions = STANDARD,
) -> Runner:
    """Return what runs ranks driven by the host, for given values of scalars; `way` is one of WAYS.

    Raises
    ------
    UnsupportedError
        The program has reductions, loops that the values of arrays end, or puts of its own.
    """
    made = RanksRecording(ranks, scalars, multiprocessors_of_rank(devices), way, options)
    engine = HostDriven(made, made.text(), made.kernels, devices, options.threads)
    return Runner(made.layout, engine, ranks.returned)


class RanksRecording(Recording):
    """What the host does for programs of ranks, written down; no GPU is needed."""

    layout: RankGridLayout

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
        program = self.programs[0]
        super().__init__(ranks.name, program, RankGridLayout(self.ranks))
        fields = range(len(program.fields))
        self.left = [*[0] * len(program.variables), *fields, *fields, 0, 0]
        self.options = options
        self.lines: list[str] = []
        self.kernels = 0
        self.groups: list[Kernels] = []
        """Of each variant."""
        for p in self.programs:
            kept = kept_fields(self.ranks, p)
            lines, groups = stage_kernels(
                p, self.layout, kept, multiprocessors, options, self.kernels, alone=True
            )
            self.lines += lines
            self.groups.append(groups)
            self.kernels += len(groups)
        self.moves: dict[Kernel, int] = {}
        self.messages = HostMessages(self.ranks, self.layout, way)
        self.follows = [_Rank(self, rank, scalars) for rank in range(self.ranks.count)]
        self.together([f.block(f.program.body, 0) for f in self.follows])
        self.flush()

    # --- the programs ---

    def together(self, runs: list[Iterator[ir.Statement]]) -> None:
        """Let ranks go on, each to its next wait, until all have ended."""
        at = [next(run, None) for run in runs]
        while any(s is not None for s in at):
            loops = [s for s in at if isinstance(s, ir.For)]
            if len(loops) == len(runs):
                self.loop(loops, self.follows)
                ready = list(range(len(at)))
            else:
                self.deliver()
                ready = [
                    rank
                    for rank, s in enumerate(at)
                    if isinstance(s, ir.Finish) and self.follows[rank].is_done(s)
                ]
            if not ready:
                self.refuse("ranks wait for one another")
            for rank in ready:
                at[rank] = next(runs[rank], None)

    def bodies(self, runs: list[Iterator[ir.Statement]]) -> None:
        self.together(runs)
        if self.messages.pending:
            self.refuse("messages are under way from turn to turn of a loop")

    # --- commands ---

    def deliver(self) -> None:
        """Write down how all messages go whose regions are granted."""
        for step in self.messages.deliver():
            if isinstance(step, tuple):
                self.move(*step)
            else:
                self.add(step)

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
        return in_ascii("\n".join(lines) + "\n")

    def _call(self, what: str, rank: int, site: int) -> str:
        one, other, peer = self.messages.ends(what, rank, site)
        kind = {8: "std::uint64_t", 4: "std::uint32_t", 1: "std::uint8_t"}[one.size]
        texts = (", ".join(map(str, x)) for x in (one.steps, other.steps, one.counts))
        steps, to_steps, counts = (f"{{{t}}}" for t in texts)
        region = f"{{{one.offset}, {steps}, {other.offset}, {to_steps}, {counts}}}"
        to = f"place.heaps[{peer}]" if what == "put" else "place.heap"
        return f"  copy_region<{kind}>(place.heap, {to}, {region}, me, {_PACK_THREADS});"


class _Rank(Follower):
    """Follows the program of one rank."""

    all: RanksRecording

    def __init__(self, recording: RanksRecording, rank: int, scalars: dict[str, Any]) -> None:
        program = recording.layout.program_of(rank)
        super().__init__(recording, program, SimpleNamespace(scalars=scalars, data={}))
        self.rank = rank
        self.groups = recording.groups[recording.ranks.variant_of[rank]]
        self.started: Counter[int] = Counter()

    def group(self, s: ir.Group) -> None:
        self.launch([self.rank], *self.groups[s], self.offsets)

    def statement(self, s: ir.Statement) -> None:
        messages = self.all.messages
        if isinstance(s, ir.Grant):
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
