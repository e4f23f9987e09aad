"""A matrix on its PEs: engine and layout are chosen once, values may be replaced."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree import summary
from cpufree.distributed import Team
from cpufree.dtypes import vector_type
from cpufree.engines.place import named_engine
from cpufree.env import Env
from cpufree.errors import CpufreeError, InvalidInputError
from cpufree.extension import CompileTime, load_core, says_what_compiles
from cpufree.laps import Laps
from cpufree.log import log_choices, log_times
from cpufree.machine import least
from cpufree.matrix.rows import RowSlab, RowSource
from cpufree.solvers.nullspace import NullSpace, singular_note
from cpufree.solvers.setup import agreement
from cpufree.solvers.setup.layout import Layout, lay_out, relaid
from cpufree.solvers.setup.options import SetupContext, SetupOptions, working
from cpufree.solvers.setup.preparation import Prepared, prepare_values
from cpufree.solvers.setup.setup import lay_out_matrix, set_up
from cpufree.solvers.work import SYSTEM
from cpufree.text import counted

REUSE = ("auto", "pattern", "none")
"""Whether an update keeps the aggregates of multigrid."""
MOST_MORE = 1.5
"""Iterations over those of the first solve, from which "auto" has new aggregates made."""


class MatrixOnPes:
    """A matrix that has been laid out on its PEs, until it is freed.

    Raises what `Solver` raises.
    """

    shape: tuple[int, int]
    """(n, n), of the whole matrix."""
    dtype: np.dtype[Any]
    """Of solves."""
    layout: Layout
    """Where it lies, and why; without a system once it has been freed."""
    of_complex: bool
    """Whether vectors are complex: `shape` counts their real and imaginary parts."""
    exponent = 0
    """What lies on the PEs is A divided by 2 to this; so x there is the caller's times as much."""
    setup_timings: dict[str, float]
    """Seconds of the set-up or the last update, "setup", and of its phases."""
    closed = False
    updates = -1
    """How often values have been taken since the first ones."""
    _gpu_layout: Layout | None = None
    _small: Prepared | None = None
    _writing = False

    def __init__(self, A: Any, options: SetupOptions) -> None:
        laps = Laps()
        self._compiling = CompileTime()
        self._context = SetupContext.of(options, laps)
        self.past: list[int] = []
        """Iterations of the solves until now that reached their tolerance."""
        self._with_amg: list[tuple[int, float]] = []  # and rtol, since aggregates were made
        with self.working(), says_what_compiles():
            made = set_up(A, self._context, laps)
        self.shape, self.dtype, self._pattern = made.shape, made.dtype, made.pattern
        self.of_complex = made.of_complex
        self._rows, self._numbers = made.rows, made.numbers
        with self.working():
            self.nullspace = self._null_space()
            """What vectors are kept out of, where A is singular."""
            notes = self._notes_on(made.prepared, laps)
        self._take(_with_warnings(made.layout, notes), made.prepared, laps)
        self._tell("set up", self.layout)

    def working(self) -> AbstractContextManager[None]:
        """Report an error here to the others of a team: they would wait for this process."""
        return working(self.team)

    @property
    def env(self) -> Env:
        """The environment when the matrix was set up."""
        return self._context.env

    @property
    def team(self) -> Team | None:
        """The processes with a PE each; None: this process has all PEs."""
        return self._context.team

    @property
    def made_for(self) -> tuple[str, bool]:
        """The method of solves that name none, and whether A was checked for it."""
        return self._context.options.method, self._context.options.check

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Numbers of the rows of this process, in the order of vectors of own rows."""
        if self._numbers is not None:
            return self._numbers.copy()
        rows = range(self.shape[0]) if self._rows is None else self._rows
        rows = np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows.copy()
        return rows[::2] // 2 if self.of_complex else rows

    @property
    def nnz(self) -> int:
        """Nonzeros of the whole matrix, as the caller knows it."""
        if self._pattern is None:
            return sum(self.layout.plan["nnz"])
        return self._pattern.nnz // (4 if self.of_complex else 1)

    @property
    def given_shape(self) -> tuple[int, int]:
        """(n, n), of the whole matrix as the caller knows it."""
        n = self.shape[0] // (2 if self.of_complex else 1)
        return (n, n)

    @property
    def vector_dtype(self) -> np.dtype[Any]:
        """Of vectors as the caller knows them: that of solves, or the complex one of such parts."""
        return vector_type(self.dtype, self.of_complex)

    @property
    def own(self) -> bool:
        """Whether vectors are those of this process's rows alone."""
        return isinstance(self._rows, range)

    @property
    def length(self) -> int:
        """Numbers in a vector of the caller."""
        rows = self._rows
        return len(rows) if isinstance(rows, range) else self.given_shape[0]

    def layout_for(self, rhs_gpu: int | None) -> Layout:
        """Return the layout for a b on a GPU, or on the host, unless it has been freed."""
        layout = self.layout
        layout.opened()
        if rhs_gpu is None or layout.engine == "cuda_p2p":
            return layout
        if self.team is not None or self._small is None:
            named_engine(SYSTEM, self._context.asked, self.env, on_gpu=True)  # says why not
        if self._small is None:
            raise InvalidInputError(
                "b lies on a GPU, but this Solver works on the CPU, with more PEs than there are "
                "GPUs: make one with fewer, or pass a copy of b on the host"
            )
        if self._gpu_layout is None:
            self._gpu_layout = lay_out_matrix(
                self._small, self._context, Laps(), self.past, rhs_gpu
            )
            self._tell("set up on a GPU too, where b lies", self._gpu_layout)
        return self._gpu_layout

    def replace(self, A: Any, reuse: str = "auto") -> None:
        """Take new values. After an error, `values_lost` tells whether the old ones are gone.

        `reuse`: of REUSE, whether the aggregates of multigrid are kept.
        """
        laps = Laps()
        self._compiling = CompileTime()
        self.layout.opened()
        if self._pattern is None or isinstance(A, (RowSlab, RowSource)):
            raise InvalidInputError(
                "update is for whole matrices: where each process gives its own rows, make a "
                "new Solver"
            )
        method = self._context.options.checked_for
        prepared = prepare_values(A, method, self.dtype, self._pattern, self.of_complex)
        laps.lap("check")
        if self.team is not None:
            agreement.agree_on_matrix(self.team, prepared, self._context.sharing)
            laps.lap("agree")
        notes = self._notes_on(prepared, laps)
        self._writing = True
        fresh = reuse == "none" or (reuse == "auto" and self._aggregates_are_bad())
        layout = _with_warnings(self._laid_out_again(prepared, laps, fresh), notes)
        self._take(layout, prepared, laps)
        self._writing = False
        log_times("update", self.setup_timings)

    def replace_or_close(self, A: Any, reuse: str) -> None:
        """Do as `replace`; close where that fails and the old values are gone."""
        try:
            self.replace(A, reuse)
        except BaseException as error:
            if not self.values_lost(error):
                raise
            self.close()
            if isinstance(error, CpufreeError):
                message = str(error).rstrip(".")
                message += "; the old values are gone, too, and this Solver is closed"
                error.args = (message, *error.args[1:])
            raise

    def close(self) -> None:
        """Free the memory of the matrix, also that of an update under way."""
        self.closed = True
        self.free()

    def values_lost(self, error: BaseException) -> bool:
        """Return whether `replace`, which has raised this, has left no values to solve with."""
        if not self._writing:
            return False
        self._writing = False
        # Ctrl-C may come when the values have been written and this object does not know it yet.
        old = self.layout.system if isinstance(error, Exception) else None
        return old is None or not old.usable()

    def free(self) -> None:
        """Free the memory of the matrix."""
        self.layout = self.layout.freed()
        self._gpu_layout = self._small = None

    def summary(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the title and the rows of a Solver's report."""
        layout, plan = self.layout, self.layout.plan
        title = f"Solver: {self._size()}"
        where = f"{counted(plan['pes'], 'PE')} × {counted(plan['blocks'], 'block')}"
        where += f", {layout.device_names}" if layout.device_names else ""
        rows = [
            ("type", str(self.vector_dtype)),
            ("engine", f"{layout.engine}, {where}"),
            ("seconds", f"set-up {self.setup_timings['setup']:.3g}"),
            ("why", summary.one_a_line("; ".join(layout.why))),
            *(("warning", warning) for warning in layout.warnings),
        ]
        return f"{title}{', closed' if self.closed else ''}", rows

    def _size(self) -> str:
        return f"{counted(self.given_shape[0], 'row')}, {counted(self.nnz, 'nonzero')}"

    def _null_space(self) -> NullSpace | None:
        """Return the null space that is given, which all of a team have to give."""
        given = self._context.options.nullspace
        team = self.team if self.own else None
        space = NullSpace.of(given, self.length, team, self.of_complex)
        if self.team is not None:
            vectors = 0 if space is None else space.basis.shape[1]
            self.team.agree("null space", {"vectors of the null space": vectors})
        return space

    def _notes_on(self, prepared: Prepared | None, laps: Laps) -> list[str]:
        """Return what a user should know of a singular matrix.

        Raises MatrixError where its null space is another one than is given.
        """
        if prepared is None or not self._context.options.check:
            return []
        if self.nullspace is None:
            return singular_note(prepared.matrix)
        self.nullspace.require_of(prepared.matrix)
        laps.lap("nullspace")
        return []

    def _take(self, layout: Layout, prepared: Prepared | None, laps: Laps) -> None:
        """Solve with this layout from now on; `prepared` is its matrix, None: not on the host."""
        # A small system that has stayed on the CPU unasked is set up on a GPU too once a right-hand
        # side lies there. It is copied, for the caller may change A until then.
        small = (
            prepared is not None
            and self._context.named == "auto"
            and layout.engine == "cpu_threads"
            and (
                prepared.pattern.nnz < least("setup.least_nonzeros")
                or layout.placement.expected is not None
            )
            and load_core().gpu_vendor()
        )
        self._small = prepared.copy() if small and prepared is not None else None
        self.exponent = 0 if prepared is None else prepared.exponent
        self._gpu_layout = None
        self.layout = layout
        self.updates += 1
        self._writing = False
        if self.closed:  # by another thread, meanwhile
            self.free()
        self.setup_timings = {
            "setup": laps.total(),
            **laps.named("setup"),
            "kernel_compile": self._compiling.seconds(),
        }

    def count_iterations(self, pc: str, iterations: int, rtol: float) -> None:
        """Take note of a solve that has reached its tolerance."""
        self.past.append(iterations)
        if pc == "amg":
            self._with_amg.append((iterations, rtol))

    def _aggregates_are_bad(self) -> bool:
        """Return whether solves take more iterations than with the values they were made for."""
        if not self._with_amg:
            return False
        last, rtol = self._with_amg[-1]
        first = next(count for count, of in self._with_amg if of == rtol)
        return last > MOST_MORE * first

    def _laid_out_again(self, prepared: Prepared, laps: Laps, fresh: bool = False) -> Layout:
        """Return the layout with other values; where they do not fit, another one.

        `fresh`: where multigrid is set up, no layout that there is will do.

        It is one of the same kind, unless engine and GPUs are left open and the iterations until
        now have another one give the answers sooner.
        """
        keep = not (fresh and self.layout.plan.get("levels"))
        layout = relaid(self.layout, prepared, laps) if keep else None
        if layout is not None:
            return layout
        self._with_amg = []
        placement, sharing = self.layout.placement, self.layout.sharing
        self.free()  # there may not be memory for both
        if placement.expected is not None and self.past:
            return lay_out_matrix(prepared, self._context, laps, self.past)
        return lay_out(prepared, placement, sharing, laps)

    def _tell(self, what: str, layout: Layout) -> None:
        """Log a layout and its reasons."""
        size = f"{self._size()}, {self.vector_dtype}"
        log_choices(what, [size, *layout.why], layout.warnings)
        log_times(what, self.setup_timings)


def _with_warnings(layout: Layout, notes: list[str]) -> Layout:
    return replace(layout, warnings=[*notes, *layout.warnings]) if notes else layout
