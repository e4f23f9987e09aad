"""What the command line shows: reports on solves and matrices, tables, numbers with units."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Literal

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cpufree.cli import endings
from cpufree.solvers.result import Result
from cpufree.summary import one_a_line
from cpufree.text import counted, time_text
from cpufree.text import number as number  # of what all commands show

if TYPE_CHECKING:
    from cpufree.partition.cost import PartitionReport
    from cpufree.solvers.memory import MemoryEstimate
    from cpufree.solvers.scipy_functions.answer_check import AnswerCheck


class ReportConsole(Console):
    """A console whose reader may leave, as `head` does: files and exit code stay what they are."""

    def on_broken_pipe(self) -> None:
        """Say no more; Rich would end the program with code 1."""
        self.quiet = True
        drop(self.file)


def drop(stream: IO[str]) -> None:
    """Discard what is still to be printed: the reader has gone."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


class WithoutTrailingBlanks(io.TextIOBase, IO[str]):
    """A file that writes to another one, without the blanks that end cells of tables."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, text: str) -> int:
        """Write lines; Rich writes whole ones."""
        return self.file.write(re.sub(r" +$", "", text, flags=re.MULTILINE))

    def flush(self) -> None:
        """Flush the other file."""
        self.file.flush()

    def fileno(self) -> int:
        """Return the descriptor of the other file."""
        return self.file.fileno()


def report_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return the console for reports; in a file or a pipe, lines may be longer than usual."""
    console = ReportConsole(stderr=stderr, quiet=quiet, highlight=False)
    if not console.is_terminal:
        console.width = 160
        console.file = WithoutTrailingBlanks(console.file)
    return console


seconds = time_text


def size(value: float) -> str:
    """Return a number of bytes in binary units: 123456789 -> 118 MiB."""
    power = min(4, int(math.log(max(value, 1), 1024)))
    unit = ("B", "KiB", "MiB", "GiB", "TiB")[power]
    return f"{value / 1024**power:.4g} {unit}"


def pairs(rows: Iterable[tuple[str, str]], title: str | None = None) -> RenderableType:
    """Return a table of names and values, without lines."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(f"  {name}"), Text(value))
    return Group(Text(title, style="bold"), table) if title else table


def columns(heads: Sequence[str], rows: Iterable[Sequence[str]], title: str) -> RenderableType:
    """Return a table with heads; numeric columns go to the right, only the last one may wrap."""
    body = [list(row) for row in rows]
    table = Table(box=None, padding=(0, 2), header_style="dim", pad_edge=True)
    for index, head in enumerate(heads):
        numeric = all(row[index].replace(" ", "").isdigit() for row in body)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        table.add_column(head, justify=justify, overflow="fold", no_wrap=index < len(heads) - 1)
    for row in body:
        table.add_row(*(Text(cell) for cell in row))
    return Group(Text(title, style="bold"), table)


def result_report(
    result: Result, tolerance: float, checked: AnswerCheck | None, plan: Mapping[str, Any]
) -> RenderableType:
    """Return the report at the end of a solve.

    `tolerance` is the absolute residual norm asked for, `checked` the norm of b - A x that others
    find for the x returned (None: not computed), `plan` the Solver's.
    """
    style = "bold green" if result.converged else "bold red"
    parts: list[RenderableType] = [Text(endings.verdict(result), style=style)]
    what_to_do = endings.advice(result)
    if what_to_do:
        parts.append(Text(f"  {what_to_do}"))

    def residual(norm: float) -> str:
        relative = f"   relative to ‖b‖: {norm / result.bnorm:.3e}" if result.bnorm > 0 else ""
        return f"{norm:.3e}{relative}"

    rows = [
        ("right-hand side", result.described_rhs()),
        ("tolerance", residual(tolerance)),
        ("recursive residual", residual(result.residual)),
        ("true residual b - A x", residual(result.true_residual)),
    ]
    if checked is not None:
        rows.append(("the same on the host", residual(checked.double)))
        if checked.extended is not None:
            rows.append(("in extended precision", residual(checked.extended)))
    rows += [
        ("method", f"{result.method}, preconditioner {result.pc}"),
        ("why", one_a_line(result.why)),
        ("engine", f"{result.engine}: {layout(result)}"),
        ("matrix", storage(plan, result.x.dtype.itemsize)),
        ("time", times(result.timings)),
        ("disturbed", result.disturbed()),
    ]
    parts.append(pairs((name, value) for name, value in rows if value))
    parts += [Text(f"  warning: {text}", style="yellow") for text in result.warnings]
    return Group(*parts)


def layout(result: Result) -> str:
    """Return where a solve ran, in words: the GPUs with their numbers, PEs and blocks."""
    words = f"{counted(result.pes, 'PE')} × {counted(result.blocks, 'block')}"
    if not result.gpus:
        return words
    numbers = ", ".join(map(str, result.gpus))
    return f"{result.device} (GPU {numbers}), {words}"


def storage(plan: Mapping[str, Any], value_bytes: int) -> str:
    """Return what the matrix takes in the format in use, and what stays on chip, in words."""
    plain = sum(plan["nnz"]) * (value_bytes + 4) + sum(plan["rows"]) * 4
    if not plain:
        return ""
    used = plan["matrix_bytes"]
    text = f"{size(used)} in the format in use, {used / plain:.0%} of plain CSR"
    vectors = plan["resident_vectors"]
    kept = ["the matrix"] if plan["resident_matrix"] else []
    kept += [counted(vectors, "vector")] if vectors else []
    return text + (f"; on chip: {' and '.join(kept)}" if kept else "")


def times(timings: dict[str, float]) -> str:
    """Return setup, solve, kernel and per-iteration times in words."""
    parts = [
        (timings.get("setup"), "setup"),
        (timings.get("solve"), "solve"),
        (timings.get("kernel"), "kernel"),
        (timings.get("per_iteration"), "per iteration"),
    ]
    return ", ".join(f"{seconds(value)} {name}" for value, name in parts if value is not None)


def partition_report(report: PartitionReport, method: str, why: str) -> RenderableType:
    """Return the table of a partition: per PE and in all."""
    rows = [
        (
            str(pe),
            number(report.rows[pe]),
            number(report.nnz[pe]),
            number(report.ghosts[pe]),
            ", ".join(map(str, report.neighbours[pe])) or "-",
        )
        for pe in range(report.pes)
    ]
    table = columns(("PE", "rows", "nonzeros", "ghosts", "neighbours"), rows, "Partition")
    summary = pairs(
        [
            ("method", f"{method} ({why})" if why else method),
            ("edge cut", f"{number(report.edge_cut)} pairs of coupled rows on different PEs"),
            ("halo volume", f"{number(report.halo_values)} values per exchange"),
            ("imbalance", f"{report.imbalance:.3f} (largest over mean nonzeros; 1 is perfect)"),
        ]
    )
    return Group(table, summary)


def memory_report(found: MemoryEstimate) -> RenderableType:
    """Return the table of what each GPU would hold, and what it needs."""
    kinds = ("matrix", "vectors", "halo", "factors", "levels", "kept", "pages")
    parts = tuple(part for part in kinds if any(getattr(gpu, part) for gpu in found.gpus))
    rows = [
        (str(k), *(size(getattr(gpu, part)) for part in (*parts, "total", "peak")))
        for k, gpu in enumerate(found.gpus)
    ]
    title = f"Memory of {counted(len(rows), 'GPU')}, pc {found.pc}, {found.dtype}"
    peak = f"the fastest set-up takes up to {size(found.peak)}"
    needs = [("needs", f"{size(found.needed)} free on each GPU; {peak}")]
    return Group(columns(("GPU", *parts, "in all", "peak"), rows, title), pairs(needs))


def level_report(
    levels: list[dict[str, Any]], complexity: float, setup: float, why: str
) -> RenderableType:
    """Return the report on the levels of multigrid.

    `setup`: seconds of the whole set-up. `why`: what has kept it from coarser levels; "": nothing.
    """
    rows = [
        (
            str(k),
            number(level["rows"]),
            number(level["nnz"]),
            f"{level['nnz'] / max(1, level['rows']):.1f}",
            number(level["transfer_nnz"]) if level["transfer_nnz"] else "-",
            size(level["bytes"]),
        )
        for k, level in enumerate(levels)
    ]
    names = ("level", "rows", "nonzeros", "per row", "prolongator", "memory")
    solved = "solved by a dense inverse" if levels[-1]["inverted"] else f"smoothed: {why}"
    summary = [
        ("complexity", f"{complexity:.2f} (nonzeros of all levels over those of A)"),
        ("memory", size(sum(level["bytes"] for level in levels))),
        ("set-up", seconds(setup)),
        ("last level", solved),
    ]
    return Group(columns(names, rows, "Multigrid"), pairs(summary))


def info_report(name: str, facts: dict[str, Any], problem: str | None) -> RenderableType:
    """Return the report on a matrix from the facts of `info.matrix_info`.

    `problem` is why solve would refuse the matrix, None where it would not.
    """
    n = max(facts["rows"], 1)
    kind = "Hermitian" if facts["dtype"].startswith("complex") else "symmetric"
    rows = [
        ("rows", number(facts["rows"])),
        ("nonzeros", f"{number(facts['nnz'])} ({facts['dtype']}, CSR {size(facts['bytes'])})"),
        (
            "entries per row",
            f"{facts['row_min']} least, {facts['row_mean']:.1f} mean, {facts['row_max']} most",
        ),
        (
            "bandwidth",
            f"{number(facts['bandwidth'])} (mean |i - j| {number(facts['mean_distance'])})",
        ),
    ]
    rows.append(("distinct values", number(facts["distinct_values"])))
    share = facts["stored_zeros"] / max(facts["nnz"], 1)
    rows.append(("stored zeros", f"{number(facts['stored_zeros'])} ({share:.1%} of the nonzeros)"))
    if facts["value_min"] is not None:
        rows.append(("magnitudes", f"{facts['value_min']:.3g} to {facts['value_max']:.3g}"))
    if facts["diagonal_min"] is not None:
        rows.append(("diagonal", f"{facts['diagonal_min']:.6g} to {facts['diagonal_max']:.6g}"))
    rows.append(("dominant rows", f"{facts['dominant_rows'] / n:.1%}"))
    state = (
        Text(
            f"  Accepted: finite, {kind}, and the diagonal is positive. Whether it is positive "
            "definite was not checked: solve finds out.",
            style="green",
        )
        if problem is None
        else Text(f"  Refused by solve: {problem}", style="red")
    )
    return Group(Text(name, style="bold"), pairs(rows), state)


def to_plain(value: Any) -> Any:
    """Return value with NumPy scalars and arrays replaced, ready for JSON."""
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no NaN
    return value
