"""The commands about matrices alone: `cpufree info`, `convert`, `generate`, `suite`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from cpufree import options
from cpufree.cli import display
from cpufree.cli.commands import (
    EXIT_INPUT,
    MATRIX_SUFFIXES,
    check_can_write,
    check_different,
    check_length,
    check_not_read,
    load_system,
    pes_of,
    read_partition,
    stage,
    write_json,
)
from cpufree.cli.option_types import with_options
from cpufree.cli.run_record import run_record
from cpufree.env import Env
from cpufree.errors import InvalidInputError, MatrixError
from cpufree.text import counted

if TYPE_CHECKING:
    from cpufree.matrix.problem import CsrMatrix
    from cpufree.partition.part_vector import PartitionLike

INFO_EPILOG = """
[bold]Examples[/bold]

  cpufree info A.mtx --pes 8

  cpufree info A.mtx --pes 8 --save-partition A.part.8

  cpufree info A.mtx --pc amg
"""


@with_options(options.INFO)
def info(
    matrix: Annotated[str, typer.Argument(metavar="A", help="The matrix, as for solve.")],
    given: dict[str, Any],
) -> None:
    """Show what a matrix is like, whether solve accepts it, and how it partitions.

    The exit code is 3 where solve would refuse it.
    """
    from cpufree.engines.asked import Asked
    from cpufree.engines.gpu_choice import Size
    from cpufree.engines.partition_gain import gain_on
    from cpufree.engines.place import choose_engine
    from cpufree.matrix.info import matrix_info
    from cpufree.matrix.validate import check_spd_input
    from cpufree.partition.files import save_partition
    from cpufree.partition.methods import partition as share_out
    from cpufree.solvers.work import SystemWork

    json, save, how = (given[name] for name in ("json", "save_partition", "partition"))
    check_can_write(json)
    check_can_write(save)
    check_different(json, save)
    check_not_read((json, save), (matrix, how))
    partition = read_partition(how, given["pes"])
    notes = Console(stderr=True, highlight=False)
    paper = display.report_console(stderr=json == "-")
    system = load_system(matrix, notes)
    check_length(partition, system, how)
    facts = matrix_info(system)
    try:
        check_spd_input(system)
        problem = None
    except MatrixError as error:
        problem = str(error)
    paper.print(display.info_report(matrix, facts, problem))
    pes = given["pes"] or pes_of(partition)
    content = run_record(("info", matrix), options.INFO, given, pes=pes)
    content |= {"problem": matrix, **facts, "rejected": problem}
    if pes > 1 or save:
        work = SystemWork(Size(system.shape[0], system.nnz, system.dtype.itemsize))
        engine, *_ = choose_engine(work, Asked(), Env.read())
        parts = share_out(system, pes, partition, gain_on(engine))
        paper.print(display.partition_report(parts.report, parts.method, parts.why))
        content["partition"] = {"method": parts.method, **dataclasses.asdict(parts.report)}
        if save:
            save_partition(save, parts.part[:: 2 if system.of_complex else 1])
            paper.print(Text(f"  partition in {save}"))
    if given["pes"] and problem is None:
        content["memory"] = show_memory(system, max(1, pes), partition, given["pc"], paper)
    if given["pc"] == "amg" and problem is None:
        content["multigrid"] = show_levels(system, max(1, pes), partition, paper)
    if json:
        write_json(json, content)
    if problem is not None:
        raise typer.Exit(EXIT_INPUT)


def show_memory(
    system: CsrMatrix, pes: int, partition: PartitionLike, pc: str, paper: Console
) -> dict[str, Any]:
    """Print what each GPU would hold of a system; return it by preconditioner, ready for JSON."""
    from cpufree.solvers.memory import estimate

    content: dict[str, Any] = {}
    for kind in ("jacobi", "amg") if pc == "amg" else ("jacobi",):
        found = estimate(system, pes=pes, pc=kind, partition=partition)
        paper.print(display.memory_report(found))
        content[kind] = [dataclasses.asdict(gpu) for gpu in found.gpus]
    return content


def show_levels(
    system: CsrMatrix, pes: int, partition: PartitionLike, paper: Console
) -> dict[str, Any]:
    """Print the levels of multigrid of a matrix on the CPU; return them, ready for JSON."""
    from cpufree.solvers.factors import complexity
    from cpufree.solvers.solver import Solver

    with Solver(system, pes=pes, partition=partition, engine="cpu_threads", pc="amg") as solver:
        levels, why = solver.plan["levels"], solver.plan["coarsest_why"]
        paper.print(display.level_report(levels, complexity(levels), solver.setup_seconds, why))
        return {
            "levels": levels,
            "complexity": complexity(levels),
            "setup_seconds": solver.setup_seconds,
            "coarsest_why": why,
        }


CONVERT_EPILOG = """
[bold]Examples[/bold]

  cpufree convert A.mtx.gz --out A.cpufree

  cpufree convert A.mtx --parts 8 --out A8.cpufree

  cpufree run -n 8 solve A8.cpufree --input rows --rhs b.npy --out x.npy
"""


@with_options(options.CONVERT)
def convert(
    matrix: Annotated[str, typer.Argument(metavar="A", help="The matrix, as for solve.")],
    given: dict[str, Any],
) -> None:
    """Write a matrix in another format, or with the rows of each part together."""
    from cpufree.matrix.save import save_matrix
    from cpufree.matrix.validate import check_spd_input

    out, parts, how, reorder = (given[k] for k in ("out", "parts", "partition", "reorder"))
    check_can_write(out, MATRIX_SUFFIXES)
    check_not_read((out,), (matrix, how))
    partition = read_partition(how, parts)
    if parts is None and not isinstance(partition, str):
        parts = pes_of(partition)
    if parts is None and (how, reorder) != ("auto", "auto"):
        raise typer.BadParameter("give the number of parts, too", param_hint="--parts")
    if parts is not None and not out.lower().endswith(".cpufree"):
        raise InvalidInputError(f"cannot write parts to '{out}': .cpufree files alone have them")
    notes = Console(stderr=True, highlight=False)
    paper = display.report_console()
    system = load_system(matrix, notes)
    check_length(partition, system, how)
    if parts is None:
        save_matrix(out, system)
    else:
        if given["check"]:  # ranks could not name rows as they are numbered in A
            check_spd_input(system)
        paper.print(
            stage(
                notes,
                "partitioning",
                lambda: _write_parts(out, system, parts, partition, reorder),
                lambda _: counted(parts, "part"),
            )
        )
    size = f"{display.number(system.given_shape[0])} rows, "
    size += f"{display.number(system.given_nnz)} nonzeros"
    paper.print(Text(f"{out}: {size}" + (f", {counted(parts, 'part')}" if parts else "")))


def _write_parts(
    out: str, system: CsrMatrix, parts: int, how: PartitionLike, reorder: str
) -> RenderableType:
    """Write a matrix with the rows of each part together; return what there is to tell."""
    from cpufree.matrix.cache import write_cache
    from cpufree.matrix.row_permutation import RowPermutation
    from cpufree.partition.methods import choose_order
    from cpufree.partition.methods import partition as share_out

    found = share_out(system, parts, how)
    ordering = choose_order(system, found.part, reorder)
    write_cache(out, system, RowPermutation.of(found.part, parts, ordering.order))
    table = display.partition_report(found.report, found.method, found.why)
    return Group(table, Text(f"  {ordering.why}"))


GENERATE_EPILOG = """
[bold]Examples[/bold]

  cpufree generate --list

  cpufree generate flange_hex --describe

  cpufree generate "poisson3d?nx=100,ny=100,nz=100" --out A.npz
"""


def generate(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME[?key=value,...]", help="The generator.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help=".mtx, .mtx.gz, .npz or .cpufree."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the generators.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Show what a generator makes, and its parameters.")
    ] = False,
) -> None:
    """Make a test matrix and save it."""
    from cpufree.generate import describe as description
    from cpufree.generate import names
    from cpufree.matrix.save import save_matrix

    paper = display.report_console()
    if list_:
        # A description is the parameters, an empty line, and what the matrix is.
        rows = [(key, description(key).split("\n\n")[1].splitlines()[0]) for key in names()]
        paper.print(display.columns(("name", "what it is"), rows, "Generators"))
        return
    if name is None:
        raise typer.BadParameter("give a NAME, or --list to see them", param_hint="NAME")
    name = name.removeprefix("gen:")
    if describe:
        paper.print(Text(description(name.partition("?")[0]).strip()))
        return
    if out is None:
        raise typer.BadParameter("give the file to write", param_hint="--out")
    check_can_write(out, MATRIX_SUFFIXES)
    system = load_system(f"gen:{name}", Console(stderr=True, highlight=False))
    save_matrix(out, system)
    size = f"{display.number(system.shape[0])} rows, {display.number(system.nnz)} nonzeros"
    paper.print(Text(f"{out}: {size}"))


SUITE_EPILOG = "[bold]Example[/bold]\n\n  cpufree suite paper18-small --out matrices"


def suite(
    name: Annotated[str, typer.Argument(help="Name of the suite.")] = "paper18-small",
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help="Make the matrices there, as .npz files."),
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only entries whose name contains TEXT.")
    ] = None,
) -> None:
    """List a named suite of test matrices, or make its matrices."""
    from cpufree.generate import format_spec
    from cpufree.generate import generate as make
    from cpufree.generate import suite as find_suite
    from cpufree.matrix.save import save_matrix

    paper = display.report_console()
    entries = [entry for entry in find_suite(name) if (only or "") in entry.name]
    rows = [
        (
            e.name,
            display.number(e.rows),
            display.number(e.nnz),
            display.number(e.distinct) if e.distinct is not None else "–",
            e.imitates,
            format_spec(e.generator, e.params),
        )
        for e in entries
    ]
    heads = ("name", "rows", "nonzeros", "distinct values", "imitates", "generator")
    paper.print(display.columns(heads, rows, f"Suite {name}"))
    if out is None:
        return
    Path(out).mkdir(parents=True, exist_ok=True)
    for entry in entries:
        file = Path(out) / f"{entry.name}.npz"
        if not file.exists():
            save_matrix(file, make(entry.generator, **entry.params))
        paper.print(Text(str(file)))
