"""Set up once, solve often: from a matrix and options to Results."""

from __future__ import annotations

import dataclasses
import time
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..env import Env
from ..errors import CpufreeError, InvalidInputError
from ..parts import PartitionLike, as_parts
from ..problem import as_csr, as_vector, cuda_device
from ..result import Result
from ..rows import RowSlab, RowSource
from . import choices, core, in_processes, on_gpu, own_rows
from .gpu_choice import Size
from .laps import Laps
from .layout import Layout, Sharing, lay_out, relaid
from .notes import numerical_notes, rounding_note
from .outcome import result_of
from .placement import GPU_NNZ, Asked, named_engine, place
from .preparation import Prepared, prepare, prepare_values, solve_dtype
from .turns import Turns
from .watch import Progress, Watch


class Solver:
    """A matrix partitioned and laid out for its PEs: set up once, solve often.

    Parameters:
        A: n × n, sparse, symmetric positive definite: SciPy sparse, dense NumPy, CsrMatrix, a
            matrix of CuPy or PyTorch, or the path of a file. It is copied; later changes have no
            effect, but see `update`. In several processes also a RowSlab, the rows of this one
            alone, or what open_rows returns. Then all vectors are those of its rows, in the order
            of `rows`, and partition and reorder are left out.
        pes: number of PEs, "auto". On the engine cuda_p2p a PE is a GPU, on the CPU engine a group
            of threads, and auto is 1.
        blocks: blocks for each PE, "auto" (a GPU: as many as run at once; the CPU engine, whose
            blocks are threads: the cores shared out, 1 for small systems).
        engine: "auto" (GPUs where there are some, and A is not small), "cuda_p2p", "cpu_threads";
            in programs that a launcher has started as several processes, each of which makes the
            same calls: "nvshmem" (a GPU for each), "cpu_processes". x is complete in rank 0; the
            others have NaN in the rows of other ranks.
        gpus: which GPUs: "auto", "all", device numbers as a list, or a text such as "0,2-5".
            Numbers are CUDA's, which counts what CUDA_VISIBLE_DEVICES leaves.
        reorder: "auto", True or "rcm", False or "natural": order of rows inside a PE.
        partition: which PE owns which rows: "auto", "metis", "contiguous", or the number of its PE
            for each row, from 0, shape (n,); pes "auto" is then as many as there are parts.
        check: test that A is symmetric, finite and has a positive diagonal. False spares the time;
            what it would have found shows as DIVERGED_INDEFINITE_MAT, DIVERGED_NANORINF, or not.
        dtype: float32 or float64, in which to solve; default that of A.

    Raises InvalidInputError (and its kinds, see cpufree.errors) for what cannot be solved,
    UnsupportedError for an engine or GPUs that are not here, OutOfMemoryError.
    """

    _numbers: npt.NDArray[np.intp] | None = None  # of own rows that lie in another order

    def __init__(
        self,
        A: Any,
        *,
        pes: int | str = "auto",
        blocks: int | str = "auto",
        engine: str = "auto",
        gpus: Any = "auto",
        reorder: str | bool = "auto",
        partition: PartitionLike = "auto",
        check: bool = True,
        dtype: npt.DTypeLike | None = None,
        _right: Any = None,  # of solve: its b, for the type and the GPU
    ) -> None:
        laps = Laps()
        core.load()
        self._env = Env.read()
        self._asked = Asked(engine, gpus, pes, blocks)
        self._wait_limit = self._env.wait_limit or choices.WAIT_LIMIT
        # What cannot be had is told before a large matrix is read.
        near = cuda_device(_right)
        named = named_engine(self._asked, self._env, near is not None)
        laps.lap("start")
        self._team = in_processes.team_for(named, self._asked)
        laps.lap("join")
        self._check = check
        self._lock, self._closed = Turns("this Solver"), False
        self._unasked = named == "auto"
        with self._working():
            given = partition if isinstance(partition, str) else as_parts(partition).copy()
            self._sharing = (given, reorder)
            if self._team is None:  # which has a PE in each process
                self._asked = self._asked.for_partition(given, self._env)
            rows = isinstance(A, (RowSlab, RowSource))
            source = A if rows else as_csr(A)
            kind = dtype if _right is None else solve_dtype(source, _right)
            prepared = None
            if rows:
                layout = self._lay_out_rows(source, kind, laps)
            else:
                prepared = prepare(source, check, kind)
                laps.lap("check")
                self.shape, self.dtype = source.shape, np.dtype(prepared.matrix.dtype)
                layout = self._lay_out(prepared, near, laps)
                self._rows = self._own_rows(layout)
        self.engine = layout.engine
        self.gpus, self.device = layout.devices, layout.device_names
        self._pattern = None if prepared is None else prepared.pattern
        self._take(layout, prepared, laps)

    def _take(self, layout: Layout, prepared: Prepared | None, laps: Laps) -> None:
        """Solve with this layout from now on; `prepared` is its matrix, None: own rows."""
        # A small system that has stayed on the CPU unasked is set up on a GPU too once a right-hand
        # side lies there. It is copied, for the caller may change A until then.
        small = (
            prepared is not None
            and self._unasked
            and self.engine == "cpu_threads"
            and prepared.pattern.nnz < GPU_NNZ
            and core.cuda_built()
        )
        self._small = prepared.copy() if small and prepared is not None else None
        self._plan, self.warnings = layout.plan, [*layout.warnings]
        self._gpu_layout: Layout | None = None
        self._layout: Layout | None = layout
        if self._closed:  # by another thread, meanwhile
            self._free()
        self.setup_seconds = laps.total()
        self._setup_timings = {"setup": self.setup_seconds, **laps.named("setup")}

    def update(self, A: Any) -> None:
        """Take new values of the matrix, as in time steps or Newton iterations.

        Engine, GPUs, partition and order of rows are kept. Solves in other threads are waited for;
        later ones are with the new values, and `setup_seconds` is the time of this. In several
        processes, all make the same call.

        Parameters:
            A: as Solver takes it, but not own rows, with the pattern of the first one: where an
                entry has become 0, the 0 is stored. It is checked if the first one was, solved in
                the same type, and copied.

        Raises as Solver does, MatrixError for another shape or pattern, and InvalidInputError from
        the progress function of a solve; the old values are then still there, but in several
        processes, which all end. They are not where memory or an engine fails while values are
        written (OutOfMemoryError, EngineError; the error says so), or Ctrl-C ends the update: then
        the Solver is closed.
        """
        with self._working(), self._lock:
            laps = Laps()
            self._opened()
            if self._pattern is None or isinstance(A, (RowSlab, RowSource)):
                raise InvalidInputError(
                    "update is for whole matrices: where each process gives its own rows, make a "
                    "new Solver"
                )
            prepared = prepare_values(A, self._check, self.dtype, self._pattern)
            laps.lap("check")
            if self._team is not None:
                in_processes.agree_on_matrix(self._team, prepared, self._sharing)
                laps.lap("agree")
            try:
                self._take(self._laid_out_anew(prepared, laps), prepared, laps)
            except BaseException as error:
                # Ctrl-C may come when the values have been written and nobody here knows it yet.
                old = self._layout if isinstance(error, Exception) else None
                if old is not None and old.system.usable():
                    raise
                self.close()
                if isinstance(error, CpufreeError):
                    told = str(error).rstrip(".")
                    told += "; the old values are gone, too, and this Solver is closed"
                    error.args = (told, *error.args[1:])
                raise

    def _laid_out_anew(self, prepared: Prepared, laps: Laps) -> Layout:
        """Return the layout with other values; where they do not fit, another one of its kind."""
        old = self._opened()
        layout = relaid(old, prepared, laps)
        if layout is not None:
            return layout
        placement, sharing = old.placement, old.sharing
        del old
        self._free()  # there may not be memory for both
        return lay_out(prepared, placement, sharing, laps)

    def _working(self) -> AbstractContextManager[None]:
        """Have the others of a team told of an error here: they would wait for this process."""
        return nullcontext() if self._team is None else self._team.working()

    def _lay_out_rows(self, rows: Any, dtype: Any, laps: Laps) -> Layout:
        own = own_rows.lay_out(
            self._team, rows, self._asked, self._env, self._sharing, self._check, dtype, laps
        )
        self.shape, self.dtype = (own.n, own.n), own.dtype
        self._rows, self._numbers = range(own.first, own.last), own.numbers
        return own.layout

    def _own_rows(self, layout: Layout) -> npt.NDArray[np.intp] | range | None:
        """Return the rows of this process; None: all."""
        part = layout.sharing.part
        if part is None or self._team is None:
            return None
        return np.flatnonzero(part == self._team.rank)

    def _lay_out(self, prepared: Prepared, near: int | None, laps: Laps) -> Layout:
        matrix = prepared.matrix
        size = Size(matrix.shape[0], matrix.nnz, matrix.dtype.itemsize)
        if self._team is None:
            where = place(self._asked, self._env, size, near)
        else:
            in_processes.agree_on_matrix(self._team, prepared, self._sharing)
            laps.lap("agree")
            where = in_processes.place(self._team, self._asked, self._env, size)
        laps.lap("place")
        return lay_out(
            prepared, where, partial(Sharing.of, matrix, where.pes, *self._sharing), laps
        )

    def _opened(self) -> Layout:
        if self._layout is None:
            raise InvalidInputError("this Solver is closed: make a new one from the matrix")
        return self._layout

    def _layout_for(self, near: int | None) -> Layout:
        """Return the layout for a b on GPU `near`, or on the host; the lock is held."""
        layout = self._opened()
        if near is None or layout.engine == "cuda_p2p":
            return layout
        if self._team is not None:
            named_engine(self._asked, self._env, on_gpu=True)  # says why not
        if self._small is None:
            named_engine(self._asked, self._env, on_gpu=True)  # says why not
            raise InvalidInputError(
                "b lies on a GPU, but this Solver works on the CPU, with more PEs than there are "
                "GPUs: make one with fewer, or pass a copy of b on the host"
            )
        if self._gpu_layout is None:
            self._gpu_layout = self._lay_out(self._small, near, Laps())
        return self._gpu_layout

    @property
    def plan(self) -> dict[str, Any]:
        """How the matrix lies on the PEs.

        Lists per PE: rows, nnz, ghosts (values received per exchange), boundary_rows, neighbours
        (pairs of PE and values sent). In all: engine, pes, nodes (whose PEs reach one another's
        memory by loads and stores), blocks, threads (of a block), edge_cut (pairs of coupled rows
        on different PEs), halo_values (values moved per exchange), halo ("packets" or "stores", how
        they travel; "none"), block_halo (the same among the blocks of a PE: "packets" or "flags"),
        reduce (how PEs sum: "packets" or "library"), imbalance (largest over mean nonzeros),
        matrix_bytes (of the matrix in the format of the engine, all PEs), resident_vectors and
        resident_matrix (what stays on chip across iterations), ring_slots (through which a matrix
        that does not is brought there), lanes_per_row (the most threads that share a row).
        """
        return {**self._plan}

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Numbers of the rows that this process owns: all of them, where it works alone.

        Vectors of own rows, as RowSlab and open_rows have, are in this order.
        """
        if self._numbers is not None:
            return self._numbers.copy()
        rows = range(self.shape[0]) if self._rows is None else self._rows
        return np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows.copy()

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        method: str = "auto",
        pc: str = "jacobi",
        time_limit: float | None = None,
        wait_limit: float | None = None,
        progress: Progress | None = None,
        replace_every: int = 50,
        chebyshev_degree: int = 4,
        gather: bool = True,
    ) -> Result:
        """Solve A x = b to ‖b - A x‖₂ ≤ max(rtol ‖b‖₂, atol).

        Parameters:
            b: right-hand side, shape (n,) or (n, 1), finite. x0: first guess; default zero.
                Either may be an array of CuPy or PyTorch on a GPU, shape (n,), of the type of the
                solve; x is then one like b, and nothing passes through the host.
            maxiter: most iterations; default 10 n.
            method: "cg" (Hestenes and Stiefel 1952), "prcg" (Chen and Carson 2020, one reduction
                per iteration), "pipecg" (Ghysels and Vanroose 2014, one reduction, overlapped);
                "auto" is prcg.
            pc: preconditioner: "jacobi" (the inverse diagonal), "chebyshev" (a polynomial of
                `chebyshev_degree` steps in the Jacobi-scaled matrix), "none".
            time_limit: seconds after which to stop; default none. wait_limit: seconds that a block
                may wait for another before the solve is given up with a diagnosis; default 60.
            progress: called as progress(iteration, residual norm) in this thread, about every 20 ms
                on GPUs and 50 ms on the CPU; returning False ends the solve (reason INTERRUPTED),
                as Ctrl-C does.
            replace_every: pipecg: iterations between replacements of the residual by b - A x,
                0 for never. Once b - A x exceeds twice what the recurrence says, prcg takes over.
            gather: of several processes, rank 0 gets all of x; False: each has its own rows alone
                (see `rows`), as always where they have given these alone, as RowSlab.

        Returns a Result; non-convergence is not an exception but a Result with its reason.
        Raises InvalidInputError for options out of range, VectorError for a b or x0 that does not
        fit, WaitTimeoutError when a wait outlasts wait_limit, and what progress raises.
        """
        begin = time.perf_counter()
        with self._working():
            with self._lock:
                self._layout_for(cuda_device(b))  # tells at once that there is none
            vectors = self._vectors(b, x0)
            if not (progress is None or callable(progress)):
                raise InvalidInputError(f"progress is {progress!r}: give a function, or None")
            chosen, why_method = choices.choose_method(method)
            options: dict[str, Any] = {
                "method": chosen,
                "pc": choices.one_of("preconditioner pc", pc, choices.PRECONDITIONERS),
                "rtol": choices.real("rtol", rtol),
                "atol": choices.real("atol", atol),
                "maxiter": 10 * self.shape[0]
                if maxiter is None
                else choices.integer("maxiter", maxiter),
                "time_limit": choices.seconds("time_limit", time_limit, 0.0),
                "wait_limit": choices.seconds("wait_limit", wait_limit, self._wait_limit),
                "replace_every": choices.integer(
                    "replace_every", replace_every, most=choices.MOST_REPLACE_EVERY
                ),
                "chebyshev_degree": choices.integer(
                    "chebyshev_degree", chebyshev_degree, 1, most=choices.MOST_CHEBYSHEV_DEGREE
                ),
            }
            if self._team is not None:
                options["gather"] = bool(gather)
            watch = progress if isinstance(progress, Watch) else Watch(progress)
            with self._lock:
                return self._solved(b, vectors, options, watch, f"{chosen}: {why_method}", begin)

    def _vectors(self, b: Any, x0: Any) -> tuple[Any, Any, Any]:
        """Return right-hand side, first guess or None, and the array for x on a GPU or None."""
        n = len(self._rows) if isinstance(self._rows, range) else self.shape[0]
        if cuda_device(b) is not None:
            return on_gpu.prepare(b, x0, n, self.dtype)
        right = as_vector(b, n, self.dtype, "b")
        return right, None if x0 is None else as_vector(x0, n, self.dtype, "x0"), None

    def _solved(
        self,
        b: Any,
        vectors: tuple[Any, Any, Any],
        options: dict[str, Any],
        watch: Watch,
        why: str,
        begin: float,
    ) -> Result:
        """Return the Result of a solve; the lock is held, so that no update comes between."""
        layout = self._layout_for(cuda_device(b))
        with watch:
            outcome = self._run(layout, vectors, options, watch)
        if watch.error is not None:
            raise watch.error
        timings = {**self._setup_timings, "solve": time.perf_counter() - begin}
        on_gpu_x = vectors[2]
        x = outcome["x"].reshape(np.shape(b)) if on_gpu_x is None else on_gpu_x
        result = result_of(x, outcome, layout, options, why, timings)
        notes = [*layout.warnings, *rounding_note(b, self.dtype)]
        notes += numerical_notes(result, options)
        return dataclasses.replace(result, warnings=tuple(notes))

    def _run(
        self,
        layout: Layout,
        vectors: tuple[Any, Any, Any],
        options: dict[str, Any],
        watch: Watch,
    ) -> Any:
        if self._team is None:
            return core.solve(layout.system, *vectors, options, watch)
        right, guess, _ = vectors
        solve = partial(core.solve, layout.system, right, guess, None, options)
        own = isinstance(self._rows, range)  # else vectors are those of all rows
        return in_processes.solve(self._team, (right, guess), options, watch, solve, own)

    def close(self) -> None:
        """Free the memory of the matrix; the Solver cannot solve any more."""
        self._closed = True
        self._free()

    def _free(self) -> None:
        self._layout = self._gpu_layout = self._small = None

    def __enter__(self) -> Solver:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
