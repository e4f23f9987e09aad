"""Set up once, solve often: from a matrix and options to Results."""

from __future__ import annotations

import dataclasses
import time
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree import options as schema
from cpufree.device_arrays import cuda_device
from cpufree.engines import choices, core, in_processes
from cpufree.engines.gpu_choice import Size
from cpufree.engines.placement import GPU_NNZ, Asked, named_engine, place
from cpufree.engines.watch import Progress, Watch
from cpufree.env import Env
from cpufree.errors import CpufreeError, InvalidInputError
from cpufree.matrix.io.vectors import is_path, load_vector
from cpufree.matrix.load import as_csr
from cpufree.matrix.rows import RowSlab, RowSource
from cpufree.matrix.vector import as_vector
from cpufree.partition.part_vector import PartitionLike, as_part_vector
from cpufree.solvers import agreement, on_gpu, own_rows
from cpufree.solvers.laps import Laps
from cpufree.solvers.layout import Layout, Sharing, lay_out, relaid
from cpufree.solvers.notes import numerical_notes, rounding_note
from cpufree.solvers.outcome import result_of
from cpufree.solvers.preparation import Prepared, prepare, prepare_values, solve_dtype
from cpufree.solvers.result import Result
from cpufree.solvers.turns import Turns


class Solver:
    """A matrix partitioned and laid out for its PEs: set up once, solve often.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
        Symmetric positive definite: SciPy sparse, dense NumPy, CsrMatrix, a matrix of CuPy or
        PyTorch, or the path of a file. It is copied; later changes have no effect, but see
        `update`. In several processes also a RowSlab, the rows of this one alone, or what open_rows
        returns: then all vectors are those of its rows, in the order of `rows`, and partition and
        reorder are left out.
    pes : int or "auto"
        Number of PEs. On the engine cuda_p2p a PE is a GPU; on the CPU engine it is a group of
        threads, and auto is 1.
    blocks : int or "auto"
        Blocks for each PE. Auto: on a GPU as many as run at once; on the CPU engine, whose blocks
        are threads, the available cores divided among the PEs, 1 for small systems.
    engine : str
        "auto" (GPUs where there are some, and A is not small), "cuda_p2p", "cpu_threads". In
        programs that a launcher has started as several processes, each of which makes the same
        calls: "nvshmem" (a GPU for each), "cpu_processes"; x is then complete in rank 0, and the
        others have NaN in the rows of other ranks.
    gpus : "auto", "all", list of int or str
        Which GPUs: device numbers as a list, or a text such as "0,2-5". Numbers are CUDA's, which
        count what CUDA_VISIBLE_DEVICES leaves.
    reorder : "auto", "rcm", "natural" or bool
        Order of rows inside a PE; True is "rcm", False is "natural".
    partition : "auto", "metis", "contiguous" or array of int, shape (n,)
        Which PE owns which rows; an array gives the number of its PE for each row, from 0, and pes
        "auto" is then the number of parts.
    check : bool
        Test that A is symmetric, finite and has a positive diagonal. False saves the time; what it
        would have found may show as DIVERGED_INDEFINITE_MAT or DIVERGED_NANORINF.
    dtype : float32 or float64, optional
        Type in which to solve; default that of A.

    Raises
    ------
    InvalidInputError
        And its kinds (see cpufree.errors), for what cannot be solved.
    UnsupportedError
        For an engine or GPUs that are not available.
    OutOfMemoryError
        Of the host or of a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> A = cpufree.generate.generate("poisson2d", nx=32, ny=32)
    >>> with cpufree.Solver(A) as solver:
    ...     one = solver.solve(np.ones(1024), rtol=1e-8)
    ...     two = solver.solve(np.arange(1024.0), rtol=1e-8, x0=one.x)
    >>> one.converged and two.converged
    True
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
        # What cannot be had is reported before a large matrix is read.
        near = cuda_device(_right)
        named = named_engine(self._asked, self._env, near is not None)
        laps.lap("start")
        self._team = in_processes.team_for(named, self._asked)
        laps.lap("join")
        self._check = check
        self._lock, self._closed = Turns("this Solver"), False
        self._unasked = named == "auto"
        with self._working():
            given = partition if isinstance(partition, str) else as_part_vector(partition).copy()
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
        later ones use the new values, and `setup_seconds` is the time of this call. In several
        processes, all make the same call.

        Parameters
        ----------
        A : sparse or dense matrix, shape (n, n)
            As `Solver` takes it, but not own rows, with the pattern of the first one: where an
            entry has become 0, the 0 is stored. It is checked if the first one was, solved in the
            same type, and copied.

        Raises
        ------
        MatrixError
            For another shape or pattern; the old values stay. Likewise other errors of input,
            except in several processes, which all end.
        OutOfMemoryError, EngineError
            Where memory or an engine fails while values are written. The message says that the old
            values are gone, and the Solver is closed, as after Ctrl-C.

        Examples
        --------
        >>> import numpy as np
        >>> A = cpufree.generate.generate("poisson2d", nx=32, ny=32)
        >>> with cpufree.Solver(A) as solver:
        ...     before = solver.solve(np.ones(1024), rtol=1e-10).x
        ...     solver.update(2 * A)
        ...     after = solver.solve(np.ones(1024), rtol=1e-10).x
        >>> bool(np.allclose(before, 2 * after))
        True
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
                agreement.agree_on_matrix(self._team, prepared, self._sharing)
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
                    message = str(error).rstrip(".")
                    message += "; the old values are gone, too, and this Solver is closed"
                    error.args = (message, *error.args[1:])
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
        """Report an error here to the others of a team: they would wait for this process."""
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
            agreement.agree_on_matrix(self._team, prepared, self._sharing)
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
        on different PEs), halo_values (values moved per exchange), halo ("packets", "stores" or
        "none", how they travel), block_halo (the same among the blocks of a GPU: "packets" or
        "flags"), imbalance (largest over mean nonzeros), matrix_bytes (of the matrix in the format
        of the engine, all PEs), resident_vectors and resident_matrix (what stays on chip across
        iterations), ring_slots (through which a matrix that does not stay is streamed),
        lanes_per_row (the most threads that share a row).
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

        Parameters
        ----------
        b : array, shape (n,) or (n, 1)
            Right-hand side, finite, or the path of a file that `load_vector` reads. May be an array
            of CuPy or PyTorch on a GPU, shape (n,), of the type of the solve; x is then one like
            it, and nothing passes through the host.
        x0 : array, shape (n,) or (n, 1), optional
            First guess, where b lies, or the path of a file; default zero.
        rtol, atol : float
            Relative and absolute tolerance of the residual.
        maxiter : int, optional
            Most iterations; default 10 n.
        method : str
            "auto" (prcg), "cg" (Hestenes and Stiefel 1952), "prcg" (Chen and Carson 2020, one
            reduction per iteration), "pipecg" (Ghysels and Vanroose 2014, one reduction,
            overlapped).
        pc : str
            Preconditioner: "jacobi" (the inverse diagonal), "chebyshev" (a polynomial of
            `chebyshev_degree` steps in the Jacobi-scaled matrix), "none".
        time_limit : float, optional
            Seconds after which to stop; default none.
        wait_limit : float, optional
            Seconds that a block may wait for another before the solve is given up with a diagnosis;
            default 60.
        progress : callable, optional
            Called as progress(iteration, residual norm) in this thread, about every 20 ms on GPUs
            and 50 ms on the CPU; returning False ends the solve (reason INTERRUPTED), as Ctrl-C
            does.
        replace_every : int
            pipecg: iterations between replacements of the residual by b - A x, 0 for never. Once b
            - A x exceeds twice what the recurrence says, prcg takes over.
        chebyshev_degree : int
            Steps of the Chebyshev polynomial.
        gather : bool
            Of several processes, rank 0 gets all of x; False: each has its own rows alone (see
            `rows`), as always where they have given these alone, as RowSlab.

        Returns
        -------
        Result
            Non-convergence is not an exception but a Result with its reason.

        Raises
        ------
        InvalidInputError
            For options out of range.
        VectorError
            For a b or x0 that does not fit.
        WaitTimeoutError
            Where a wait outlasts wait_limit.
        Exception
            Whatever progress raises.

        Examples
        --------
        >>> import numpy as np
        >>> solver = cpufree.Solver(cpufree.generate.generate("poisson2d", nx=32, ny=32))
        >>> result = solver.solve(np.ones(1024), rtol=1e-6, method="cg")
        >>> result.method, result.converged
        ('cg', True)
        >>> str(solver.solve(np.ones(1024), maxiter=3).reason)
        'DIVERGED_ITS'
        >>> solver.close()
        """
        begin = time.perf_counter()
        with self._working():
            with self._lock:
                self._layout_for(cuda_device(b))  # tells at once that there is none
            b, x0 = self._from_file(b), self._from_file(x0)
            vectors = self._vectors(b, x0)
            if not (progress is None or callable(progress)):
                raise InvalidInputError(f"progress is {progress!r}: give a function, or None")
            chosen, why_method = choices.choose_method(method)
            options: dict[str, Any] = {
                "method": chosen,
                "pc": choices.valid(schema.PC, pc),
                "rtol": choices.valid(schema.RTOL, rtol),
                "atol": choices.valid(schema.ATOL, atol),
                "maxiter": 10 * self.shape[0]
                if maxiter is None
                else choices.valid(schema.MAXITER, maxiter),
                "time_limit": choices.seconds("time_limit", time_limit, 0.0),
                "wait_limit": choices.seconds("wait_limit", wait_limit, self._wait_limit),
                "replace_every": choices.valid(schema.REPLACE_EVERY, replace_every),
                "chebyshev_degree": choices.valid(schema.CHEBYSHEV_DEGREE, chebyshev_degree),
            }
            if self._team is not None:
                options["gather"] = bool(gather)
            watch = progress if isinstance(progress, Watch) else Watch(progress)
            with self._lock:
                return self._solved(b, vectors, options, watch, f"{chosen}: {why_method}", begin)

    def _from_file(self, v: Any) -> Any:
        """Return the vector in the file that v names; what is none as it is.

        Files hold all rows: where a process has its own rows alone, a name stays, and is refused.
        """
        whole = not isinstance(self._rows, range)
        return load_vector(v, self.shape[0]) if whole and is_path(v) else v

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
