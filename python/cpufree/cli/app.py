"""The command line: `cpufree solve`, `stencil`, `info`, `convert`, `generate`, `suite`, ...

Reports go to stdout; progress, notes and errors go to stderr. The exit code tells why a solve
ended (docs/cli.md).
"""

from __future__ import annotations

import functools
import io
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from cpufree import options
from cpufree.bench.commands import app as bench_app
from cpufree.cli import display
from cpufree.cli.commands import EXIT_ENGINE, Outputs, check_can_write, explain, write_json
from cpufree.cli.matrix_commands import (
    CONVERT_EPILOG,
    GENERATE_EPILOG,
    INFO_EPILOG,
    SUITE_EPILOG,
    convert,
    generate,
    info,
    suite,
)
from cpufree.cli.model_commands import app as model_app
from cpufree.cli.option_types import UsageError, usage_line, with_options
from cpufree.cli.rank_commands import EPILOG as RUN_EPILOG
from cpufree.cli.rank_commands import as_rank, end_of_rank, run, silent_copies
from cpufree.cli.solve_command import SolveWork
from cpufree.cli.stencil_command import EPILOG as STENCIL_EPILOG
from cpufree.cli.stencil_command import stencil
from cpufree.env import Env, RankEnv
from cpufree.errors import CpufreeError

EXIT_USAGE = 2
SOLVE_EPILOG = """
[bold]Examples[/bold]

  cpufree solve A.mtx.gz --rhs b.npy --rtol 1e-8 --out x.npy

  cpufree solve "gen:poisson3d?nx=60,ny=60,nz=60" --pes 4 --plot convergence.png

  cpufree solve A.npz --method cg --pc chebyshev --json report.json

  cpufree solve A.mtx --gpus 0-3

  cpufree solve A.mtx --pes 8 --partition A.mtx.part.8

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
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench_app)
app.add_typer(model_app)


def show_version(asked: bool) -> None:
    """Print the version and leave."""
    if asked:
        import cpufree

        print(f"cpufree {cpufree.__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Solve sparse SPD systems, iterate on grids: one kernel per PE, the CPU steps back."""


@app.command(epilog=SOLVE_EPILOG)
@with_options(options.SOLVE)
def solve(
    matrix: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="The matrix: .mtx, .mtx.gz, .npz, .npy, .cpufree, or a generator "
            "(gen:NAME?key=value,...; see cpufree generate --list).",
        ),
    ],
    given: dict[str, Any],
) -> None:
    """Solve A x = b, A sparse, symmetric and positive definite."""
    outputs = Outputs(given["json"], given["plot"], given["out"])
    with as_rank(given["engine"]) as (engine, speaks):
        if speaks:
            outputs.check((matrix, given["rhs"], given["partition"]))
        code = SolveWork(matrix, given, engine, outputs).run(speaks)
    raise typer.Exit(code)


app.command("stencil", epilog=STENCIL_EPILOG)(stencil)
app.command(
    "run",
    epilog=RUN_EPILOG,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(run)


app.command("info", epilog=INFO_EPILOG)(info)
app.command("convert", epilog=CONVERT_EPILOG)(convert)
app.command("generate", epilog=GENERATE_EPILOG)(generate)
app.command("suite", epilog=SUITE_EPILOG)(suite)


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
    from cpufree.cli import doctor, rank_doctor

    env = RankEnv.read()
    if env is not None and env.rank != 0 and not distributed:
        return  # rank 0 tells it for all
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
                sys.exit(run_command(arguments))
        except Exception as error:
            code, line = end_of_rank(error, *explain(error))
            if debugging():
                traceback.print_exc()
            if line is not None:
                tell("error", line, "bold red")
            sys.exit(code)


def run_command(arguments: list[str] | None) -> int:
    """Run a command and return its exit code; what is wrong with its words is told in a line."""
    try:
        code = app(args=arguments, prog_name="cpufree", standalone_mode=False)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            tell("error", usage_line(error), "bold red")
        return EXIT_USAGE
    return code if isinstance(code, int) else 0


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
