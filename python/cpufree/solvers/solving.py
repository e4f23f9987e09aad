"""A solve with a matrix on its PEs: vectors and options in, Results out."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cpufree import options as schema
from cpufree.device_arrays import cuda_device
from cpufree.engines import choices, in_processes
from cpufree.engines.method_choice import Solve, choose_method
from cpufree.engines.progress_bar import ProgressBar, of_digits
from cpufree.engines.watch import Watch
from cpufree.errors import OutOfMemoryError, UnsupportedError
from cpufree.extension import CompileTime, says_what_compiles
from cpufree.log import log_times, logger
from cpufree.solvers import columns, on_gpu
from cpufree.solvers.column_groups import BLOCK_METHOD, Several, Way, choose_way, padded
from cpufree.solvers.exclusive_lock import ExclusiveLock
from cpufree.solvers.matrix_on_pes import MatrixOnPes
from cpufree.solvers.notes import numerical_notes, rounding_note
from cpufree.solvers.nullspace import note_of
from cpufree.solvers.outcome import result_of
from cpufree.solvers.precision import failure_notes
from cpufree.solvers.result import Reason, Result
from cpufree.solvers.setup.layout import Layout
from cpufree.solvers.vectors import Vectors, as_parts, prepare_vectors, solution
from cpufree.text import counted
from cpufree.trace import asked
from cpufree.trace.asked import Recording, TraceGiven
from cpufree.trace.explained import explained


@dataclass(frozen=True)
class Call:
    """What a call of Solver.solve asks for, all columns alike."""

    options: Mapping[str, Any]
    """As the compiled core takes them."""
    asked_method: str
    watch: Watch
    columns: int = 1
    way: str = "auto"
    """How several columns are solved, see column_groups."""
    trace: Recording | None = None
    """How the solve is traced, if it is."""

    def judging(self) -> Call:
        """Return a call that does no iteration, but tells of the guess."""
        return dataclasses.replace(self, options={**self.options, "maxiter": 0})


def options_of(given: Mapping[str, Any], rows: int, wait_limit: float) -> dict[str, Any]:
    """Return the options of a solve but for its method, checked; InvalidInputError for bad ones.

    Args:
        given: by name. rows: of the matrix. wait_limit: in seconds, where none is given.
    """
    choices.one_of("method", given["method"], schema.METHOD.choices)
    numbers = (
        *(schema.RTOL, schema.ATOL, schema.MAXITER),
        *(schema.REPLACE_EVERY, schema.CHEBYSHEV_DEGREE),
    )
    options = {
        "pc": choices.valid(schema.PC, given["pc"]),
        **{option.name: choices.valid(option, given[option.name]) for option in numbers},
        "time_limit": choices.seconds("time_limit", given["time_limit"], 0.0),
        "wait_limit": choices.seconds("wait_limit", given["wait_limit"], wait_limit),
    }
    if options["maxiter"] is None:
        options["maxiter"] = 10 * rows
    return options


def _timings(matrix: MatrixOnPes, begin: float, compiling: CompileTime) -> dict[str, float]:
    """Return those of the set-up, and of a solve that ends now."""
    setup = matrix.setup_timings
    return {
        **setup,
        "kernel_compile": setup["kernel_compile"] + compiling.seconds(),
        "solve": time.perf_counter() - begin,
    }


def solve_one(matrix: MatrixOnPes, b: Any, vectors: Vectors, call: Call) -> Result:
    """Return the Result of a solve of one right-hand side; no other call uses the matrix."""
    begin, compiling = time.perf_counter(), CompileTime()
    layout, watch = matrix.layout_for(cuda_device(b)), call.watch
    method, why = choose_method(call.asked_method, facts_of(matrix, layout, call.options))
    options = {**call.options, "method": method, **(call.trace.options() if call.trace else {})}
    rank = 0 if matrix.team is None else matrix.team.rank
    with watch.bar(rank, partial(new_bar, vectors, options)), watch, explained():
        outcome = run(matrix, layout, vectors, options, call)
    if watch.error is not None:
        raise watch.error
    timings = _timings(matrix, begin, compiling)
    x = solution(matrix, b, vectors, outcome)
    why = f"{method}: {why}"
    result = result_of(x, outcome, layout, options, why, timings)
    if call.trace:
        result = with_trace(result, outcome["trace"], layout, call.trace, rank == 0)
    if result.converged:
        matrix.count_iterations(result.pc, result.iterations, options["rtol"])
    return with_notes(result, b, vectors[0], matrix, layout, options, why)


def trace_of(trace: TraceGiven, columns: int) -> Recording | None:
    """Return how a solve is traced; UnsupportedError for several right-hand sides."""
    if trace and columns > 1:
        raise UnsupportedError("a trace is of one right-hand side: give b with one column")
    return asked.checked(trace)


def with_trace(
    result: Result, raw: Mapping[str, Any], layout: Layout, trace: Recording, speaks: bool
) -> Result:
    """Return a Result with its trace, which is written where a file was named.

    `raw`: of the core. `speaks`: this process writes.
    """
    from cpufree.trace.finished import finished  # for those who want traces

    names = ("engine", "pes", "blocks", "device", "iterations")
    facts = {
        "what": f"solve, {result.method}, {result.pc}",
        **{name: getattr(result, name) for name in names},
        **{name: result.counts[name] for name in ("exchanges", "reductions")},
        "halo": layout.plan["halo"],
        "kernel_seconds": result.timings["kernel"],
        "phases": result.phases,
    }
    return dataclasses.replace(result, trace=finished(raw, facts, trace, speaks))


def with_notes(
    result: Result,
    b: Any,
    solved: Any,
    matrix: MatrixOnPes,
    layout: Layout,
    options: Mapping[str, Any],
    why: str,
) -> Result:
    """Return a Result with what the user should know of it, and log it.

    `solved`: the right-hand side that the kernel had.
    """
    notes = [*layout.warnings, *rounding_note(b, matrix.vector_dtype)]
    if matrix.nullspace is not None:
        own = as_parts(np.asarray(b, matrix.vector_dtype) if cuda_device(b) is None else b)
        result = dataclasses.replace(result, outside=matrix.nullspace.outside(own, solved))
        notes += note_of(result.outside, matrix.dtype)
    notes += numerical_notes(result, options)
    notes += failure_notes(result.reason, layout.plan)
    tell(result, why, notes[len(layout.warnings) :])
    return dataclasses.replace(result, warnings=tuple(notes))


def solve_columns(matrix: MatrixOnPes, lock: ExclusiveLock, b: Any, x0: Any, call: Call) -> Result:
    """Return the Result of a solve for each column, with no other call in between."""
    b, x0 = columns.as_matrix(b), columns.as_matrix(x0)

    def prepared(number: int) -> tuple[Any, Vectors]:
        right, guess = columns.column(b, number), columns.column(x0, number)
        return right, prepare_vectors(matrix, right, guess, f"[:, {number}]")

    # On the host all columns are looked at first: a bad one costs no solve. On a GPU they are
    # copied a group at a time.
    numbers = range(call.columns)
    ready = [prepared(number) for number in numbers] if cuda_device(b) is None else None
    solutions = columns.Solutions(b, matrix.vector_dtype)
    kernels: list[list[Result]] = []
    with lock:
        way = way_of(matrix, matrix.layout_for(cuda_device(b)), call)
        logger.info("solve: %s", way.why)
        stopped = False
        for group in way.groups(call.columns):
            given = ready[group.start : group.stop] if ready else [prepared(k) for k in group]
            found = (
                not_begun(matrix, given, call)
                if stopped
                else solve_several(matrix, given, call, way.method)
            )
            stopped = stopped or interrupted(found)
            places = iter(group)
            kernels += [[solutions.put(next(places), r) for r in kernel] for kernel in found]
    return columns.together(solutions.x, kernels, way.why)


def interrupted(kernels: list[list[Result]]) -> bool:
    """Return whether a solve was interrupted."""
    return any(result.reason is Reason.INTERRUPTED for kernel in kernels for result in kernel)


def not_begun(
    matrix: MatrixOnPes, given: list[tuple[Any, Vectors]], call: Call
) -> list[list[Result]]:
    """Return the Results of columns after one that was interrupted."""
    return [[columns.unsolved(solve_one(matrix, *pair, call.judging()))] for pair in given]


def solve_several(
    matrix: MatrixOnPes, given: list[tuple[Any, Vectors]], call: Call, method: str
) -> list[list[Result]]:
    """Return the Results of a group of columns, kernel by kernel: together is one kernel.

    `method`: of those that are together. Where memory is too small for them together they are
    solved one by one.

    Raises:
        OutOfMemoryError: it is too small, and they were to be solved together.
    """
    if len(given) == 1:
        return [[solve_one(matrix, *given[0], call)]]
    try:
        return [solve_group(matrix, given, call, method)]
    except OutOfMemoryError as error:
        if call.way != "auto":
            raise
        logger.warning("columns one by one, as memory is too small for them together: %s", error)
    found: list[list[Result]] = []
    for pair in given:
        if interrupted(found):
            found += not_begun(matrix, [pair], call)
        else:
            found.append([solve_one(matrix, *pair, call)])
    return found


def way_of(matrix: MatrixOnPes, layout: Layout, call: Call) -> Way:
    """Return how several columns are solved."""
    refused = layout.opened().refuses_columns()
    if call.way == "block" and layout.plan.get("single_values"):
        refused = "in mixed precision each replaced residual would have all of them start again"
    several = Several(
        columns=call.columns,
        method=call.asked_method,
        pc=call.options["pc"],
        refused=refused,
        on_chip=bool(layout.plan["resident_matrix"]),
        matrix_bytes=float(layout.plan["matrix_bytes"]),
        vector_bytes=float(matrix.shape[0] * np.dtype(matrix.dtype).itemsize),
        on_gpu=bool(layout.devices),
    )
    return choose_way(call.way, several)


def solve_group(
    matrix: MatrixOnPes, given: list[tuple[Any, Vectors]], call: Call, method: str
) -> list[Result]:
    """Return the Results of columns that are solved together; no other call uses the matrix."""
    begin, compiling = time.perf_counter(), CompileTime()
    rights, vectors = [right for right, _ in given], [v for _, v in given]
    layout, watch = matrix.layout_for(cuda_device(rights[0])), call.watch
    options = {**call.options, "method": method}
    options.pop("gather", None)
    largest = max(vectors, key=norm_of)
    all_vectors = padded(vectors, zeros_like(vectors[0]))
    with watch.bar(0, partial(new_bar, largest, options)), watch:
        outcomes: Any = layout.opened().solve_columns(*lists_of(all_vectors), options, watch)
    if watch.error is not None:
        raise watch.error
    timings = _timings(matrix, begin, compiling)
    shared = "the product with A" + (" and directions" if method == BLOCK_METHOD else "")
    why = f"{method}: {counted(len(given), 'column')} together, which share {shared}"
    results = []
    for right, own, outcome in zip(rights, vectors, outcomes, strict=False):
        x = solution(matrix, right, own, outcome)
        result = result_of(x, outcome, layout, options, why, timings)
        if result.converged:
            matrix.past.append(result.iterations)
        results.append(with_notes(result, right, own[0], matrix, layout, options, why))
    return results


def lists_of(vectors: Sequence[Vectors]) -> tuple[list[Any], list[Any] | None, list[Any] | None]:
    """Return right-hand sides, guesses, and arrays for x, of which all columns or none have one."""
    b, x0, out = (list(part) for part in zip(*vectors, strict=True))
    return b, None if x0[0] is None else x0, None if out[0] is None else out


def norm_of(vectors: Vectors) -> float:
    """Return the norm of the right-hand side."""
    right = vectors[0]
    return float(np.linalg.norm(right)) if vectors[2] is None else float(right @ right) ** 0.5


def zeros_like(vectors: Vectors) -> Vectors:
    """Return vectors of zeros, where these lie."""
    right, guess, out = vectors
    if out is not None:
        zero = on_gpu.zeros_beside(right)
        return zero, None if guess is None else zero, on_gpu.empty_beside(right)
    zero = np.zeros_like(right)
    return zero, None if guess is None else zero, None


def facts_of(matrix: MatrixOnPes, layout: Layout, options: Mapping[str, Any]) -> Solve:
    """Return what the choice of a method rests on."""
    return Solve(layout.engine, options["pc"], layout.diagonal_spread)


def run(
    matrix: MatrixOnPes,
    layout: Layout,
    vectors: Vectors,
    options: Mapping[str, Any],
    call: Call,
) -> Any:
    """Return what the core says of a solve, by this process or together with its team."""
    kind = options["method"], options["pc"]
    if layout.devices and kind not in layout.kernels:  # which may have to be compiled
        layout.kernels.add(kind)
        with says_what_compiles():
            return run(matrix, layout, vectors, options, call)
    if matrix.team is None:
        return layout.opened().solve(*vectors, dict(options), call.watch)
    right, guess, _ = vectors
    solve = partial(layout.opened().solve, right, guess, None, dict(options))
    facts = {**asked.agreed(options), "columns": call.columns}
    return in_processes.solve(matrix.team, (right, guess), facts, call.watch, solve, matrix.own)


def new_bar(vectors: Vectors, options: Mapping[str, Any]) -> ProgressBar:
    """Return a bar that counts digits of the residual."""
    bnorm = norm_of(vectors)
    target = max(options["rtol"] * bnorm, options["atol"])
    return ProgressBar(f"  solving to {target:.1e}", of_digits(bnorm, target))


def tell(result: Result, why: str, notes: list[str]) -> None:
    """Log a solve."""
    logger.info("solve: %s; %s", result.message, why)
    for note in notes:
        logger.warning("%s", note)
    own = {name: s for name, s in result.timings.items() if not name.startswith("setup")}
    log_times("solve", own)
