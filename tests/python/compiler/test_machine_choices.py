"""Kernels of programs are chosen by the numbers of the machine file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from grid_programs import case

from cpufree import machine
from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import BlockPlan
from cpufree.compiler.emit.stream_plan import StreamPlan
from cpufree.compiler.gpu_run import machine_of
from cpufree.compiler.grid import chosen_kernel, grid_groups
from cpufree.machine import Machine, files


def changed(**factors: float) -> Machine:
    """Return the default machine with some numbers multiplied (program__round: program.round)."""
    known = machine.load()
    entries = dict(known.entries)
    for key, factor in factors.items():
        one = entries[name := key.replace("__", ".")]
        table = one.table and {count: factor * value for count, value in one.table.items()}
        entries[name] = replace(one, value=factor * one.value, table=table)
    return replace(known, entries=entries)


def groups(name: str, side: int) -> ir.Program:
    program, (_, _, steps) = case(name, 20)
    u = np.empty((side, side))
    return grid_groups(program.lower(u, u, steps), ())


def plan(side: int, known: Machine | None, pes: int = 1) -> Any:
    return chosen_kernel(groups("jacobi_2d", side), pes, (), 132, known=known).text.on_chip


SLOW = {"exchange__packets": 10.0, "program__barrier": 20.0, "program__round": 10.0}


def test_slow_exchanges_ask_for_more_turns_between_them() -> None:
    usual, slow = plan(256, changed()), plan(256, changed(**SLOW))
    assert usual.tile is None and slow.tile is None  # values stay on chip
    assert slow.turns > usual.turns > 0


def test_slow_links_ask_for_more_turns_of_a_round_on_several_gpus() -> None:
    usual, slow = plan(4096, changed(), 2), plan(4096, changed(**SLOW), 2)
    assert isinstance(usual, StreamPlan) and isinstance(slow, StreamPlan)
    assert slow.turns > usual.turns > 0


def test_slow_streams_leave_programs_to_rounds_in_tiles() -> None:
    assert isinstance(plan(4096, changed(program__round=30.0), 2), BlockPlan)


def test_the_file_that_the_environment_names_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    path = tmp_path / "slow.json"
    slow = {
        name: {"value": 20.0, "unit": "us", "provenance": "a test"}
        for name in ("exchange.packets", "program.barrier")
    }
    files.write(path, {"machine": "M", "gpu": "G", "like": "h200", "choices": slow})
    usual = plan(256, None).turns
    monkeypatch.setenv("CPUFREE_MACHINE", str(path))
    assert plan(256, None).turns > usual
    assert machine_of([0]).origin == str(path)
