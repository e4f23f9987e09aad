"""A matrix on its PEs: engine and layout are chosen once, values may be replaced."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.device_arrays import cuda_device
from cpufree.engines import in_processes
from cpufree.engines.asked import Asked
from cpufree.engines.choices import floating
from cpufree.engines.digests import Pattern
from cpufree.engines.early import start_gpus
from cpufree.engines.gpu_choice import Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.place import named_engine, place
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.extension import load_core
from cpufree.laps import Laps
from cpufree.log import log_times, logger
from cpufree.matrix.gpu_csr import gpu_csr
from cpufree.matrix.load import as_csr, canonical_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.rows import RowSlab, RowSource
from cpufree.partition.cache import PartitionCache
from cpufree.partition.part_vector import PartitionLike, as_part_vector
from cpufree.solvers import agreement, own_rows
from cpufree.solvers.forecast import OneCall, forecast
from cpufree.solvers.gpu_layout import (
    There,
    lay_out_there,
    may_be_checked_there,
    oddness_found,
)
from cpufree.solvers.layout import Layout, Sharing, lay_out, relaid
from cpufree.solvers.preparation import Prepared, prepare, prepare_values, solve_dtype
from cpufree.solvers.work import LEAST_NONZEROS, SYSTEM, SystemWork
from cpufree.text import counted


@dataclass(frozen=True)
class Wanted:
    """How a matrix is to be set up."""

    asked: Asked
    partition: PartitionLike
    reorder: str | bool
    check: bool
    dtype: npt.DTypeLike | None
    call: OneCall
    partition_cache: str | os.PathLike[str] | None = None


class MatrixOnPes:
    """A matrix that has been laid out on its PEs, until it is freed.

    Raises what `Solver` raises.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    rows: npt.NDArray[np.intp] | range | None = None
    """Of this process: an array where vectors are those of all rows, None: all of them."""
    numbers: npt.NDArray[np.intp] | None = None
    """Of own rows that lie in another order."""
    layout: Layout
    """Where it lies, and why; without a system once it has been freed."""
    _pattern: Pattern | None
    setup_timings: dict[str, float]
    """Seconds of the set-up or the last update, "setup", and of its phases."""
    past: list[int]
    """Iterations of the solves until now that reached their tolerance."""
    closed = False
    _gpu_layout: Layout | None = None
    _small: Prepared | None = None
    _writing = False

    def __init__(self, A: Any, wanted: Wanted) -> None:
        laps = Laps()
        load_core()
        self.env = Env.read()
        self._asked, self._check, self._goal = wanted.asked, wanted.check, wanted.call.goal
        self.past: list[int] = []
        # What cannot be had is reported before a large matrix is read.
        near = cuda_device(wanted.call.right)
        named = named_engine(SYSTEM, self._asked, self.env, near is not None)
        laps.lap("start")
        self.team = in_processes.team_for(named, self._asked)
        if self.team is not None:
            self.team.agree("preconditioner", {"preconditioner": dict(self._asked.tuning)})
        laps.lap("join")
        self._unasked = named == "auto"
        with self.working():
            given = wanted.partition
            given = given if isinstance(given, str) else as_part_vector(given).copy()
            self._sharing = (given, wanted.reorder)
            self._cache = wanted.partition_cache
            if self.team is None:  # which has a PE in each process
                self._asked = self._asked.for_partition(given, self.env)
            rows, right = isinstance(A, (RowSlab, RowSource)), wanted.call.right
            if not rows and isinstance(A, (str, os.PathLike)):
                start_gpus(self._asked, self.env, A)
            there = self._lay_out_there(A, wanted, laps)
            if there is not None:
                return
            source = A if rows else canonical_csr(A)
            kind = wanted.dtype if right is None else solve_dtype(source, right)
            if rows:
                prepared = None
                layout = self._lay_out_rows(source, kind, laps)
            else:
                prepared, layout = self._lay_out_checked(source, kind, near, laps)
                self.rows = self._own_rows(layout)
        self._pattern = None if prepared is None else prepared.pattern
        self._take(layout, prepared, laps)
        self._tell("set up", layout)

    def _lay_out_checked(
        self, A: CsrMatrix, kind: npt.DTypeLike | None, near: int | None, laps: Laps
    ) -> tuple[Prepared, Layout]:
        """Lay a matrix out whose entries have not been looked at: GPUs may do that on the way."""
        late = self._check and self.team is None and may_be_checked_there(A, self._asked, self.env)
        if late:
            laps.lap("check")
            prepared = prepare(A, False, kind)
            self.shape, self.dtype = A.shape, np.dtype(prepared.matrix.dtype)
            with suppress(InvalidInputError):  # the host says more of it, or puts it right
                layout = self._lay_out(prepared, near, laps, inspect=True)
                odd = oddness_found(layout, A)
                if odd is not None:
                    layout.warnings[:0] = odd
                    return prepared, layout
                del layout  # there may not be memory for both
        matrix = as_csr(A)
        prepared = prepare(matrix, self._check, kind)
        laps.lap("check")
        self.shape, self.dtype = matrix.shape, np.dtype(prepared.matrix.dtype)
        return prepared, self._lay_out(prepared, near, laps)

    def _lay_out_there(self, A: Any, wanted: Wanted, laps: Laps) -> Layout | None:
        """Set a matrix on a GPU up there; None: it is to be copied to the host."""
        given = gpu_csr(A) if self.team is None else None
        if given is None:
            return None
        right = wanted.call.right
        kind = wanted.dtype if right is None else solve_dtype(given, right)
        dtype = given.dtype if kind is None else floating(kind)
        how = There(self._asked, self.env, self._check, dtype, wanted.reorder)
        made = lay_out_there(given, how, laps)
        if made is None:
            return None
        layout, self._pattern = made
        self.shape, self.dtype, self.rows = given.shape, given.dtype, None
        self._take(layout, None, laps)
        self._tell("set up", layout)
        return layout

    def working(self) -> AbstractContextManager[None]:
        """Report an error here to the others of a team: they would wait for this process."""
        return nullcontext() if self.team is None else self.team.working()

    @property
    def nnz(self) -> int:
        """Nonzeros of all PEs."""
        return sum(self.layout.plan["nnz"])

    @property
    def own(self) -> bool:
        """Whether vectors are those of this process's rows alone."""
        return isinstance(self.rows, range)

    @property
    def length(self) -> int:
        """Numbers in a vector."""
        return len(self.rows) if isinstance(self.rows, range) else int(self.shape[0])

    def layout_for(self, near: int | None) -> Layout:
        """Return the layout for a b on GPU `near`, or on the host, unless it has been freed."""
        layout = self.layout
        layout.opened()
        if near is None or layout.engine == "cuda_p2p":
            return layout
        if self.team is not None or self._small is None:
            named_engine(SYSTEM, self._asked, self.env, on_gpu=True)  # says why not
        if self._small is None:
            raise InvalidInputError(
                "b lies on a GPU, but this Solver works on the CPU, with more PEs than there are "
                "GPUs: make one with fewer, or pass a copy of b on the host"
            )
        if self._gpu_layout is None:
            self._gpu_layout = self._lay_out(self._small, near, Laps())
            self._tell("set up on a GPU too, where b lies", self._gpu_layout)
        return self._gpu_layout

    def replace(self, A: Any) -> None:
        """Take new values. After an error, `values_lost` tells whether the old ones are gone."""
        laps = Laps()
        self.layout.opened()
        if self._pattern is None or isinstance(A, (RowSlab, RowSource)):
            raise InvalidInputError(
                "update is for whole matrices: where each process gives its own rows, make a "
                "new Solver"
            )
        prepared = prepare_values(A, self._check, self.dtype, self._pattern)
        laps.lap("check")
        if self.team is not None:
            agreement.agree_on_matrix(self.team, prepared, self._sharing)
            laps.lap("agree")
        self._writing = True
        self._take(self._laid_out_anew(prepared, laps), prepared, laps)
        self._writing = False
        log_times("update", self.setup_timings)

    def values_lost(self, error: BaseException) -> bool:
        """Return whether `replace`, which has raised this, has left no values to solve with."""
        if not self._writing:
            return False
        self._writing = False
        # Ctrl-C may come when the values have been written and nobody here knows it yet.
        old = self.layout.system if isinstance(error, Exception) else None
        return old is None or not old.usable()

    def free(self) -> None:
        """Free the memory of the matrix."""
        self.layout = self.layout.freed()
        self._gpu_layout = self._small = None

    def _take(self, layout: Layout, prepared: Prepared | None, laps: Laps) -> None:
        """Solve with this layout from now on; `prepared` is its matrix, None: own rows."""
        # A small system that has stayed on the CPU unasked is set up on a GPU too once a right-hand
        # side lies there. It is copied, for the caller may change A until then.
        small = (
            prepared is not None
            and self._unasked
            and layout.engine == "cpu_threads"
            and (prepared.pattern.nnz < LEAST_NONZEROS or layout.placement.expected is not None)
            and load_core().cuda_built()
        )
        self._small = prepared.copy() if small and prepared is not None else None
        self._gpu_layout = None
        self.layout = layout
        self._writing = False
        if self.closed:  # by another thread, meanwhile
            self.free()
        self.setup_timings = {"setup": laps.total(), **laps.named("setup")}

    def _laid_out_anew(self, prepared: Prepared, laps: Laps) -> Layout:
        """Return the layout with other values; where they do not fit, another one.

        It is one of the same kind, unless engine and GPUs are left open and the iterations until
        now have another one give the answers sooner.
        """
        layout = relaid(self.layout, prepared, laps)
        if layout is not None:
            return layout
        placement, sharing = self.layout.placement, self.layout.sharing
        self.free()  # there may not be memory for both
        if placement.expected is not None and self.past:
            return self._lay_out(prepared, None, laps)
        return lay_out(prepared, placement, sharing, laps)

    def _lay_out_rows(self, rows: Any, dtype: Any, laps: Laps) -> Layout:
        own = own_rows.lay_out(
            self.team, rows, self._asked, self.env, self._sharing, self._check, dtype, laps
        )
        self.shape, self.dtype = (own.n, own.n), own.dtype
        self.rows = range(own.first, own.last)
        self.numbers = own.numbers
        return own.layout

    def _own_rows(self, layout: Layout) -> npt.NDArray[np.intp] | None:
        """Return the rows of this process; None: all."""
        part = layout.sharing.part
        if part is None or self.team is None:
            return None
        return np.flatnonzero(part == self.team.rank)

    def _lay_out(
        self, prepared: Prepared, near: int | None, laps: Laps, inspect: bool = False
    ) -> Layout:
        matrix = prepared.matrix
        size = Size(matrix.shape[0], matrix.nnz, matrix.dtype.itemsize)
        if self.team is None:
            work = SystemWork(size, partial(forecast, matrix, self._goal, self.past))
            where = place(work, self._asked, self.env, near)
        else:
            agreement.agree_on_matrix(self.team, prepared, self._sharing)
            laps.lap("agree")
            where = place(SystemWork(size), self._asked, self.env, team=self.team)
        laps.lap("place")
        expected = None if where.expected is None else where.expected.iterations
        gain = gain_on(where.engine, self._goal.solves, expected)
        cache = None
        if self._cache is not None:
            cache = PartitionCache(Path(self._cache), prepared.pattern.numbers)
        share = partial(Sharing.of, matrix, where.pes, *self._sharing, gain, cache)
        return lay_out(prepared, where, share, laps, inspect)

    def _tell(self, what: str, layout: Layout) -> None:
        """Log a layout and its reasons."""
        size = f"{counted(self.shape[0], 'row')}, {counted(self.nnz, 'nonzero')}, {self.dtype}"
        logger.info("%s: %s; %s", what, size, "; ".join(layout.why))
        for warning in layout.warnings:
            logger.warning("%s", warning)
        log_times(what, self.setup_timings)
