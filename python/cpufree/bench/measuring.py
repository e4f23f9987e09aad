"""The options that all commands that measure have, and what these do alike."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.text import Text

from cpufree.bench.options import (
    Pes,
    Quiet,
    commands_of_peers,
    default_out,
    find_gpus,
    known_word,
    number,
    parse_pes,
    parse_tuning,
    words,
)
from cpufree.cli.option_types import with_parameters

if TYPE_CHECKING:
    from cpufree.bench.core.entry import Entry
    from cpufree.bench.core.plan import Plan

NOTHING_MEASURED = 4


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """The options, as they are given."""

    contenders: Annotated[
        str, typer.Option(metavar="LIST", help="Names, or all: those that work here.")
    ] = "all"
    peer: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COMMAND", help="One more contender; may be repeated."),
    ] = None
    pes: Pes = "auto"
    variant: Annotated[str, typer.Option(metavar="LIST", help="full, no-compute, no-comm.")] = (
        "full"
    )
    repeats: Annotated[int, number("--repeats", "Repeats; below 5 none wins.")] = 7
    seed: Annotated[int, number("--seed", "Of the order of the runs.", least=0)] = 1
    engine: Annotated[str, typer.Option(help="auto, cuda_p2p, cpu_threads.")] = "auto"
    gpus: Annotated[
        str, typer.Option(metavar="LIST", help="GPUs: auto, all, or numbers such as 0,2-5.")
    ] = "auto"
    tuning: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME.KEY=VALUE", help="Passed to a contender; may be repeated."),
    ] = None
    timeout: Annotated[
        float,
        number("--timeout", "Longest wait for an answer.", kind="number", form="SECONDS"),
    ] = 600.0
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keeps what is measured. Default: temporary folder."),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Results. Default: bench-<what>-<date>.jsonl."
        ),
    ] = None
    retry: Annotated[bool, typer.Option("--retry", help="Try again what failed before.")] = False
    quiet: Quiet = False

    def devices(self) -> tuple[int, ...] | None:
        """Return the GPUs to measure on, None: the CPU."""
        known_word(self.engine, "--engine", ("auto", "cuda_p2p", "cpu_threads"))
        return find_gpus(self.engine, self.gpus)

    def choose(
        self, find: Callable[[Sequence[str]], dict[str, Entry]], on_gpus: bool
    ) -> list[Entry]:
        """Return the contenders of those that `find` returns for the peers."""
        from cpufree.bench.core.entry import choose

        names = words(self.contenders, "--contenders")
        return choose(find(self.peer or ()), names, on_gpus)

    def plan(self, entries: Sequence[Entry], devices: tuple[int, ...] | None) -> dict[str, Any]:
        """Return what the configurations of all benchmarks have of these options."""
        from cpufree.bench.core.plan import VARIANTS

        return {
            "contenders": tuple(entry.name for entry in entries),
            "variants": words(self.variant, "--variant", VARIANTS),
            "pes": parse_pes(self.pes, devices),
            "repeats": self.repeats,
            "seed": self.seed,
            "gpus": devices,
            "timeout": self.timeout,
            "tuning": parse_tuning(self.tuning or [], entries),
            "peers": commands_of_peers(entries),
        }

    def measure(
        self,
        benchmark: str,
        configuration: Plan,
        entries: Sequence[Entry],
        make_run: Callable[..., Any],
    ) -> Path:
        """Measure a configuration into a file; return its path.

        `make_run(configuration, entries, log, cache, watch, retry)` has `measure`.
        """
        from cpufree.bench.cg.problems import default_cache
        from cpufree.bench.core.progress import RunProgress
        from cpufree.bench.core.rates import measure_rate
        from cpufree.bench.core.recording import recording

        out, place = self.out or default_out(benchmark), self.cache or default_cache()
        notes = self._notes()
        with recording(out, benchmark, configuration, notes) as log:
            if not any(line["kind"] == "rate" for line in log.lines):
                rate = measure_rate(configuration.gpus, log.lines[0]["machine"]["cores"])
                log.write({"kind": "rate", **rate})
            with RunProgress(notes) as progress:
                run = make_run(configuration, entries, log, place, progress, self.retry)
                run.measure()
        return out

    def end(self, out: Path, found: bool) -> None:
        """End the command when results have been shown; `found`: there are any."""
        line = f"written: {out}; tables and plots: cpufree bench report {out}"
        Console(stderr=True, highlight=False).print(Text(line), soft_wrap=True)
        raise typer.Exit(0 if found else NOTHING_MEASURED)

    def _notes(self) -> Console:
        return Console(stderr=True, highlight=False, quiet=self.quiet)


def with_measuring(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has options of its own for what it takes as `measuring`."""
    shared, hints = dataclasses.fields(Measuring), get_type_hints(Measuring, include_extras=True)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    added = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in shared
    ]

    def call(**given: Any) -> None:
        measuring = Measuring(**{field.name: given.pop(field.name) for field in shared})
        command(**given, measuring=measuring)

    return with_parameters(command, "measuring", added, call)
