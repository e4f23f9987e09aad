"""`cpufree bench`: the commands. What they do is in the other modules, loaded when needed."""

from __future__ import annotations

import contextlib
import datetime
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from .. import display
from ..errors import InvalidInputError, NotEnoughGpusError

if TYPE_CHECKING:
    from .contenders import Entry
    from .plan import Configuration

ITERATIONS = 200
RTOL = 1e-6
INTERRUPTED, NOTHING_MEASURED = 130, 4

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

  cpufree bench cg --peer "mine={python} my_worker.py" --out mine.jsonl

The same command with the same --out goes on where a run has stopped.
"""


def words(text: str, option: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the words of a list with commas; each must be known, and there once."""
    found = tuple(word.strip() for word in text.split(","))
    for word in found:
        if not word:
            raise typer.BadParameter(f"'{text}' has an empty place", param_hint=option)
        if known and word not in known:
            raise typer.BadParameter(f"'{word}': choose from {', '.join(known)}", param_hint=option)
        if found.count(word) > 1:
            raise typer.BadParameter(f"'{word}' is there twice", param_hint=option)
    return found


def parse_tuning(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Return what each contender is to be told, out of texts NAME.KEY=VALUE."""
    from ..generate.spec import parse_value

    tuning: dict[str, dict[str, Any]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        name, dot, key = place.partition(".")
        if not (equals and dot and name and key and value):
            what = f"'{text}': give NAME.KEY=VALUE, such as cpufree.threads=256"
            raise typer.BadParameter(what, param_hint="--tuning")
        tuning.setdefault(name, {})[key] = parse_value(value)
    return tuning


def find_gpus(engine: str, asked: str) -> tuple[int, ...] | None:
    """Return the GPUs to measure on, None: the CPU."""
    from ..env import Env
    from ..run import gpus

    if engine == "cpu_threads" and asked != "auto":
        raise typer.BadParameter("the engine cpu_threads uses none", param_hint="--gpus")
    preset = Env.read()
    if engine == asked == "auto":
        engine = preset.engine
    if engine == "cpu_threads":
        return None
    wanted = gpus.parse(asked if asked != "auto" else preset.gpus)
    there = gpus.find()
    if engine == wanted == "auto" and not gpus.usable(there):
        return None
    usable = gpus.require_usable()
    if isinstance(wanted, str):
        return tuple(gpu.index for gpu in usable)
    return tuple(gpu.index for gpu in gpus.select(wanted, there, "--gpus"))


def parse_pes(text: str, gpus: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the numbers of PEs: as listed; auto: powers of 2 up to the GPUs, 1 on the CPU."""
    most = len(gpus) if gpus is not None else 1
    if text == "auto":
        return tuple(1 << k for k in range(most.bit_length()) if 1 << k <= most)
    listed = words(text, "--pes")
    for word in listed:
        if not (word.isascii() and word.isdigit() and 1 <= int(word) <= 1024):
            raise typer.BadParameter(f"'{word}': give numbers such as 1,2,4", param_hint="--pes")
    found = tuple(map(int, listed))
    if gpus is not None and max(found) > most:
        raise NotEnoughGpusError(
            f"--pes {max(found)}: {most} GPUs can be used here; ask for fewer, or for --engine "
            "cpu_threads"
        )
    return found


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a run as Ctrl-C does: with its workers."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = {n: signal.signal(n, interrupt) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@app.command("cg", epilog=CG_EPILOG)
def cg_command(
    matrices: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MATRIX|suite:NAME]...",
            help="Files, gen:NAME?key=value, or suites. Default: suite:paper18-small.",
            show_default=False,
        ),
    ] = None,
    contenders: Annotated[
        str, typer.Option(metavar="LIST", help="Names, or all: those that work here.")
    ] = "all",
    peer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COMMAND", help="One more contender; may be repeated."),
    ] = None,
    methods: Annotated[str, typer.Option(metavar="LIST", help="Methods.")] = "cg,prcg,pipecg",
    pes: Annotated[
        str, typer.Option(metavar="LIST", help="Numbers of PEs; auto: powers of 2 (CPU: 1).")
    ] = "auto",
    precision: Annotated[str, typer.Option(metavar="LIST", help="double, single.")] = "double",
    pc: Annotated[str, typer.Option(metavar="LIST", help="none, jacobi.")] = "none",
    variant: Annotated[
        str, typer.Option(metavar="LIST", help="full, no-compute, no-comm.")
    ] = "full",
    iterations: Annotated[
        int | None,
        typer.Option(min=1, help=f"Fixed number of iterations. Default: {ITERATIONS}."),
    ] = None,
    rtol: Annotated[
        float | None,
        typer.Option(min=1e-300, help="Instead: to ‖r‖ ≤ rtol × ‖b‖."),
    ] = None,
    max_iterations: Annotated[
        int, typer.Option(min=1, help="With --rtol: most iterations.")
    ] = 100_000,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats; below 5 none wins.")] = 7,
    seed: Annotated[int, typer.Option(help="Of the order of the solves.")] = 1,
    engine: Annotated[str, typer.Option(help="auto, cuda_p2p, cpu_threads.")] = "auto",
    gpus: Annotated[
        str, typer.Option(metavar="LIST", help="GPUs: auto, all, or numbers such as 0,2-5.")
    ] = "auto",
    partition: Annotated[str, typer.Option(help="auto, metis, contiguous.")] = "auto",
    tuning: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME.KEY=VALUE", help="Told to a contender; may be repeated."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Longest wait for an answer.")
    ] = 600.0,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keeps matrices. Default: temporary folder.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Results. Default: bench-cg-<date>.jsonl."),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try again what failed before.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")] = False,
) -> None:
    """Measure conjugate gradients: everybody on the same systems, interleaved."""
    from .contenders import choose, find
    from .plan import VARIANTS, Configuration
    from .problems import DTYPES, PARTITIONS, cases
    from .work import METHODS

    if iterations is not None and rtol is not None:
        raise typer.BadParameter("give --iterations or --rtol, not both", param_hint="--rtol")
    for option, word, known in (
        ("--engine", engine, ("auto", "cuda_p2p", "cpu_threads")),
        ("--partition", partition, PARTITIONS),
    ):
        if word not in known:
            raise typer.BadParameter(f"'{word}': choose from {', '.join(known)}", param_hint=option)
    devices = find_gpus(engine, gpus)
    names = words(contenders, "--contenders")
    entries = choose(find(peer or ()), names, devices is not None)
    told = parse_tuning(tuning or [])
    if stray := set(told) - {entry.name for entry in entries}:
        raise typer.BadParameter(f"'{min(stray)}' is not measured", param_hint="--tuning")
    configuration = Configuration(
        cases=tuple(cases(matrices or ["suite:paper18-small"])),
        contenders=tuple(entry.name for entry in entries),
        methods=words(methods, "--methods", METHODS),
        variants=words(variant, "--variant", VARIANTS),
        pes=parse_pes(pes, devices),
        precisions=words(precision, "--precision", tuple(DTYPES)),
        preconditioners=words(pc, "--pc", ("none", "jacobi")),
        iterations=None if rtol is not None else iterations or ITERATIONS,
        rtol=RTOL if rtol is None else rtol,
        max_iterations=max_iterations,
        repeats=repeats,
        seed=seed,
        gpus=devices,
        partition=partition,
        timeout=timeout,
        tuning=told,
        peers={e.name: list(e.command) for e in entries if "cpufree.bench.worker" not in e.command},
    )
    out = out or Path(f"bench-cg-{datetime.date.today().isoformat()}.jsonl")
    measure_to(out, configuration, entries, cache, retry, quiet)


def measure_to(
    out: Path,
    configuration: Configuration,
    entries: list[Entry],
    cache: Path | None,
    retry: bool,
    quiet: bool,
) -> None:
    """Measure a configuration into a file, show what was found."""
    from ..commands import check_can_write
    from .header import make_end, make_header
    from .machine import CpuUse
    from .measure import Run
    from .problems import default_cache
    from .progress import RunProgress
    from .rates import measure_rate
    from .records import Log
    from .report import show
    from .results import Results

    check_can_write(str(out))
    notes = Console(stderr=True, highlight=False, quiet=quiet)
    command = shlex.join(["cpufree", *sys.argv[1:]])
    header = make_header(configuration, command)
    use = CpuUse()
    with contextlib.closing(Log(out, header)) as log, ended_like_ctrl_c():
        try:
            if not any(line["kind"] == "rate" for line in log.lines):
                rate = measure_rate(configuration.gpus, header["machine"]["cores"])
                log.write({"kind": "rate", **rate})
            with RunProgress(notes) as progress:
                Run(
                    configuration, entries, log, cache or default_cache(), progress, retry
                ).measure()
        except KeyboardInterrupt:
            line = f"stopped; the same command with --out {out} goes on"
            notes.print(Text(line, style="yellow"), soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None
        log.write(make_end(use))
    results = Results([out])
    show(results, display.report_console(quiet=quiet))
    line = f"written: {out}; tables and plots: cpufree bench report {out}"
    notes.print(Text(line), soft_wrap=True)
    raise typer.Exit(0 if results.series else NOTHING_MEASURED)


@app.command("report", epilog="[bold]Example[/bold]\n\n  cpufree bench report a.jsonl --out report")
def report_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Results of one machine.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write. Default: beside the first FILE."),
    ] = None,
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw PNGs too.")] = True,
) -> None:
    """Write tables (Markdown) and plots (PNG) of results."""
    from .report import write_report
    from .results import Results

    results = Results(files)
    if not results.series:
        raise InvalidInputError(f"'{files[0]}' holds no measurements yet")
    folder = out or files[0].with_suffix("")
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"cannot write to '{folder}': it is no directory")
    for path in write_report(results, folder, plots):
        display.report_console().print(Text(str(path)), soft_wrap=True)


@app.command("contenders")
def contenders_command(
    peer: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COMMAND", help="One more contender.")
    ] = None,
) -> None:
    """List the contenders, and why some cannot be measured here."""
    from .contenders import find

    rows = [
        (entry.name, entry.family, ", ".join(entry.methods), entry.why_not or "can be tried")
        for entry in find(peer or ()).values()
    ]
    heads = ("name", "kind", "methods", "here")
    display.report_console().print(display.columns(heads, rows, "Contenders"))
