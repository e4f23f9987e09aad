"""Programs of ranks on the CPU engine: a thread for each rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.build import build
from cpufree.compiler.launch import Threads
from cpufree.compiler.passes import add_temporaries, fuse
from cpufree.compiler.ranks.grants import check_grants, early_grants
from cpufree.compiler.ranks.layout import RankLayout
from cpufree.compiler.ranks.on_rows import RowsText, emit_rows
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.compiler.runner import Runner

HEAD = 7
"""Numbers before those of the ranks: the plan of messages, and the results of a rank."""


def rows_passes(ranks: Ranks) -> list[ir.Program]:
    """Return the variants ready for the CPU engine; checked."""
    made = []
    for program in ranks.variants:
        early = early_grants(fuse(add_temporaries(program)), behind_barriers=False)
        check_grants(early)
        made.append(early)
    return with_same_fields(made)


def cpu_runner_of_ranks(ranks: Ranks, traced: bool = False) -> Runner:
    """Return what runs ranks on the CPU engine; the kernel is compiled if it has not been yet."""
    programs = rows_passes(ranks)
    ranks = replace(ranks, variants=tuple(programs))
    text = emit_rows(ranks, programs)
    built = build(text.text, traced)
    layout = RankLayout(ranks, text.variant_of)
    threads = Threads(layout, built.address, _numbers(layout, text))
    return Runner(layout, threads, ranks.returned)


def _numbers(layout: RankLayout, text: RowsText) -> npt.NDArray[np.int64]:
    """Return the numbers of all ranks, after those that all know."""
    ranks = layout.ranks
    tables = [[layout.number(k) for k in keys] for keys in text.numbers]
    begins = np.cumsum([HEAD + ranks.count, *map(len, tables)])
    head = [*layout.messages.plan, layout.results, *(int(begins[v]) for v in ranks.variant_of)]
    return np.array([*head, *(n for t in tables for n in t)], np.int64)
