"""Set up once, solve often: from a matrix and options to Results."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cpufree import options as schema
from cpufree import summary
from cpufree.arguments import (
    Columns,
    Count,
    Engine,
    Gpus,
    Method,
    Order,
    Precision,
    Preconditioner,
    Reuse,
    VectorLike,
)
from cpufree.calls import public
from cpufree.device_arrays import cuda_device
from cpufree.docstrings import with_parameters
from cpufree.engines import choices
from cpufree.engines.asked import Asked
from cpufree.engines.expected import Workload
from cpufree.engines.method_choice import method_with
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.errors import UnsupportedError
from cpufree.matrix.given_factor import Factor
from cpufree.matrix.problem import MatrixLike
from cpufree.multigrid.given_levels import Levels
from cpufree.multigrid.near_nullspace import ModesGiven, ModesLike
from cpufree.partition.part_vector import PartitionLike
from cpufree.solvers import column_groups, solving, vectors
from cpufree.solvers.columns import count_columns, described
from cpufree.solvers.exclusive_lock import ExclusiveLock
from cpufree.solvers.factors import PreconditionerChoice, within_call
from cpufree.solvers.forecast import ExpectedCall
from cpufree.solvers.matrix_on_pes import REUSE, MatrixOnPes
from cpufree.solvers.memory import estimate
from cpufree.solvers.nullspace import NullSpaceLike
from cpufree.solvers.precision import single_values
from cpufree.solvers.result import Result
from cpufree.solvers.setup.options import SetupOptions
from cpufree.trace.asked import TraceGiven


@with_parameters
class Solver:
    """A matrix partitioned and laid out for its PEs: set up once, solve often.

    Later changes of `A` have no effect, but see `update`. Threads that call one Solver take turns.

    Parameters
    ----------
    {A}
        In several processes also a RowSlab, the rows of this one alone, or what open_rows returns:
        vectors are those of its rows, in the order of `rows`; partition and reorder are left out.
    {pes, blocks, engine, gpus, reorder, partition, check, dtype, precision, pc}
        Solves use it unless they name another one; one with factors cannot be named later.
    {pc_level, nullspace, near_nullspace, coordinates, unknowns, solves, partition_cache, method}

    Attributes
    ----------
    shape : tuple of int
        (n, n), of the whole matrix.
    dtype : numpy.dtype
        Type of the solves: float32, float64, complex64 or complex128.
    engine : str
        Where solves run.
    gpus : tuple of int
        Numbers of the GPUs, one for each PE; empty on the CPU.
    method : str
        Of solves that name none.
    device : str
        What they are, such as "4 × NVIDIA H200".
    warnings : list of str
        What the user should know of the matrix and its layout, in sentences.
    setup_seconds : float
        Seconds that the set-up took, or the last update.
    updates : int
        How often `update` has taken new values.

    Raises
    ------
    InvalidInputError
        And its kinds (see cpufree.errors), for what cannot be solved.
    UnsupportedError, NotEnoughGpusError, OutOfMemoryError
        For an engine or GPUs that are not available; of the host or of a GPU.

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

    @public
    def __init__(
        self,
        A: MatrixLike,
        *,
        pes: Count = "auto",
        blocks: Count = "auto",
        engine: Engine = "auto",
        gpus: Gpus = "auto",
        reorder: Order = "auto",
        partition: PartitionLike = "auto",
        partition_cache: str | os.PathLike[str] | None = None,
        check: bool = True,
        dtype: npt.DTypeLike | None = None,
        method: Method = "auto",
        precision: Precision | None = None,
        pc: Preconditioner | Levels | Factor = "auto",
        pc_level: int = 1,
        nullspace: NullSpaceLike = None,
        near_nullspace: ModesLike = None,
        coordinates: ModesLike = None,
        unknowns: str = "auto",
        solves: int = 1,
        _call: ExpectedCall | None = None,
    ) -> None:
        modes = ModesGiven(near_nullspace, coordinates, unknowns)
        method, solves = choices.valid(schema.METHOD, method), choices.valid(schema.SOLVES, solves)
        call = _call or ExpectedCall(Workload(solves), method=method)
        pc = within_call(pc, call.method, "auto")
        self._pc = PreconditionerChoice(pc, pc_level, modes, call.workload)
        asked = Asked(engine, gpus, pes, blocks, self._pc.tuning | single_values(precision, dtype))
        self._lock = ExclusiveLock("this Solver")
        options = SetupOptions(
            asked, partition, reorder, check, dtype, call, partition_cache, nullspace, self._pc.name
        )
        self._matrix = MatrixOnPes(A, options)

    estimate = staticmethod(estimate)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n), of the whole matrix."""
        return self._matrix.given_shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the solves: float32, float64, complex64 or complex128."""
        return self._matrix.vector_dtype

    @property
    def engine(self) -> str:
        """Where solves run."""
        return self._matrix.layout.engine

    @property
    def gpus(self) -> tuple[int, ...]:
        """Numbers of the GPUs, one for each PE; empty on the CPU."""
        return self._matrix.layout.devices

    @property
    def device(self) -> str:
        """What they are, such as "4 × NVIDIA H200"."""
        return self._matrix.layout.device_names

    @public
    def update(self, A: MatrixLike, *, reuse: Reuse = "auto") -> None:
        """Take new values of the matrix, as in time steps or Newton iterations.

        Engine, GPUs, partition and order of rows are kept. Only where GPUs have to be set up again,
        as the values do not fit their formats, auto may choose others, by the solves until now.
        Solves in other threads are waited for; later ones use the new values, and `setup_seconds`
        is the time of this call. In several processes, all make the same call.

        Parameters
        ----------
        A : sparse or dense matrix, shape (n, n)
            As `Solver` takes it, but not own rows, with the pattern of the first one: where an
            entry has become 0, the 0 is stored. It is checked if the first one was, solved in the
            same type, and copied.
        reuse : {"auto", "pattern", "none"}, optional
            amg: whether the aggregates of the levels, and with them all patterns, are kept, so that
            numbers alone are computed again ("pattern"), or all is made again ("none"). Auto: they
            are kept until a solve takes more than 1.5 times the iterations of the first one.

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
        with self._matrix.working(), self._lock:
            self._matrix.replace_or_close(A, choices.one_of("reuse", reuse, REUSE))

    @property
    def plan(self) -> dict[str, Any]:
        """How the matrix lies on the PEs.

        Lists per PE: rows, nnz, ghosts (values received per exchange), boundary_rows, neighbours
        (pairs of PE and values sent). In all: engine, pes, nodes (whose PEs reach one another's
        memory), blocks, threads (of a block), edge_cut (pairs of coupled rows on different PEs),
        halo_values (values moved per exchange), halo (how: "packets", "stores" or "none"),
        block_halo (among the blocks of a GPU: "packets" or "flags"), imbalance (largest over mean
        nonzeros), matrix_bytes (in the format of the engine), single_values (whether products read
        values of A in float32), resident_vectors, resident_matrix (what stays on chip), ring_slots
        (through which the matrix is streamed), lanes_per_row (threads that share a row, at most),
        shared_bytes (of a block's on-chip memory); factors ("fsai" or "none"), factor_entries,
        factor_bytes, factors_replaced (rows of Jacobi), factors_left_out (between PEs); levels (see
        Result.levels), coarsest_why (what kept it from coarser levels, "" for nothing).
        """
        return {**self._matrix.layout.plan}

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Numbers of the rows that this process owns: all of them, where it works alone.

        Vectors of own rows, as RowSlab and open_rows have, are in this order.
        """
        return self._matrix.rows

    def within_range(self, b: VectorLike) -> Any:
        """Return b without its part in the null space of A, which is what `solve` solves for.

        Parameters
        ----------
        b : array on the host, shape (n,)

        Returns
        -------
        array, shape (n,)
            In the type of the solve; b as it is where the Solver has no `nullspace`.

        Examples
        --------
        >>> import numpy as np, scipy.sparse as sp
        >>> A = sp.csr_array([[1.0, -1.0], [-1.0, 1.0]])
        >>> with cpufree.Solver(A, nullspace="constant") as solver:
        ...     solver.within_range(np.array([3.0, 1.0])), solver.solve(np.array([3.0, 1.0])).x
        (array([ 1., -1.]), array([ 0.5, -0.5]))
        """
        return vectors.as_given(self._matrix, vectors.prepare_vectors(self._matrix, b, None)[0])

    @property
    def method(self) -> str:
        """The method of solves that name none."""
        return self._matrix.made_for[0]

    @property
    def warnings(self) -> list[str]:
        """What the user should know of the matrix and its layout, in sentences."""
        return [*self._matrix.layout.warnings]

    @property
    def updates(self) -> int:
        """How often `update` has taken new values."""
        return self._matrix.updates

    @property
    def setup_seconds(self) -> float:
        """Seconds that the set-up took, or the last update."""
        return self._matrix.setup_timings["setup"]

    @public
    @with_parameters
    def solve(
        self,
        b: VectorLike,
        x0: VectorLike | None = None,
        *,
        rtol: float = 1e-5,
        atol: float = 0.0,
        maxiter: int | None = None,
        method: Method = "auto",
        pc: Preconditioner | Levels | Factor | None = None,
        time_limit: float | None = None,
        wait_limit: float | None = None,
        progress: ProgressLike = None,
        replace_every: int = 50,
        chebyshev_degree: int = 4,
        columns: Columns = "auto",
        gather: bool = True,
        trace: TraceGiven = None,
    ) -> Result:
        """Solve A x = b to ‖b - A x‖₂ ≤ max(rtol ‖b‖₂, atol).

        Parameters
        ----------
        {b, x0, rtol, atol, maxiter, method}
        pc : {"auto", "jacobi", "chebyshev", "fsai", "amg", "none"}, optional
            Preconditioner; default that of the Solver. Fsai and amg only where the
            Solver was made with it.
        {time_limit, wait_limit, progress, replace_every, chebyshev_degree, columns, gather}
            Own rows (RowSlab) are never gathered.
        {trace}

        Returns
        -------
        Result
            Solution, reason for the end, both residuals, history and times. Non-convergence is not
            an exception but a Result with its reason.

        Raises
        ------
        InvalidInputError
            For options out of range, and in a process that was forked while another thread solved.
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
        >>> two = solver.solve(np.column_stack([np.ones(1024), np.arange(1024)]))
        >>> two.x.shape, [column.iterations > 0 for column in two.columns]
        ((1024, 2), [True, True])
        >>> solver.close()
        """
        method = method_with(method, *self._matrix.made_for)
        pc = self._pc.of_solve(pc, self._matrix.layout.plan, method, columns)
        given = {
            **{"rtol": rtol, "atol": atol, "maxiter": maxiter, "method": method, "pc": pc},
            **{"time_limit": time_limit, "wait_limit": wait_limit},
            **{"replace_every": replace_every, "chebyshev_degree": chebyshev_degree},
        }
        rhs = described(b)
        matrix = self._matrix
        with matrix.working():
            with self._lock:
                layout = matrix.layout_for(cuda_device(b))  # tells at once that there is none
            b, x0 = vectors.from_file(matrix, b), vectors.from_file(matrix, x0)
            count = count_columns(b, x0, matrix.length)
            # A look at all entries takes the host longer than the bus takes to send them.
            later = bool(layout.devices) and matrix.team is None and progress is None
            one = count == 1
            prepared = vectors.prepare_vectors(matrix, b, x0, finite=not later) if one else None
            watch = progress if isinstance(progress, Watch) else Watch(progress)
            limit = matrix.env.wait_limit or choices.WAIT_LIMIT
            options = solving.options_of(given, self.shape[0], limit)
            if matrix.team is not None:
                options["gather"] = bool(gather)
                vectors.require_whole(matrix, gather)
            way = choices.one_of("columns", columns, column_groups.COLUMNS)
            call = solving.Call(options, method, watch, count, way, solving.trace_of(trace, count))
            if prepared is None:
                return solving.solve_columns(matrix, self._lock, b, x0, call).of_rhs(rhs)
            with self._lock:
                result = solving.solve_one(matrix, b, prepared, call).of_rhs(rhs)
            if later and not result.converged:
                vectors.prepare_vectors(matrix, b, x0)  # refuses what is not finite
            return result

    def close(self) -> None:
        """Free the memory of the matrix; the Solver cannot solve any more."""
        self._matrix.close()

    def __enter__(self) -> Solver:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "a Solver cannot be pickled or copied: it holds threads, and memory of GPUs. Send A "
            "instead, and make a Solver of it in each process"
        )

    def __repr__(self) -> str:
        return summary.as_text(*self._matrix.summary())

    def _repr_html_(self) -> str:
        return summary.as_html(*self._matrix.summary())
