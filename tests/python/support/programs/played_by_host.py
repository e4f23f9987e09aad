"""What the host does for ranks, played in NumPy: heaps, copies, sweeps by the interpreter."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.arrays import gather, in_heap, scatter
from cpufree.compiler.hosted import COPY, LAUNCH, MEET
from cpufree.compiler.interpret import interpret
from cpufree.compiler.ranks.hosted import RanksRecording


class Played:
    """The heaps of all ranks, and what commands do to them."""

    def __init__(self, recording: RanksRecording, given: list[Any], data: dict[str, Any]) -> None:
        self.r, self.data = recording, data
        self.heaps = [np.zeros(recording.layout.size, np.uint8) for _ in given]
        self.moves = {number: kernel for kernel, number in recording.moves.items()}
        self.stages = [
            {number: group for group, (number, _) in groups.items()} for groups in recording.groups
        ]
        for rank, of_rank in enumerate(given):
            for f in recording.ranks.fields:
                source = of_rank.arrays.get(f.name) if f.role == "argument" else data.get(f.name)
                if source is not None:
                    self.load(rank, f, source)

    def play(self) -> int:
        """Do all commands; return how many launches there were."""
        launches = 0
        for segment in self.r.segments:
            for _ in range(segment.repeats):
                # Behind a meeting nothing may depend on the order of ranks: backwards, too.
                for commands in split(segment.commands):
                    for command in sorted(commands, key=lambda c: -c[1]):
                        launches += command[0] == LAUNCH
                        self.command(command)
        return launches

    def command(self, c: list[int]) -> None:
        if c[0] == COPY:
            _, rank, peer, at, to, size = c
            self.heaps[peer][to : to + size] = self.heaps[rank][at : at + size]
        elif c[2] in self.moves:
            self.move(*self.moves[c[2]])
        else:
            self.sweep(c[1], self.stages[self.r.ranks.variant_of[c[1]]][c[2]])

    def move(self, what: str, rank: int, sites: tuple[int, ...]) -> None:
        for site in sites:
            one, other, peer = self.r.messages.ends(what, rank, site)
            self.region(peer, other)[...] = self.region(rank, one)

    def region(self, rank: int, part: Any) -> Any:
        heap = self.heaps[rank][part.offset :]
        values = heap[: len(heap) // part.size * part.size].view(f"u{part.size}")
        steps = [s * part.size for s in part.steps]
        return np.lib.stride_tricks.as_strided(values, part.counts, steps)

    def sweep(self, rank: int, group: ir.Group) -> None:
        program = self.r.programs[self.r.ranks.variant_of[rank]]
        arrays = {f.name: np.zeros(f.shape, f.type) for f in program.fields}
        for f in program.fields:
            self.unload(rank, f, arrays[f.name])
        fields = tuple(ir.Field(f.name, f.shape, f.type, "argument") for f in program.fields)
        names = (*program.scalars, *program.variables)
        one = ir.Program("one", fields, names, (), (group,))
        values = {name: 0 for name, _ in names}
        interpret(one, arrays, SimpleNamespace(scalars=values, data={}))
        for f in program.fields:
            self.load(rank, f, arrays[f.name])

    def load(self, rank: int, f: ir.Field, array: Any) -> None:
        for part in scatter(self.r.layout, rank, f, array):
            for place, rows in in_heap(self.r.layout, part, self.heaps[part.pe]):
                place[...] = rows

    def unload(self, rank: int, f: ir.Field, array: Any) -> None:
        for part in gather(self.r.layout, rank, f, array):
            for place, rows in in_heap(self.r.layout, part, self.heaps[part.pe]):
                rows[...] = place


def split(commands: list[list[int]]) -> list[list[list[int]]]:
    parts: list[list[list[int]]] = [[]]
    for c in commands:
        if c[0] == MEET:
            parts.append([])
        else:
            parts[-1].append(c)
    return parts
