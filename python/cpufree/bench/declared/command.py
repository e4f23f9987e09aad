"""The command of a declared benchmark: `cpufree bench run FILE`, or the file itself."""

from __future__ import annotations

import argparse
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from cpufree.bench.core.recording import recording
from cpufree.bench.core.records import Line, read
from cpufree.bench.declared import table
from cpufree.bench.declared.declaration import Bench, Case
from cpufree.bench.declared.measure import Chosen, Measurement, measurements
from cpufree.bench.options import default_out
from cpufree.cli import display
from cpufree.cli.commands import explain
from cpufree.engines import gpus
from cpufree.errors import InvalidInputError

FAILED, NOTHING_MEASURED = 1, 4


def parser_of(bench: Bench, about: str) -> argparse.ArgumentParser:
    """Return the options: those of all benchmarks, and one for each axis."""
    parser = argparse.ArgumentParser(
        prog=f"cpufree bench run {bench.name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, axis in bench.axes.items():
        several = ", ".join(map(str, axis)).replace("%", "%%")
        parser.add_argument(f"--{name}", nargs="+", metavar="VALUE", help=f"of: {several}")
    parser.add_argument("--contenders", nargs="+", default=[], metavar="NAME", help="not all")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it work?")
    parser.add_argument("--repeats", type=int, default=bench.repeats, help="rounds (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the random order")
    parser.add_argument("--seconds", type=float, help="begin no case after N")
    parser.add_argument("--out", type=Path, help="the record, JSON lines")
    parser.add_argument("--show", type=Path, metavar="RECORD", help="print a record's table")
    parser.add_argument("--dry-run", action="store_true", help="list the cases, measure nothing")
    return parser


def main(bench: Bench, about: str, words: Sequence[str] | None = None) -> int:
    """Measure a benchmark as the options say; return the exit status."""
    given = parser_of(bench, about).parse_args(words)
    asked = {name: getattr(given, name) or [] for name in bench.axes}
    try:
        if given.show:
            _show(bench, read(given.show, (bench.name,))[0])
            return 0
        used = _gpus_of(asked.get("engine", []))
        axes = bench.chosen(asked, on_gpus=used is not None, quick=given.quick)
        cases = bench.cases(axes, given.contenders)
        if given.dry_run:
            print("\n".join(case.name for case in cases))
            return 0
        chosen = Chosen(
            axes={name: list(values) for name, values in axes.items()},
            contenders=tuple(given.contenders),
            repeats=given.repeats,
            seed=given.seed,
            gpus=used,
        )
        return _run(bench, chosen, cases, given)
    except typer.Exit as ended:
        return int(ended.exit_code)
    except Exception as error:
        status, text = explain(error)
        Console(stderr=True, highlight=False).print(Text(f"error: {text}", style="red"))
        return status


def main_of(file: Path, words: Sequence[str]) -> int:
    """Measure the benchmark that a file declares, as its own command would.

    Raises:
        InvalidInputError: there is no such file, or none that declares one.
    """
    if not file.is_file():
        raise InvalidInputError(f"'{file}': no such file; those of the project are in bench/")
    sys.path.insert(0, str(file.parent))
    names = runpy.run_path(str(file))
    if not isinstance(bench := names.get("BENCH"), Bench):
        raise InvalidInputError(f"'{file}' declares no BENCH (docs/benchmarking.md has an example)")
    return main(bench, names.get("__doc__") or "", words)


def _gpus_of(engine: Sequence[str]) -> tuple[int, ...] | None:
    """Return the GPUs that can be used, None where there is none or the engine uses none."""
    if any(name.startswith("cpu") for name in engine):
        return None
    return tuple(gpu.index for gpu in gpus.usable(gpus.find())) or None


def measure_into(
    out: Path,
    bench: Bench,
    chosen: Chosen,
    cases: Sequence[Case],
    notes: Console,
    seconds: float | None = None,
) -> list[Line]:
    """Measure cases into a record, or go on with it; return its lines."""

    def tell(what: str) -> None:
        notes.print(Text(f"  {what}", style="dim"), soft_wrap=True)

    with recording(out, bench.name, chosen, notes) as log:
        left = Measurement(bench, chosen, log, tell, seconds).measure(cases)
    for case in left:
        tell(f"left out for want of time: {case.name}")
    return log.lines


def _run(bench: Bench, chosen: Chosen, cases: Sequence[Case], given: Any) -> int:
    notes = Console(stderr=True, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "quick.jsonl" if given.quick else default_out(bench.name)
        out = given.out or scratch
        lines = measure_into(out, bench, chosen, cases, notes, given.seconds)
    _show(bench, lines)
    if out != scratch or not given.quick:
        notes.print(Text(f"  written: {out}", style="dim"), soft_wrap=True)
    kinds = {line["kind"] for line in lines}
    if bench.strict and "failure" in kinds:
        return FAILED
    return 0 if "measurement" in kinds else NOTHING_MEASURED


def _show(bench: Bench, lines: Sequence[Line] | Sequence[Mapping[str, Any]]) -> None:
    console = display.report_console()
    console.print(display.columns(table.heads(bench), table.rows(bench, lines), bench.name))
    for line in (*table.means(bench, lines), *bench.closing(dict(measurements(lines)))):
        console.print(Text(line), soft_wrap=True)
