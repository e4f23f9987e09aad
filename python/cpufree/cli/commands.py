"""What the commands of the command line do with matrices, vectors and files."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from cpufree.cli import display
from cpufree.dtypes import parts_type
from cpufree.errors import CpufreeError, FileFormatError, InvalidInputError, OutOfMemoryError
from cpufree.output_file import require_writable, write_file, write_text
from cpufree.text import counted
from cpufree.trace.asked import SUFFIXES

if TYPE_CHECKING:
    from cpufree.matrix.problem import CsrMatrix
    from cpufree.partition.part_vector import PartitionLike
    from cpufree.solvers.result import Result
    from cpufree.solvers.solver import Solver

T = TypeVar("T")

EXIT_INPUT, EXIT_ENGINE, EXIT_MEMORY = 3, 4, 5
MATRIX_SUFFIXES = (".mtx", ".mtx.gz", ".npz", ".cpufree")
VECTOR_SUFFIXES = (".npy", ".mtx", ".mtx.gz", ".txt")
PLOT_SUFFIXES = (".png", ".svg", ".pdf")


def explain(error: Exception) -> tuple[int, str]:
    """Return exit code and one line for an error that reached the top."""
    if isinstance(error, (OutOfMemoryError, MemoryError)):
        return EXIT_MEMORY, str(error) or "out of memory"
    if isinstance(error, (InvalidInputError, OSError)):
        return EXIT_INPUT, str(error)
    if isinstance(error, CpufreeError):
        return EXIT_ENGINE, str(error)
    where = "set CPUFREE_LOG=debug to see where, and report it"
    return 1, f"unexpected {type(error).__name__}: {error} ({where})"


def check_can_write(path: str | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raise InvalidInputError now rather than after a long solve if path cannot be written.

    "-" is stdout, where no suffix tells a format.
    """
    if path is None or (path == "-" and not suffixes):
        return
    if not path:
        raise InvalidInputError("the name of a file to write is empty")
    folder = os.path.dirname(path) or "."
    if suffixes and not path.lower().endswith(suffixes):
        ends = ", ".join(suffixes)
        raise InvalidInputError(f"cannot write '{path}': the name must end in one of {ends}.")
    if not os.path.isdir(folder):
        raise InvalidInputError(f"cannot write '{path}': there is no directory '{folder}'.")
    if os.path.isdir(path):
        raise InvalidInputError(f"cannot write '{path}': it is a directory.")
    try:
        require_writable(path)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InvalidInputError(f"cannot write '{path}': {why}.") from None


def check_different(*paths: str | None) -> None:
    """Raise InvalidInputError where two files to write are one: the later would replace the other.

    Paths that are None or "-" are no files.
    """
    seen: set[str] = set()
    for path in paths:
        if path is None or path == "-":
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise InvalidInputError(f"'{path}' would be written twice: give different names")
        seen.add(place)


def check_not_read(written: Sequence[str | None], read: Sequence[str]) -> None:
    """Raise InvalidInputError where a file to write is one that is read, the matrix for one."""
    there = [name for name in read if os.path.exists(name)]
    for path in filter(None, written):
        if os.path.exists(path) and any(os.path.samefile(path, name) for name in there):
            raise InvalidInputError(
                f"'{path}' holds what is to be read, the matrix or what goes with it: give another "
                "name for what is written"
            )


def write_json(path: str, content: dict[str, Any]) -> None:
    """Write content to a file, or to stdout for "-"."""
    text = json.dumps(display.to_plain(content), indent=2, allow_nan=False) + "\n"
    if path == "-":
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            display.drop(sys.stdout)
    else:
        write_text(path, text)


def stage(console: Console, name: str, work: Callable[[], T], tell: Callable[[T], str]) -> T:
    """Do work under a spinner, then leave one line with its outcome and time, on a terminal only.

    `tell` turns what work returns into a few words.
    """
    return stage_of_steps(console, name, lambda progress: work(), tell)


def stage_of_steps(
    console: Console,
    name: str,
    work: Callable[[Callable[[int, int], None]], T],
    tell: Callable[[T], str],
) -> T:
    """Do the same with work that tells how many of its steps are done, and how many there are."""
    if not console.is_terminal or console.quiet:
        return work(lambda done, steps: None)
    begin = time.perf_counter()
    with console.status(f"  {name}") as status:
        outcome = work(lambda done, steps: status.update(f"  {name}: {done} of {steps}"))
    taken = display.seconds(time.perf_counter() - begin)
    console.print(Text(f"  {name}: {tell(outcome)} ({taken})", style="dim"))
    return outcome


def load_system(source: str, console: Console) -> CsrMatrix:
    """Read or generate a matrix and bring it into canonical form."""
    from cpufree.matrix.load import as_csr

    name = "generating" if source.startswith("gen:") else "reading"
    return stage(
        console,
        name,
        lambda: as_csr(source),
        lambda a: "{} rows, {} nonzeros".format(*map(display.number, size_of(a))),
    )


def right_hand_side(name: str, n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return b for "ones", "random" (standard normal, fixed seed), or the name of a file."""
    if name == "ones":
        return np.ones(n, dtype=dtype)
    if name == "random":
        both = 2 if np.dtype(dtype).kind == "c" else 1
        numbers = np.random.default_rng(0).standard_normal(both * n).astype(parts_type(dtype))
        return numbers.view(dtype)
    return read_vector(name, n, dtype, "rhs")


def read_vector(path: str, n: int, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """Read a vector of n entries."""
    from cpufree.matrix.io.vectors import load_vector
    from cpufree.matrix.vector import as_vector

    return as_vector(load_vector(path, n), n, dtype, name)


def read_partition(how: str, pes: int | None) -> PartitionLike:
    """Return the method of --partition, or the part numbers in the file that it names.

    `pes` is the number of parts, None where nothing has been said of it.
    """
    from cpufree.partition.files import load_partition
    from cpufree.partition.methods import METHODS

    if how in METHODS:
        return how
    if not os.path.exists(how):
        known = ", ".join(METHODS)
        raise InvalidInputError(f"--partition {how}: no such file, and none of {known}")
    return load_partition(how, pes)


def check_length(partition: PartitionLike, matrix: CsrMatrix, how: str) -> None:
    """Raise InvalidInputError unless what `read_partition` gave of `how` is for this matrix."""
    from cpufree.partition.part_vector import require_length

    if not isinstance(partition, str):
        require_length(partition, matrix.given_shape[0], how)


def pes_of(partition: PartitionLike) -> int:
    """Return the number of parts in a partition that is given; 1 for a method."""
    from cpufree.partition.part_vector import count_of

    return 1 if isinstance(partition, str) else count_of(partition)


def save_solution(path: str, x: NDArray[Any]) -> str:
    """Save x; where the disk refuses, to a temporary file rather than not at all.

    Returns where it lies. Raises OSError that names the place when it is not `path`.
    """
    from cpufree.matrix.io.vectors import save_vector

    with rescued(x, "x is"):
        save_vector(path, x)
    return path


def save_grid(path: str, values: NDArray[Any]) -> None:
    """Save the values of a grid, as `save_solution` does; `path` may be what they came from."""
    with rescued(values, "the values are"), write_file(path) as file:
        np.save(file, values)


@contextlib.contextmanager
def rescued(values: NDArray[Any], what: str) -> Iterator[None]:
    """Save values in a temporary file where the block cannot write them; OSError names it."""
    try:
        yield
    except (OSError, FileFormatError) as error:
        handle, rescue = tempfile.mkstemp(prefix="cpufree-x-", suffix=".npy")
        with os.fdopen(handle, "wb") as file:
            np.save(file, values)
        raise OSError(f"{error}; {what} saved in '{rescue}'") from error


@dataclass(frozen=True)
class Outputs:
    """Files that a solve writes; None: not wanted. Checked before the solve begins."""

    json: str | None
    plot: str | None
    out: str | None
    trace: str | None = None

    def check(self, system: Sequence[str]) -> None:
        """Raise InvalidInputError where a file cannot be written, or is one of the system's."""
        check_can_write(self.json)
        check_can_write(self.out, VECTOR_SUFFIXES)
        check_can_write(self.plot, PLOT_SUFFIXES)
        check_can_write(self.trace, SUFFIXES)
        check_different(self.out, self.json, self.plot, self.trace)
        check_not_read((self.out, self.json, self.plot, self.trace), system)

    def write(
        self,
        result: Result,
        matrix: Any,
        source: str,
        tolerance: float,
        facts: Callable[[], dict[str, Any]],
    ) -> list[str]:
        """Write the files, the solution first, the report last; return one line per file.

        Args:
            result: of the solve. matrix: has a shape and a number of entries, nnz.
            source: what the matrix is called. tolerance: of the solve, absolute.
            facts: tells what the report in JSON has besides the result, when that is written.
        """
        lines = []
        if self.trace:
            lines.append(f"trace in {self.trace}")
        if self.out:
            lines.append(f"solution in {save_solution(self.out, result.x)}")
        try:
            if self.plot:
                from cpufree.cli.plot import plot_convergence

                n, nnz = size_of(matrix)
                problem = f"{source}   {display.number(n)} rows, {display.number(nnz)} nonzeros"
                plot_convergence(result, self.plot, problem=problem, tolerance=tolerance)
                lines.append(f"plot in {self.plot}")
        finally:
            if self.json:
                known = {**facts(), **result.to_dict(), "why": result.why.split("; ")}
                write_json(self.json, known)
                lines.append(f"report in {self.json}")
        return lines


def size_of(matrix: Any) -> tuple[int, int]:
    """Return rows and nonzeros of a matrix, or of one of which a rank has its own rows."""
    rows = getattr(matrix, "given_shape", matrix.shape)[0]
    return int(rows), int(getattr(matrix, "given_nnz", matrix.nnz))


def describe_plan(solver: Solver) -> str:
    """Say in a few words how a solver divided its matrix."""
    plan = solver.plan
    words = counted(plan["pes"], "PE")
    words += f" in {plan['nodes']} nodes" if plan.get("nodes", 1) > 1 else ""
    words += f" × {counted(plan['blocks'], 'block')}"
    words += f" on {solver.device}" if solver.device else ""
    if plan["pes"] == 1:
        return words
    cut, halo = display.number(plan["edge_cut"]), display.number(plan["halo_values"])
    return f"{words}, edge cut {cut}, halo {halo} values, imbalance {plan['imbalance']:.3f}"
