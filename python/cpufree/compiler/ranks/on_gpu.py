"""Programs of ranks on GPUs: a GPU for each rank, or several ranks on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.gpu_run import Copy, address_of, copies_in, copies_out, hold
from cpufree.compiler.launch import check_faults, results_of, scalar_table
from cpufree.compiler.passes import add_temporaries
from cpufree.compiler.passes.barriers import add_barriers, check_barriers
from cpufree.compiler.passes.points import group_points
from cpufree.compiler.ranks.grants import check_grants, early_grants
from cpufree.compiler.ranks.layout import RankGridLayout
from cpufree.compiler.ranks.live import without_idle_sites
from cpufree.compiler.ranks.on_cpu import RanksRan, touched_fields
from cpufree.compiler.ranks.on_grid import emit_ranks, result_words
from cpufree.compiler.ranks.routes import Ranks, with_same_fields
from cpufree.engines import core, gpus
from cpufree.engines.watch import Watch
from cpufree.env import Env
from cpufree.errors import InvalidInputError, NotEnoughGpusError, UnsupportedError
from cpufree.laps import Laps


def grid_programs(ranks: Ranks) -> list[ir.Program]:
    """Return the variants ready for GPUs; checked."""
    return with_same_fields([_grid_program(p) for p in ranks.variants])


def _grid_program(program: ir.Program) -> ir.Program:
    grouped = add_barriers(group_points(add_temporaries(program)), alone=True)
    # An early grant before a loop may need a barrier of its own.
    made = add_barriers(early_grants(grouped, behind_barriers=True), alone=True)
    check_barriers(made, alone=True)
    check_grants(made)
    return made


class RanksOnGpus:
    """The kernel of ranks on GPUs, compiled, with memory."""

    def __init__(
        self, ranks: Ranks, devices: Sequence[int], roles: bool = True, puts: str = "auto"
    ) -> None:
        """Compile, and take memory.

        `roles`: blocks may be divided (ranks/roles.py). `puts`: how messages are put, one of
        ranks/layout.py's PUTS.

        Raises
        ------
        UnsupportedError
            There is no compiler for kernels of GPUs, or the GPUs do not reach one another.
        OutOfMemoryError, EngineError
            As the engine.
        """
        ranks = without_idle_sites(ranks)
        self.programs = grid_programs(ranks)
        self.ranks = replace(ranks, variants=tuple(self.programs))
        self.devices = list(devices)
        self.layout = RankGridLayout(self.programs[0], self.ranks, puts)
        room = multiprocessors_of_rank(self.devices)
        self.text = emit_ranks(self.ranks, self.programs, self.layout, room, roles=roles)
        self.on_gpus: Any = core.load_for_programs().make_gpu_program(
            self.text.on_gpu(),
            self.devices,
            self.layout.size,
            self.layout.leave,
            self.text.threads,
            self.text.thread_bytes,
            min(self.text.most_blocks, self.layout.most_blocks),
        )
        hold(self)

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
        words, ranks = result_words(self.programs[0]) + 2, self.ranks.count
        self._load(arguments, data)
        laps.lap("load")
        seconds, stopped, found, _ = self.on_gpus.run(
            scalar_table(self.programs[0], scalars).tolist(), ranks * words, wait_limit, watch
        )
        laps.lap("run")
        results = np.array(found, np.int64).reshape(ranks, words)
        check_faults(self.programs[0], np.ascontiguousarray(results[:, -2:]).reshape(-1))
        if stopped or watch.interrupted or watch.error is not None:
            return RanksRan(seconds=seconds, stopped=True)
        ran = RanksRan(seconds=seconds)
        for rank, of_rank in enumerate(arguments):
            collect(self, rank, of_rank, results[rank, :-2].copy(), ran)
        laps.lap("store")
        return ran

    def _load(self, arguments: list[Arguments], data: dict[str, Any]) -> None:
        copies, kept = copies_to(self, arguments, data)
        for rank in range(self.ranks.count):
            variant = self.ranks.variant_of[rank]
            words = self.layout.messages.words_of(rank, variant, self.programs[variant])
            for at, table in words.items():
                kept.append(table)
                size = table.nbytes
                copies.append([rank, at, size, address_of(table), size, size, 1])
        self.on_gpus.load(copies)


class OnGpus(Protocol):
    """A program of ranks on GPUs: as one kernel, or driven by the host."""

    programs: list[ir.Program]
    ranks: Ranks
    layout: RankGridLayout
    on_gpus: Any


def copies_to(
    run: OnGpus, arguments: list[Arguments], data: dict[str, Any]
) -> tuple[list[Copy], list[Any]]:
    """Return what brings arguments and constants to all ranks; and the memory it comes from."""
    copies: list[Copy] = []
    kept = []
    for rank, of_rank in enumerate(arguments):
        for f in run.ranks.fields:
            source = None
            if f.role == "argument" and f.name in of_rank.arrays:
                source = of_rank.contiguous(f.name)
            elif f.role == "constant":
                source = np.ascontiguousarray(data[f.name], f.type)
            if source is not None:
                kept.append(source)
                copies += _of_rank(copies_in(run.layout, f, address_of(source)), rank)
    return copies, kept


def collect(run: OnGpus, rank: int, of_rank: Arguments, results: Any, ran: RanksRan) -> None:
    """Bring what a rank has written to its arguments, and note what it leaves."""
    program = run.programs[run.ranks.variant_of[rank]]
    written = touched_fields(run.ranks, program)
    out = {key: of_rank.contiguous(key, copy_values=False) for key in of_rank.arrays}

    def unload(f: ir.Field, array: Any) -> None:
        run.on_gpus.store(_of_rank(copies_out(run.layout, f, address_of(array)), rank))

    wanted = {*of_rank.arrays, *(f.name for f in program.fields
                                 if f.name.startswith("__return"))}  # fmt: skip
    arrays, scalars = results_of(program, out, written, results, unload, wanted)
    ran.arrays.append(of_rank.take_results(arrays, out, written))
    ran.scalars.append(scalars)


def _of_rank(copies: list[Copy], rank: int) -> list[Copy]:
    return [[rank, *copy[1:]] for copy in copies]


def multiprocessors_of_rank(devices: list[int]) -> int:
    """Return the multiprocessors for each rank: ranks on one GPU share them."""
    return min(
        gpu["multiprocessors"] // devices.count(gpu["index"])
        for gpu in core.gpus()
        if gpu["index"] in devices
    )


def devices_of(
    engine: str, named: Sequence[int] | str, ranks: int, env: Env
) -> tuple[str, list[int]]:
    """Return the engine, and the GPU of each rank; none on the CPU engine.

    Raises
    ------
    InvalidInputError, UnsupportedError, NotEnoughGpusError
        What is asked for cannot be had.
    """
    engine = env.engine if engine == "auto" else engine
    if engine not in ("auto", "cpu_threads", "cuda_p2p"):
        raise UnsupportedError(
            f"programs of ranks do not run on engine '{engine}': choose cpu_threads or cuda_p2p"
        )
    if engine == "cpu_threads" or (engine == "auto" and ranks > gpus_most()):
        return "cpu_threads", []
    usable = [gpu.index for gpu in gpus.usable(gpus.find())]
    if not isinstance(named, str):
        if len(named) != ranks:
            raise InvalidInputError(
                f"gpus names {len(named)} GPUs for {ranks} ranks: name one for each"
            )
        if set(named) - set(usable):
            raise InvalidInputError(f"gpus names {sorted(set(named))}; there are {usable}")
        return "cuda_p2p", list(named)
    if len(usable) < ranks:
        if engine == "auto":
            return "cpu_threads", []
        raise NotEnoughGpusError(
            f"{ranks} ranks, and {len(usable)} GPUs: name one for each, as gpus=[0, 0, 1, 1]"
        )
    return "cuda_p2p", usable[:ranks]


def gpus_most() -> int:
    """Return the most ranks that GPUs take."""
    return 16
