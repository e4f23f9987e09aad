"""The command line: `cpufree solve`, `stencil`, `info`, `convert`, `generate`, `suite`, ...

Reports go to stdout; progress, notes and errors go to stderr. The exit code tells why a solve
ended (docs/cli.md). A command loads what it needs, and not what others need.
"""

from __future__ import annotations

import codecs
import functools
import io
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.text import Text

from cpufree.calls import debugging
from cpufree.cli import VERSION_WORDS, version_line
from cpufree.cli.commands import explain
from cpufree.cli.option_types import UsageError, usage_line
from cpufree.cli.rank_commands import end_of_rank, silent_copies

EXIT_USAGE = 2


def show_version(asked: bool) -> None:
    """Print the version and leave."""
    if asked:
        print(version_line())
        raise typer.Exit


def top(
    version: Annotated[
        bool,
        typer.Option(
            *VERSION_WORDS, callback=show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Solve sparse SPD systems, iterate on grids: one kernel per PE, the CPU steps back."""


def add_solve(app: typer.Typer) -> None:
    """Add `cpufree solve`."""
    from cpufree.cli import solve_command

    app.command("solve", epilog=solve_command.EPILOG)(solve_command.solve)


def add_stencil(app: typer.Typer) -> None:
    """Add `cpufree stencil`."""
    from cpufree.cli import stencil_command

    app.command("stencil", epilog=stencil_command.EPILOG)(stencil_command.stencil)


def add_program(app: typer.Typer) -> None:
    """Add `cpufree program`."""
    from cpufree.cli import program_command

    app.command("program", epilog=program_command.EPILOG)(program_command.program)


def add_run(app: typer.Typer) -> None:
    """Add `cpufree run`."""
    from cpufree.cli import rank_commands

    words_of_another = {"ignore_unknown_options": True, "allow_interspersed_args": False}
    app.command("run", epilog=rank_commands.EPILOG, context_settings=words_of_another)(
        rank_commands.run
    )


def add_matrix_command(name: str, app: typer.Typer) -> None:
    """Add a command about a matrix alone."""
    from cpufree.cli import matrix_commands

    epilog = getattr(matrix_commands, f"{name.upper()}_EPILOG")
    app.command(name, epilog=epilog)(getattr(matrix_commands, name))


def add_predict(app: typer.Typer) -> None:
    """Add `cpufree predict`."""
    from cpufree.cli.model import predict_command

    app.command("predict", epilog=predict_command.EPILOG)(predict_command.predict)


def add_doctor(app: typer.Typer) -> None:
    """Add `cpufree doctor`."""
    from cpufree.cli import doctor_command

    app.command("doctor")(doctor_command.doctor)


def add_bench(app: typer.Typer) -> None:
    """Add `cpufree bench`."""
    from cpufree.bench.commands import app as bench

    app.add_typer(bench)


def add_model(app: typer.Typer) -> None:
    """Add `cpufree model`."""
    from cpufree.cli.model.commands import app as model

    app.add_typer(model)


def add_simulate(app: typer.Typer) -> None:
    """Add `cpufree simulate`."""
    from cpufree.cli.model import simulate_command

    app.command("simulate", epilog=simulate_command.EPILOG)(simulate_command.simulate)


def add_trace(app: typer.Typer) -> None:
    """Add `cpufree trace`."""
    from cpufree.cli.trace_commands import app as trace

    app.add_typer(trace)


# By name, in the order of the help.
COMMANDS: Mapping[str, Callable[[typer.Typer], None]] = {
    "solve": add_solve,
    "stencil": add_stencil,
    "program": add_program,
    "run": add_run,
    **{
        name: functools.partial(add_matrix_command, name)
        for name in ("info", "convert", "generate", "suite")
    },
    "predict": add_predict,
    "doctor": add_doctor,
    "bench": add_bench,
    "model": add_model,
    "simulate": add_simulate,
    "trace": add_trace,
}


def command_line(words: Sequence[str]) -> typer.Typer:
    """Return the command line with the command that these words begin with; with all, if none."""
    app = typer.Typer(
        name="cpufree",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(top)
    named = words[0] if words else ""
    for add in [COMMANDS[named]] if named in COMMANDS else COMMANDS.values():
        add(app)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code (SystemExit)."""
    make_all_printable(sys.stdout)
    with warnings.catch_warnings():
        # The environment is read in several places: once is enough.
        once = functools.cache(lambda text: tell("warning", text, "yellow"))
        warnings.showwarning = lambda message, *_: once(str(message))
        try:
            with silent_copies():
                code = run_command(arguments)
                let_go(sys.stdout)
                sys.exit(code)
        except SystemExit as end:
            # Rich ends a program with code 1 where the reader of its help has left, as `head` does.
            sys.exit(0 if isinstance(end.__context__, BrokenPipeError) else end.code)
        except Exception as error:
            code, line = end_of_rank(error, *explain(error))
            if debugging():
                traceback.print_exc()
            if line is not None:
                tell("error", line, "bold red")
            sys.exit(code)


def make_all_printable(stream: TextIO) -> None:
    """Escape what a stream cannot print: not every terminal has a ‖, not every file name is text.

    A locale of ASCII lets bytes of file names pass, and nothing else that is not ASCII.
    """
    if isinstance(stream, io.TextIOWrapper):
        passes_all = codecs.lookup(stream.encoding).name == "utf-8"
        if stream.errors == "strict" or (stream.errors == "surrogateescape" and not passes_all):
            stream.reconfigure(errors="backslashreplace")


def let_go(stream: TextIO) -> None:
    """Write what is left, to a reader that may have left."""
    try:
        stream.flush()
    except BrokenPipeError:
        from cpufree.cli.display import drop  # loads more

        drop(stream)


def run_command(arguments: list[str] | None) -> int:
    """Run a command and return its exit code; what is wrong with its words is told in a line."""
    try:
        app = command_line(sys.argv[1:] if arguments is None else arguments)
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
