"""The command line: `cpufree solve`, `stencil`, `info`, `generate`, `suite`, `doctor`, `bench`.

Reports go to stdout; progress, notes and errors go to stderr. The exit code tells why a solve
ended (docs/cli.md).
"""

from __future__ import annotations

import dataclasses
import functools
import io
import sys
import traceback
import warnings
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from . import display
from .bench.commands import app as bench_app
from .commands import (
    EXIT_ENGINE,
    MATRIX_SUFFIXES,
    Outputs,
    check_can_write,
    explain,
    load_system,
    parse_count,
    parse_gpus,
    write_json,
)
from .env import Env
from .errors import CpufreeError, MatrixError
from .rank_commands import EPILOG as RUN_EPILOG
from .rank_commands import as_rank, end_of_rank, run, silent_copies
from .solve_command import SolveWork
from .stencil_command import EPILOG as STENCIL_EPILOG
from .stencil_command import stencil

SOLVE_EPILOG = """
[bold]Examples[/bold]

  cpufree solve A.mtx.gz --rhs b.npy --rtol 1e-8 --out x.npy

  cpufree solve "gen:poisson3d?nx=60,ny=60,nz=60" --pes 4 --plot convergence.png

  cpufree solve A.npz --method cg --pc chebyshev --json report.json

  cpufree solve A.mtx --gpus 0-3

[bold]Exit codes[/bold]

  0 converged · 1 unexpected error · 2 wrong usage · 3 wrong input or file · 4 engine failed or
  not available · 5 out of memory

  not converged: 10 iterations (--maxiter) · 11 stagnated · 12 time limit · 13 NaN or infinity ·
  14 matrix not positive definite · 15 preconditioner not positive definite · 16 breakdown ·
  17 diverged · 130 interrupted (Ctrl-C; the x so far is kept)
"""

app = typer.Typer(
    name="cpufree",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench_app)


class Method(str, Enum):
    """Methods of conjugate gradients."""

    auto = "auto"
    cg = "cg"
    prcg = "prcg"
    pipecg = "pipecg"


class Engine(str, Enum):
    """Engines."""

    auto = "auto"
    cuda_p2p = "cuda_p2p"
    cpu_threads = "cpu_threads"
    nvshmem = "nvshmem"
    cpu_processes = "cpu_processes"


class Input(str, Enum):
    """Which rows each of several processes reads or makes."""

    auto = "auto"
    whole = "whole"
    rows = "rows"


class Preconditioner(str, Enum):
    """Preconditioners."""

    jacobi = "jacobi"
    chebyshev = "chebyshev"
    none = "none"


def show_version(asked: bool) -> None:
    """Print the version and leave."""
    if asked:
        from importlib.metadata import version

        print(f"cpufree {version('cpufree')}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    """Solve sparse SPD systems, iterate on grids: one kernel per PE, the CPU steps back."""


@app.command(epilog=SOLVE_EPILOG)
def solve(
    matrix: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="The matrix: .mtx, .mtx.gz, .npz, .npy, .cpufree, or a generator "
            "(gen:NAME?key=value,...; see cpufree generate --list).",
        ),
    ],
    rhs: Annotated[
        str, typer.Option(help="Right-hand side b: ones, random (fixed seed), or a file.")
    ] = "ones",
    x0: Annotated[str | None, typer.Option(help="First guess, a file. Default: zero.")] = None,
    rtol: Annotated[
        float, typer.Option(min=0, help="Stop where ‖b - A x‖ ≤ max(rtol × ‖b‖, atol).")
    ] = 1e-5,
    atol: Annotated[float, typer.Option(min=0, help="See --rtol.")] = 0.0,
    maxiter: Annotated[
        int | None, typer.Option(min=0, help="Most iterations. Default: 10 × rows.")
    ] = None,
    method: Annotated[Method, typer.Option(help="Method.")] = Method.auto,
    pc: Annotated[Preconditioner, typer.Option(help="Preconditioner.")] = Preconditioner.jacobi,
    engine: Annotated[
        Engine,
        typer.Option(
            help="GPUs (cuda_p2p), the CPU (cpu_threads), or auto. In several processes: a GPU for "
            "each (nvshmem), or the CPU (cpu_processes)."
        ),
    ] = Engine.auto,
    gpus: Annotated[
        str, typer.Option(metavar="LIST", help="GPUs: auto, all, or numbers such as 0,2-5.")
    ] = "auto",
    pes: Annotated[
        str, typer.Option(metavar="N", help="Number of PEs (GPUs, or groups of threads), or auto.")
    ] = "auto",
    blocks: Annotated[
        str, typer.Option(metavar="N", help="Blocks per PE (threads on the CPU), or auto.")
    ] = "auto",
    time_limit: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop after this time.")
    ] = None,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Report as JSON; - is stdout.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Convergence plot: .png, .svg or .pdf.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Save x: .npy, .mtx, .mtx.gz or .txt.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Check the matrix and the answer.")
    ] = True,
    input_: Annotated[
        Input,
        typer.Option(
            "--input",
            help="In several processes: each reads or makes the whole matrix, or its own rows (of "
            "a .cpufree file, poisson1d, 2d, 3d, stencil27); auto: own rows where such a "
            "generator makes 5 million or more, and vectors and --out are .npy files.",
        ),
    ] = Input.auto,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")] = False,
) -> None:
    """Solve A x = b, A sparse, symmetric and positive definite."""
    asked = {"pes": parse_count(pes, "--pes"), "blocks": parse_count(blocks, "--blocks")}
    asked |= {"gpus": parse_gpus(gpus)}
    how: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "method": method.value}
    how |= {"pc": pc.value, "time_limit": time_limit}
    outputs = Outputs(json_, plot, out)
    with as_rank(engine.value) as (chosen, speaks):
        if speaks:
            outputs.check((matrix, rhs))
        setup = {**asked, "engine": chosen}
        work = SolveWork(matrix, rhs, x0, check, input_.value, setup, how, outputs)
        code = work.run(quiet, speaks)
    raise typer.Exit(code)


app.command("stencil", epilog=STENCIL_EPILOG)(stencil)
app.command(
    "run",
    epilog=RUN_EPILOG,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(run)


@app.command(epilog="[bold]Example[/bold]\n\n  cpufree info A.mtx --pes 8")
def info(
    matrix: Annotated[str, typer.Argument(metavar="A", help="The matrix, as for solve.")],
    pes: Annotated[
        int, typer.Option(min=1, max=1024, metavar="N", help="PEs to partition for.")
    ] = 1,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Facts as JSON; - is stdout.")
    ] = None,
) -> None:
    """Show what a matrix is like, whether solve accepts it, and how it partitions."""
    from .info import matrix_info
    from .partition import partition
    from .validate import check_spd_input

    check_can_write(json_)
    notes = Console(stderr=True, highlight=False)
    paper = display.report_console(stderr=json_ == "-")
    system = load_system(matrix, notes)
    facts = matrix_info(system)
    try:
        check_spd_input(system)
        problem = None
    except MatrixError as error:
        problem = str(error)
    paper.print(display.info_report(matrix, facts, problem))
    content = {"problem": matrix, **facts, "rejected": problem}
    if pes > 1:
        parts = partition(system, pes)
        paper.print(display.partition_report(parts.report, parts.method, parts.why))
        content["partition"] = {"method": parts.method, **dataclasses.asdict(parts.report)}
    if json_:
        write_json(json_, content)


GENERATE_EPILOG = """
[bold]Examples[/bold]

  cpufree generate --list

  cpufree generate flange_hex --describe

  cpufree generate "poisson3d?nx=100,ny=100,nz=100" --out A.npz
"""


@app.command(epilog=GENERATE_EPILOG)
def generate(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME[?key=value,...]", help="The generator.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help=".mtx, .mtx.gz, .npz or .cpufree.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the generators.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Show what a generator makes, and its parameters.")
    ] = False,
) -> None:
    """Make a test matrix and save it."""
    from .generate import describe as description
    from .generate import names
    from .io import save_matrix

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
    save_matrix(out, system.to_scipy())
    size = f"{display.number(system.shape[0])} rows, {display.number(system.nnz)} nonzeros"
    paper.print(Text(f"{out}: {size}"))


@app.command(epilog="[bold]Example[/bold]\n\n  cpufree suite paper18-small --out matrices")
def suite(
    name: Annotated[str, typer.Argument(help="Name of the suite.")] = "paper18-small",
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Make the matrices there, as .npz files.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only entries whose name contains TEXT.")
    ] = None,
) -> None:
    """List a named suite of test matrices, or make its matrices."""
    from .generate import format_spec
    from .generate import generate as make
    from .generate import suite as find_suite
    from .io import save_matrix

    paper = display.report_console()
    entries = [entry for entry in find_suite(name) if (only or "") in entry.name]
    rows = [
        (
            e.name,
            display.number(e.rows),
            display.number(e.nnz),
            e.imitates,
            format_spec(e.generator, e.params),
        )
        for e in entries
    ]
    heads = ("name", "rows", "nonzeros", "imitates", "generator")
    paper.print(display.columns(heads, rows, f"Suite {name}"))
    if out is None:
        return
    Path(out).mkdir(parents=True, exist_ok=True)
    for entry in entries:
        file = Path(out) / f"{entry.name}.npz"
        if not file.exists():
            save_matrix(file, make(entry.generator, **entry.params))
        paper.print(Text(str(file)))


@app.command("doctor")
def doctor_command(
    distributed: Annotated[
        bool,
        typer.Option("--distributed", help="Look at the ranks that a launcher has started, too."),
    ] = False,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Findings as JSON; - is stdout.")
    ] = None,
) -> None:
    """Show what this machine can do, what is missing, and how to get it. Needs no GPU."""
    from . import doctor, rank_doctor

    with as_rank("auto" if distributed else "") as (_, speaks):
        if speaks:
            check_can_write(json_)
        sections = doctor.examine() if speaks else []
        sections += rank_doctor.examine() if distributed else []
        if speaks:
            if json_:
                write_json(json_, doctor.to_dict(sections))
            display.report_console(stderr=json_ == "-").print(doctor.report(sections))
    raise typer.Exit(0 if doctor.healthy(sections) else EXIT_ENGINE)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code (SystemExit)."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # Not every terminal has a ‖, and not every name of a file is text.
        sys.stdout.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        # The environment is read in several places: once is enough.
        once = functools.cache(lambda text: tell("warning", text, "yellow"))
        warnings.showwarning = lambda message, *_: once(str(message))
        try:
            with silent_copies():
                app(args=arguments, prog_name="cpufree")
        except Exception as error:
            code, line = end_of_rank(error, *explain(error))
            if debugging():
                traceback.print_exc()
            if line is not None:
                tell("error", line, "bold red")
            sys.exit(code)


def tell(kind: str, message: str, style: str) -> None:
    """Print a warning or an error on stderr, in one line."""
    line = Text.assemble((f"cpufree: {kind}: ", style), " ".join(message.split()))
    Console(stderr=True, soft_wrap=True, highlight=False).print(line)


def debugging() -> bool:
    """Return whether the user asked for tracebacks with CPUFREE_LOG=debug."""
    try:
        return Env.read().log == "debug"
    except CpufreeError:  # a wrong variable is what the error at hand may be about
        return False
