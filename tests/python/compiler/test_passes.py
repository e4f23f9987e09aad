"""Passes: temporaries, groups, exchanges of halos, and the check of these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from grid_programs import CASES, as_tuple, assert_same, case, copies, plainly
from multigrid_programs import v_cycles, v_cycles_by_level

import cpufree
from cpufree.compiler import ir
from cpufree.compiler.emit import emit
from cpufree.compiler.front.lower import lower
from cpufree.compiler.interpret import interpret
from cpufree.compiler.launch import passes
from cpufree.compiler.layout import Layout, most_pes
from cpufree.compiler.passes import add_temporaries, check_ghosts, exchange, fuse


@cpufree.program
def shift(u: Any, n: int) -> None:
    for _ in range(n):
        u[1:] = u[:-1]


@cpufree.program
def mirror(u: Any) -> None:
    u[0] = u[1]
    u[2::2] *= 2.0


@cpufree.program
def two_sweeps(a: Any, b: Any, c: Any, n: int) -> None:
    for _ in range(n):
        b[1:-1] = a[2:] - a[:-2]
        c[1:-1] = b[2:] + b[:-2]


@cpufree.program
def corners(v: Any, n: int) -> None:
    for _ in range(n):
        for i in (1, 4):
            for j in (1, 4):
                v[i, j] = 0.5 * v[i, j - 1]


def of(kind: type, program: ir.Program) -> list[Any]:
    return [s for s in ir.walk(program.body) if isinstance(s, kind)]


def test_update_that_reads_what_it_writes_gets_a_temporary() -> None:
    made = add_temporaries(shift.lower(np.zeros((5, 4)), 1))
    first, second = of(ir.Assign, made)
    assert made.field(first.field).role == "temporary"
    assert second.field == "u"


def test_updates_of_points_that_are_not_read_need_no_temporary() -> None:
    program = mirror.lower(np.zeros((6, 4)))
    assert add_temporaries(program) == program


def test_stage_that_reads_rows_ahead_lags_behind() -> None:
    u = np.zeros((9, 9))
    (group,) = of(ir.Group, fuse(two_sweeps.lower(u, u.copy(), u.copy(), 1)))
    assert [stage.lag for stage in group.stages] == [0, 1]


def test_stages_that_compute_rows_twice_exchange_once() -> None:
    u = np.zeros((9, 9))
    made = passes(two_sweeps.lower(u, u.copy(), u.copy(), 3))
    # a never changes: its ghosts are loaded, b's are computed.
    assert not of(ir.Put, made)
    assert check_ghosts(made) > 0


def test_halo_is_exchanged_where_a_field_was_written_and_nowhere_else() -> None:
    program, arguments = case("fdtd_2d", 12)
    made = passes(program.lower(*arguments))
    fields = [h.field for put in of(ir.Put, made) for h in put.halos]
    assert sorted(fields) == ["ey", "hz"] or fields == ["hz"], fields


@pytest.mark.parametrize("name", CASES)
def test_passes_keep_what_a_program_computes(name: str) -> None:
    program, arguments = case(name, 14)
    plain, ours = copies(arguments), copies(arguments)
    expected = as_tuple(plainly(program)(*plain))
    signature = program.signature.bind(*ours)
    lowered = lower(program.source, signature.arguments)
    arrays = {k: v for k, v in signature.arguments.items() if isinstance(v, np.ndarray)}
    interpret(passes(lowered.program), arrays, lowered)
    assert_same(name, plain, ours)
    assert expected


def test_check_finds_an_exchange_that_is_missing() -> None:
    program, arguments = case("gray_scott", 12)
    made = passes(program.lower(*arguments))
    assert check_ghosts(made) > 0

    def without(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        kept = (s for s in body if not isinstance(s, ir.Put | ir.Wait))
        return tuple(ir.with_blocks(s, without) for s in kept)

    with pytest.raises(cpufree.EngineError, match="exchange is missing"):
        check_ghosts(replace(made, body=without(made.body)))


def test_check_finds_a_wait_that_nothing_was_sent_for() -> None:
    program, arguments = case("gray_scott", 12)
    made = exchange(fuse(add_temporaries(program.lower(*arguments))))

    def without(body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        kept = (s for s in body if not isinstance(s, ir.Put))
        return tuple(ir.with_blocks(s, without) for s in kept)

    with pytest.raises(cpufree.EngineError, match="not sent"):
        check_ghosts(replace(made, body=without(made.body)))


def test_stages_that_differ_in_numbers_alone_share_their_text() -> None:
    text = emit(passes(corners.lower(np.zeros((6, 6)), 2))).text
    assert text.count("struct Stage") == 2, "one reads a point, the other one writes it"


def test_stages_of_coarse_grids_share_their_text_with_those_of_fine_ones() -> None:
    counts = []
    for n, grids in ((33, 5), (65, 6)):
        lowered = v_cycles.lower(np.zeros((n, n)), np.zeros((n, n)), 0.1, grids, 2)
        counts.append(emit(passes(lowered)).text.count("struct Stage"))
    assert counts[0] == counts[1], "one more grid needs no more of them"


def test_exchanges_of_coarse_grids_are_repeated_where_a_pe_has_few_rows() -> None:
    grids = np.zeros((33, 33)), np.zeros((33, 33)), 0.1, 1
    made = passes(v_cycles_by_level.lower(*grids))
    assert most_pes(made, 4) == 4
    assert max(c["hops"] for c in Layout(made, 4).channels.values()) == 2, "16 rows, 8 on a PE"
    assert max(c["hops"] for c in Layout(made, 2).channels.values()) == 1
