"""`cpufree bench`: the commands. What they do is in the other modules, loaded when needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cpufree.bench.measuring import Measuring, with_measuring
from cpufree.bench.options import Pes, Quiet, find_gpus, known_word, number, parse_pes, words
from cpufree.bench.stencil.commands import STENCIL_EPILOG, stencil_command
from cpufree.bench.time.command import EPILOG as TIME_EPILOG
from cpufree.bench.time.command import time_command
from cpufree.bench.triggered.command import EPILOG as TRIGGERED_EPILOG
from cpufree.bench.triggered.command import triggered_command
from cpufree.cli import display
from cpufree.errors import InvalidInputError
from cpufree.text import counted

ITERATIONS = 200
RTOL = 1e-6
WRONG_INPUT = 3
DEFAULT_SUITE = "suite:paper18-small"

# Options of the commands about systems.
Matrices = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MATRIX|suite:NAME[/MATRIX]|files:FOLDER]...",
        help="Files, gen:NAME?key=value, suites, suite:NAME/MATRIX of one, or files:FOLDER, a "
        "folder or a pattern. "
        f"Default: {DEFAULT_SUITE}.",
        show_default=False,
    ),
]
Precisions = Annotated[str, typer.Option(metavar="LIST", help="double, single.")]
PartitionName = Annotated[str, typer.Option("--partition", help="auto, metis, contiguous, rows.")]
Cache = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Keeps matrices. Default: temporary folder.")
]

app = typer.Typer(
    name="bench",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Measure cpufree next to host-driven baselines and other solvers.",
)

CG_EPILOG = """
[bold]Examples[/bold]

  cpufree bench cg

  cpufree bench cg suite:heart A.mtx "gen:poisson3d?nx=60,ny=60,nz=60" --pes 1,2 --rtol 1e-6

  cpufree bench cg suite:paper18 --contenders cpufree,nccl,mpi --variant full,no-comm

  cpufree bench cg files:matrices --pc jacobi --rtol 1e-6

  cpufree bench cg --peer "mine={python} my_worker.py" --out mine.jsonl

The same command with the same --out goes on where a run has stopped.
"""


@app.command("cg", epilog=CG_EPILOG)
@with_measuring
def cg_command(
    measuring: Measuring,
    matrices: Matrices = None,
    methods: Annotated[str, typer.Option(metavar="LIST", help="Methods.")] = "cg,prcg,pipecg",
    precision: Precisions = "double",
    pc: Annotated[str, typer.Option(metavar="LIST", help="none, jacobi.")] = "none",
    iterations: Annotated[
        int | None,
        number("--iterations", f"Fixed number of iterations. Default: {ITERATIONS}."),
    ] = None,
    rtol: Annotated[
        float | None,
        number("--rtol", "Instead: to ‖r‖ ≤ rtol × ‖b‖.", kind="number", least=1e-300, form="TOL"),
    ] = None,
    max_iterations: Annotated[
        int, number("--max-iterations", "With --rtol: most iterations.")
    ] = 100_000,
    partition: PartitionName = "auto",
) -> None:
    """Measure conjugate gradients: everybody on the same systems, interleaved."""
    from cpufree.bench.cg.configuration import Configuration
    from cpufree.bench.cg.measure import Run
    from cpufree.bench.cg.problems import DTYPES, cases
    from cpufree.bench.cg.report import show
    from cpufree.bench.cg.results import Results
    from cpufree.bench.contenders.registry import find
    from cpufree.bench.core.work import METHODS
    from cpufree.partition.methods import METHODS as PARTITIONS

    if iterations is not None and rtol is not None:
        raise typer.BadParameter("give --iterations or --rtol, not both", param_hint="--rtol")
    known_word(partition, "--partition", PARTITIONS)
    devices = measuring.devices()
    entries = measuring.choose(find, devices is not None)
    configuration = Configuration(
        cases=tuple(cases(matrices or [DEFAULT_SUITE])),
        methods=words(methods, "--methods", METHODS),
        precisions=words(precision, "--precision", tuple(DTYPES)),
        preconditioners=words(pc, "--pc", ("none", "jacobi")),
        iterations=None if rtol is not None else iterations or ITERATIONS,
        rtol=RTOL if rtol is None else rtol,
        max_iterations=max_iterations,
        partition=partition,
        **measuring.plan(entries, devices),
    )
    if rtol is not None and set(configuration.variants) != {"full"}:
        what = "variants solve nothing and never reach --rtol: give --iterations"
        raise typer.BadParameter(what, param_hint="--variant")
    out = measuring.measure("cg", configuration, entries, Run)
    results = Results([out])
    show(results, display.report_console(quiet=measuring.quiet))
    measuring.end(out, bool(results.series))


@app.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
    epilog="[bold]Examples[/bold]\n\n  cpufree bench run bench/columns.py --pes 1 --columns 2 4\n\n"
    "  cpufree bench run bench/columns.py --help",
)
def run_command(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Declares a benchmark as BENCH.")],
) -> None:
    """Measure the benchmark that a file declares; its options are those of its axes."""
    from cpufree.bench.declared.command import main_of

    raise typer.Exit(main_of(file, context.args))


app.command("stencil", epilog=STENCIL_EPILOG)(stencil_command)
app.command("time", epilog=TIME_EPILOG)(time_command)
app.command("triggered", epilog=TRIGGERED_EPILOG)(triggered_command)


PREPARE_EPILOG = """
[bold]Example[/bold]

  cpufree bench prepare suite:paper18 --pes 1,2,4,8 --cache systems
"""


@app.command("prepare", epilog=PREPARE_EPILOG)
def prepare_command(
    matrices: Matrices = None,
    pes: Pes = "auto",
    precision: Precisions = "double",
    partition: PartitionName = "auto",
    cache: Cache = None,
    jobs: Annotated[
        int | None,
        number("--jobs", "Systems at a time. Default: what cores and memory allow."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make and partition systems for `bench cg` beforehand, several at a time."""
    from cpufree.bench.cg.prepare import jobs_here, prepare
    from cpufree.bench.cg.problems import DTYPES, cases, default_cache
    from cpufree.bench.core.machine import describe_machine
    from cpufree.partition.methods import METHODS as PARTITIONS

    known_word(partition, "--partition", PARTITIONS)
    machine = describe_machine()
    made = prepare(
        cases(matrices or [DEFAULT_SUITE]),
        words(precision, "--precision", tuple(DTYPES)),
        parse_pes(pes, find_gpus("auto", "auto")),
        partition,
        cache or default_cache(),
        jobs or jobs_here(machine["cores"], machine["memory_bytes"]),
    )
    console, errors = display.report_console(quiet=quiet), display.report_console(stderr=True)
    failed = there = 0
    for one in made:
        if one.error:
            failed += 1
            errors.print(Text(f"{one.name}, {one.precision}: {one.error}", style="red"))
        else:
            there += 1
            what = display.seconds(one.seconds) if one.new else "is there already"
            console.print(Text(f"{one.name}, {one.precision}: {what}"), soft_wrap=True)
    if quiet:
        display.report_console().print(Text(f"{counted(there, 'system')} ready, {failed} failed"))
    raise typer.Exit(WRONG_INPUT if failed else 0)


@app.command("report", epilog="[bold]Example[/bold]\n\n  cpufree bench report a.jsonl --out report")
def report_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Results of one machine.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Where to write. Default: beside the first FILE."
        ),
    ] = None,
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw PNGs too.")] = True,
) -> None:
    """Write tables (Markdown) and plots (PNG) of results."""
    from cpufree.bench.cg import report
    from cpufree.bench.cg.results import Results
    from cpufree.bench.core import records
    from cpufree.bench.stencil import report as stencil_report
    from cpufree.bench.stencil.results import StencilResults

    folder = out or files[0].with_suffix("")
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"cannot write to '{folder}': it is no directory")
    benchmark = records.read(files[0])[0][0]["benchmark"]
    if benchmark == "time":
        raise InvalidInputError(
            f"'{files[0]}' is of cpufree bench time: the same command with --out {files[0]} shows "
            "its table"
        )
    stencil = benchmark == "stencil"
    results = StencilResults(files) if stencil else Results(files)
    if not results.series:
        raise InvalidInputError(f"'{files[0]}' holds no measurements yet")
    write = stencil_report.write_report if stencil else report.write_report
    for path in write(results, folder, plots):  # type: ignore[arg-type]
        display.report_console().print(Text(str(path)), soft_wrap=True)


@app.command("contenders")
def contenders_command(
    peer: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COMMAND", help="One more contender.")
    ] = None,
) -> None:
    """List the contenders, and why some cannot be measured here."""
    from cpufree.bench.contenders import registry as contenders
    from cpufree.bench.contenders.roles import SOLVERS, STENCILS
    from cpufree.bench.stencil import contenders as of_stencils

    heads = ("name", "kind", "methods", "initiated, triggered, controlled", "here")
    both = (("cg", contenders.find, SOLVERS), ("stencil", of_stencils.find, STENCILS))
    for benchmark, find, roles in both:
        title = f"bench {benchmark}"
        rows = [
            (
                *(entry.name, entry.family, ", ".join(entry.methods)),
                str(roles.get(entry.name, "not known")),
                entry.why_not or "can be tried",
            )
            for entry in find(peer or ()).values()
        ]
        display.report_console().print(display.columns(heads, rows, f"Contenders of {title}"))
