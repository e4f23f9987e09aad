"""A run's file while it is written: header and notes before, the last line after."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from cpufree.bench.core.header import Configuration, make_end, make_header
from cpufree.bench.core.machine import CpuUse, source_root
from cpufree.bench.core.records import Log
from cpufree.bench.options import ended_like_ctrl_c
from cpufree.cli.commands import check_can_write

INTERRUPTED = 130


@contextlib.contextmanager
def recording(
    out: Path, benchmark: str, configuration: Configuration, notes: Console
) -> Iterator[Log]:
    """Give the file of a run, begun or gone on with.

    Raises typer.Exit where Ctrl-C, or a signal that is as good, has stopped the run.
    """
    check_can_write(str(out))
    header, use = make_header(benchmark, configuration, _command()), CpuUse()
    with contextlib.closing(Log(out, header)) as log, ended_like_ctrl_c():
        for note in log.notes:
            notes.print(Text(note, style="yellow"), soft_wrap=True)
        try:
            yield log
        except KeyboardInterrupt:
            line = f"stopped; the same command with --out {out} goes on"
            notes.print(Text(line, style="yellow"), soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None
        log.write(make_end(use))


def _command() -> str:
    """Return how the program was called, without folders of this machine."""
    first = Path(sys.argv[0])
    ours = not first.suffix or first.name == "__main__.py"
    return shlex.join([*(["cpufree"] if ours else ["python", _short(first)]),
                       *map(_short, sys.argv[1:])])  # fmt: skip


def _short(word: str | Path) -> str:
    path, root = Path(word), source_root()
    if not path.is_absolute():
        return str(word)
    inside = root is not None and path.is_relative_to(root)
    return str(path.relative_to(root)) if root and inside else path.name
