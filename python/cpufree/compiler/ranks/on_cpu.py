"""Programs of ranks on the CPU engine: a thread for each rank."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.build import build
from cpufree.compiler.launch import aligned_heap, check_faults, results_of, scalar_table
from cpufree.compiler.passes import add_temporaries, fuse
from cpufree.compiler.ranks.grants import check_grants, early_grants
from cpufree.compiler.ranks.layout import RankLayout
from cpufree.compiler.ranks.on_rows import RowsText, emit_rows
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.engines.watch import Watch
from cpufree.extension import load_core
from cpufree.laps import Laps

Arrays = dict[str, npt.NDArray[Any]]
HEAD = 7
"""Numbers before those of the ranks: the plan of messages, and the results of a rank."""


@dataclass(frozen=True)
class RanksRan:
    """What a run leaves, of each rank: arrays and scalars by name."""

    arrays: list[dict[str, Any]] = field(default_factory=list)
    scalars: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False


def rows_passes(ranks: Ranks) -> list[ir.Program]:
    """Return the variants ready for the CPU engine; checked."""
    made = []
    for program in ranks.variants:
        early = early_grants(fuse(add_temporaries(program)), behind_barriers=False)
        check_grants(early)
        made.append(early)
    return with_same_fields(made)


class RanksOnCpu:
    """The kernel of ranks on the CPU engine, compiled."""

    def __init__(self, ranks: Ranks) -> None:
        self.programs = rows_passes(ranks)
        self.ranks = replace(ranks, variants=tuple(self.programs))
        self.text: RowsText = emit_rows(self.ranks, self.programs)
        self.built = build(self.text.text)
        self.layout = RankLayout(self.programs[0], self.ranks)

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the numbers of all ranks, after those that all know."""
        places, count = self.layout.messages, self.ranks.count
        tables = [[self.layout.number(k) for k in keys] for keys in self.text.numbers]
        begins = np.cumsum([HEAD + count, *map(len, tables)])
        head = [*places.plan, self.results]
        head += [int(begins[v]) for v in self.ranks.variant_of]
        return np.array([*head, *(n for t in tables for n in t)], np.int64)

    @property
    def results(self) -> int:
        """Words that a rank leaves."""
        return len(self.programs[0].variables) + len(self.programs[0].fields)

    def run(
        self,
        arguments: list[Arguments],
        data: dict[str, Any],
        scalars: dict[str, Any],
        wait_limit: float,
        watch: Watch,
        laps: Laps,
    ) -> RanksRan:
        """Run; `arguments` are those of each rank, written once all has ended well.

        Raises
        ------
        ProgramError
            Python's rules for numbers were broken in the run.
        WaitTimeoutError, EngineError
            As the engine.
        """
        ranks, layout = self.ranks, self.layout
        for of_rank in arguments:
            of_rank.to_host()
        heaps = [aligned_heap(layout.size) for _ in range(ranks.count)]
        for rank, heap in enumerate(heaps):
            for f in ranks.fields:
                source = (
                    arguments[rank].arrays.get(f.name) if f.role == "argument" else data.get(f.name)
                )
                if source is not None:
                    layout.load(f, source, heap, 0)
            variant = ranks.variant_of[rank]
            words = layout.messages.words_of(
                rank, self.text.variant_of[variant], self.programs[variant]
            )
            for at, table in words.items():
                heap[at : at + table.nbytes] = table.view(np.uint8)
        laps.lap("load")
        numbers, given = self.numbers(), scalar_table(self.programs[0], scalars)
        results = np.zeros(ranks.count * self.results, np.int64)
        faults = np.zeros(2 * ranks.count, np.int64)
        tables = [t.ctypes.data for t in (numbers, given, results, faults)]
        seconds, stopped = load_core().run_program(
            self.built.address, [h.ctypes.data for h in heaps], tables, wait_limit, watch
        )
        laps.lap("run")
        check_faults(self.programs[0], faults)
        if stopped or watch.interrupted or watch.error is not None:
            return RanksRan(seconds=seconds, stopped=True)
        ran = RanksRan(seconds=seconds)
        for rank, heap in enumerate(heaps):
            part = results[rank * self.results : (rank + 1) * self.results]
            self._collect(rank, arguments[rank].arrays, part, heap, ran)
            arguments[rank].give_back(touched_fields(ranks, self.programs[ranks.variant_of[rank]]))
        laps.lap("store")
        return ran

    def _collect(self, rank: int, given: Arrays, results: Any, heap: Any, ran: RanksRan) -> None:
        program = self.programs[self.ranks.variant_of[rank]]

        def unload(f: ir.Field, array: Any) -> None:
            self.layout.unload(f, array, heap, 0)

        wanted = {f.name for f in program.fields if f.name.startswith("__return")}
        arrays, scalars = results_of(
            program, given, touched_fields(self.ranks, program), results, unload, wanted
        )
        ran.arrays.append(arrays)
        ran.scalars.append(scalars)


def touched_fields(ranks: Ranks, program: ir.Program) -> set[str]:
    """Return the fields that a rank writes, or that others write."""
    found = set(program.written)
    found |= {r.region.field for of_rank in ranks.sends for r in of_rank if r.region is not None}
    return found | {s.region.field for s in ir.walk(program.body) if isinstance(s, ir.Get)}
