"""Ranks driven by the host: what the host would do, played in NumPy; and that kernels compile.

DaCe is not needed: its front end has saved the programs (support/dace_cases.py).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import nvrtc
import pytest
from dace_cases import SAVED, arguments, constants, load, path
from dace_grids import CASES, whole_of

from cpufree.compiler import ir
from cpufree.compiler.hosted import COPY, LAUNCH, MEET
from cpufree.compiler.interpret import interpret
from cpufree.compiler.ranks.host_messages import WAYS
from cpufree.compiler.ranks.hosted import Recording
from cpufree.errors import UnsupportedError

MPI = [case for case in SAVED if "signals" not in case[0]]


class Played:
    """The heaps of all ranks, and what commands do to them."""

    def __init__(self, recording: Recording, given: list[Any], data: dict[str, Any]) -> None:
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
                    recording.layout.load(f, source, self.heaps[rank], 0)

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
            self.r.layout.unload(f, arrays[f.name], self.heaps[rank], 0)
        fields = tuple(ir.Field(f.name, f.shape, f.type, "argument") for f in program.fields)
        names = (*program.scalars, *program.variables)
        one = ir.Program("one", fields, names, (), (group,))
        values = {name: 0 for name, _ in names}
        interpret(one, arrays, SimpleNamespace(scalars=values, data={}))
        for f in program.fields:
            self.r.layout.load(f, arrays[f.name], self.heaps[rank], 0)


def split(commands: list[list[int]]) -> list[list[list[int]]]:
    parts: list[list[list[int]]] = [[]]
    for c in commands:
        if c[0] == MEET:
            parts.append([])
        else:
            parts[-1].append(c)
    return parts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "ranks"), MPI)
def test_what_the_host_does_gives_the_bits_of_plain_numpy(name: str, ranks: int, way: str) -> None:
    _, plain, points, grids = CASES[name]
    program = load(path(name, ranks))
    for steps in (2, 7, 40):
        recording = Recording(program, {"TSTEPS": steps}, 132, way)
        given = arguments(name, ranks, steps)
        played = Played(recording, given, constants(program))
        launches = played.play()
        assert launches >= 2 * ranks * (steps - 1)
        for key, wanted in zip(("lA", "lB"), plain(points, steps, ranks), strict=True):
            f = next(f for f in recording.ranks.fields if f.name == key)
            for rank, of_rank in enumerate(given):
                recording.layout.unload(f, of_rank.arrays[key], played.heaps[rank], 0)
            found = whole_of([a.arrays[key] for a in given], grids[ranks])
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name}, {key}, {steps} steps")


def test_turns_that_are_alike_are_recorded_once() -> None:
    few, many = (Recording(load(path("jacobi_2d", 2)), {"TSTEPS": n}, 132) for n in (1001, 100001))
    assert sum(len(s.commands) for s in many.segments) < 400
    assert max(s.repeats for s in many.segments) > max(s.repeats for s in few.segments) > 10


def test_puts_of_a_program_itself_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="no host-driven variant"):
        Recording(load(path("jacobi_2d_signals", 2)), {"TSTEPS": 4}, 132)


@pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
@pytest.mark.parametrize("way", WAYS)
def test_kernels_compile_for_gpus(way: str) -> None:
    recording = Recording(load(path("heat_3d", 4)), {"TSTEPS": 4}, 132, way)
    text = recording.text()
    assert text.count("__global__") == recording.kernels
    assert ("place.heaps[" in text) == (way == "stores") and "copy_region" in text
    assert len(nvrtc.compile_text(text)) > 1000
