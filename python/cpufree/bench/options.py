"""What the commands of `cpufree bench` share: options, and the run into a file."""

from __future__ import annotations

import contextlib
import datetime
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..errors import NotEnoughGpusError

if TYPE_CHECKING:
    from .contenders import Entry
    from .plan import Plan

INTERRUPTED, NOTHING_MEASURED = 130, 4

# Options of all commands that measure.
Contenders = Annotated[
    str, typer.Option(metavar="LIST", help="Names, or all: those that work here.")
]
Peers = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=COMMAND", help="One more contender; may be repeated."),
]
Variants = Annotated[str, typer.Option(metavar="LIST", help="full, no-compute, no-comm.")]
Repeats = Annotated[int, typer.Option(min=1, help="Repeats; below 5 none wins.")]
Seed = Annotated[int, typer.Option(help="Of the order of the runs.")]
EngineName = Annotated[str, typer.Option(help="auto, cuda_p2p, cpu_threads.")]
Gpus = Annotated[
    str, typer.Option(metavar="LIST", help="GPUs: auto, all, or numbers such as 0,2-5.")
]
Tuning = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME.KEY=VALUE", help="Told to a contender; may be repeated."),
]
Timeout = Annotated[
    float, typer.Option(min=1, metavar="SECONDS", help="Longest wait for an answer.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Try again what failed before.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")]


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


def known_word(word: str, option: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is not known."""
    if word not in known:
        raise typer.BadParameter(f"'{word}': choose from {', '.join(known)}", param_hint=option)


def parse_tuning(texts: list[str], entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
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
    if stray := set(tuning) - {entry.name for entry in entries}:
        raise typer.BadParameter(f"'{min(stray)}' is not measured", param_hint="--tuning")
    return tuning


def commands_of_peers(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Return the commands of contenders that are not built in."""
    return {
        entry.name: list(entry.command)
        for entry in entries
        if not any(word.startswith("cpufree.bench.") for word in entry.command)
    }


def default_out(benchmark: str) -> Path:
    """Return the file of results of a benchmark that was given none."""
    return Path(f"bench-{benchmark}-{datetime.date.today().isoformat()}.jsonl")


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


def measure_to(
    benchmark: str,
    out: Path,
    configuration: Plan,
    entries: list[Entry],
    make_run: Callable[..., Any],
    cache: Path | None,
    retry: bool,
    quiet: bool,
) -> Callable[[bool], None]:
    """Measure a configuration into a file.

    `make_run(configuration, entries, log, cache, watch, retry)` has `measure`. Returns a function
    that ends the command when results have been shown; it is told whether there are any.
    """
    from ..commands import check_can_write
    from .header import make_end, make_header
    from .machine import CpuUse
    from .problems import default_cache
    from .progress import RunProgress
    from .rates import measure_rate
    from .records import Log

    check_can_write(str(out))
    notes = Console(stderr=True, highlight=False, quiet=quiet)
    header = make_header(benchmark, configuration, shlex.join(["cpufree", *sys.argv[1:]]))
    use = CpuUse()
    with contextlib.closing(Log(out, header)) as log, ended_like_ctrl_c():
        for note in log.notes:
            notes.print(Text(note, style="yellow"), soft_wrap=True)
        try:
            if not any(line["kind"] == "rate" for line in log.lines):
                rate = measure_rate(configuration.gpus, header["machine"]["cores"])
                log.write({"kind": "rate", **rate})
            with RunProgress(notes) as progress:
                place = cache or default_cache()
                make_run(configuration, entries, log, place, progress, retry).measure()
        except KeyboardInterrupt:
            line = f"stopped; the same command with --out {out} goes on"
            notes.print(Text(line, style="yellow"), soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None
        log.write(make_end(use))

    def end(found: bool) -> None:
        line = f"written: {out}; tables and plots: cpufree bench report {out}"
        notes.print(Text(line), soft_wrap=True)
        raise typer.Exit(0 if found else NOTHING_MEASURED)

    return end
