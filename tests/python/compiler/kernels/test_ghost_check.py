"""Exchanges of random periodic programs: enough of them, and none can be left out unseen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_together import kernels_of
from grid_programs import assert_same, copies
from multigrid_programs import v_cycles
from pes_here import run_on_pes
from random_programs import program_of
from ring_programs import RingWriter, ring_arguments

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.front.lower import lower
from cpufree.compiler.front.lowered import Lowered
from cpufree.compiler.launch import cpu_runner, passes
from cpufree.compiler.layout import most_pes
from cpufree.compiler.passes import check_ghosts
from cpufree.engines.watch import Watch
from cpufree.errors import EngineError, ProgramError
from cpufree.laps import Laps

COUNT = int(os.environ.get("RANDOM_PROGRAMS", "40"))
Change = Callable[[ir.Halo], ir.Halo | None]


def lowered_programs(folder: Path, count: int) -> Iterator[tuple[int, Any, Lowered]]:
    """Yield random programs that the front end takes, with their seeds."""
    seed = 0
    while count > 0:
        seed += 1
        program = program_of(RingWriter(seed).text(), folder, f"ring_{seed}")
        arguments = program.signature.bind(*ring_arguments(seed)).arguments
        try:
            yield seed, program, lower(program.source, arguments)
        except ProgramError:
            continue
        count -= 1


def arrays_after(made: ir.Program, seed: int, lowered: Lowered, pes: int) -> list[Any]:
    """Return the caller's arrays after a run on a number of PEs, or fewer where rows are few."""
    arrays = dict(zip("uvw", copies(ring_arguments(seed))[:3], strict=True))
    found = run_on_pes(made, arrays, lowered, most_pes(made, pes))
    return [found[name] for name in "uvw"]


def without_halo(made: ir.Program, channel: int, name: str, change: Change) -> ir.Program:
    """Return a program in which the halo of a field in an exchange is another one, or missing."""

    def halos(old: tuple[ir.Halo, ...]) -> tuple[ir.Halo, ...]:
        new = (change(h) if h.field == name else h for h in old)
        return tuple(h for h in new if h is not None)

    def block(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        out = []
        for s in body:
            if isinstance(s, ir.Put | ir.Wait) and s.channel == channel:
                s = replace(s, halos=halos(s.halos))
            out.append(ir.with_blocks(s, block))
        return tuple(out)

    return replace(made, body=block(made.body))


CHANGES: dict[str, Change] = {
    "the halo": lambda h: None,
    "a row below": lambda h: replace(h, below=max(0, h.below - 1)),
    "a row above": lambda h: replace(h, above=max(0, h.above - 1)),
    "the way around": lambda h: replace(h, periodic=False),
}


def without_rows(made: ir.Program, group: int, stage: int) -> ir.Program:
    """Return a program in which a stage computes no rows beyond a PE's own."""
    groups = -1

    def block(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        nonlocal groups
        out = []
        for s in body:
            if isinstance(s, ir.Group):
                groups += 1
                if groups == group:
                    stages = list(s.stages)
                    stages[stage] = replace(stages[stage], below=0, above=0)
                    s = ir.Group(tuple(stages))
            out.append(ir.with_blocks(s, block))
        return tuple(out)

    return replace(made, body=block(made.body))


def test_random_periodic_programs_have_the_exchanges_that_they_need(tmp_path: Path) -> None:
    for seed, program, lowered in lowered_programs(tmp_path, COUNT):
        plain = copies(ring_arguments(seed))
        program.function(*plain)
        made = passes(lowered.program)
        for pes in range(1, 6):
            after = arrays_after(made, seed, lowered, pes)
            assert_same(f"seed {seed}, {pes} PEs", plain[:3], tuple(after))


def test_random_periodic_programs_are_compiled_as_python_runs_them(tmp_path: Path) -> None:
    chosen = list(lowered_programs(tmp_path, 30))
    kernels = kernels_of([lowered.program for *_, lowered in chosen], tmp_path)
    for k, (kernel, (seed, program, lowered)) in enumerate(zip(kernels, chosen, strict=True)):
        for pes in (1, 2 + k % 4):
            plain, ours = copies(ring_arguments(seed)), copies(ring_arguments(seed))
            program.function(*plain)
            given = Arguments.of(program.signature, program.name, ours, {})
            runner = cpu_runner(kernel, most_pes(kernel.program, pes), ())
            runner.run([given], lowered.data, lowered.scalars, 30.0, Watch(None), Laps())
            assert_same(f"seed {seed}, {pes} PEs", plain[:3], ours[:3])


@pytest.mark.parametrize("what", CHANGES)
def test_check_sees_what_is_left_out_of_an_exchange(what: str, tmp_path: Path) -> None:
    seen = 0
    for seed, _, lowered in lowered_programs(tmp_path, COUNT):
        made = passes(lowered.program)
        puts = [s for s in ir.walk(made.body) if isinstance(s, ir.Put)]
        for channel, name in [(s.channel, h.field) for s in puts for h in s.halos]:
            less = without_halo(made, channel, name, CHANGES[what])
            if less != made:
                seen += seen_or_harmless(made, less, seed, lowered)
    assert seen > COUNT // 10, "nothing was left out that the check could see"


def test_check_sees_each_exchange_that_a_v_cycle_lacks() -> None:
    program, arguments = v_cycles, (np.zeros((33, 33)), np.zeros((33, 33)), 0.1, 5, 2)
    made = passes(program.lower(*arguments))
    puts = [s for s in ir.walk(made.body) if isinstance(s, ir.Put)]
    halos = [(s.channel, h.field) for s in puts for h in s.halos]
    assert len(halos) > 10
    for channel, name in halos:
        with pytest.raises(EngineError, match="an exchange is missing"):
            check_ghosts(without_halo(made, channel, name, CHANGES["the halo"]))


def test_check_sees_ghosts_that_no_stage_computes(tmp_path: Path) -> None:
    seen = 0
    for seed, _, lowered in lowered_programs(tmp_path, 2 * COUNT):
        made = passes(lowered.program)
        groups = [s for s in ir.walk(made.body) if isinstance(s, ir.Group)]
        for k, group in enumerate(groups):
            for at, stage in enumerate(group.stages):
                if stage.below or stage.above:
                    less = without_rows(made, k, at)
                    seen += seen_or_harmless(made, less, seed, lowered)
    assert seen > COUNT // 10, "nothing was left out that the check could see"


def seen_or_harmless(made: ir.Program, less: ir.Program, seed: int, lowered: Lowered) -> bool:
    """Return whether the check complains about a program that lacks something.

    Where it does not, the program has to compute what it did before.
    """
    try:
        check_ghosts(less)
    except EngineError:
        return True
    for pes in range(1, 6):
        right = arrays_after(made, seed, lowered, pes)
        wrong = arrays_after(less, seed, lowered, pes)
        assert all(map(np.array_equal, right, wrong)), f"seed {seed}, {pes} PEs"
    return False
