"""What the options of `cpufree bench` mean."""

from __future__ import annotations

import contextlib
import datetime
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cpufree.cli.option_types import as_option
from cpufree.errors import NotEnoughGpusError
from cpufree.options import QUIET, Option
from cpufree.text import meant

if TYPE_CHECKING:
    from cpufree.bench.core.entry import Entry

# Options of several commands.
Pes = Annotated[
    str, typer.Option(metavar="LIST", help="Numbers of PEs; auto: powers of 2 (CPU: 1).")
]
Quiet = Annotated[bool, as_option(QUIET)]


def number(flag: str, text: str, *, kind: str = "count", least: float = 1, form: str = "N") -> Any:
    """Return an option that takes a number, a whole one unless `kind` is "number"."""
    name = flag.removeprefix("--").replace("-", "_")
    return as_option(Option(name, kind, None, text, least=least, form=form))


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
    """Return the settings of each contender, out of texts NAME.KEY=VALUE."""
    from cpufree.generate.spec import parse_value

    tuning: dict[str, dict[str, Any]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        name, dot, key = place.partition(".")
        if not (equals and dot and name and key and value):
            what = f"'{text}': give NAME.KEY=VALUE, such as cpufree.threads=256"
            raise typer.BadParameter(what, param_hint="--tuning")
        tuning.setdefault(name, {})[key] = parse_value(value)
    known = {entry.name: entry.tuning for entry in entries}
    if stray := set(tuning) - known.keys():
        raise typer.BadParameter(f"'{min(stray)}' is not measured", param_hint="--tuning")
    for name, settings in tuning.items():
        for key in settings:
            _check_tuning(name, key, known[name])
    return tuning


def _check_tuning(name: str, key: str, known: tuple[str, ...] | None) -> None:
    """Refuse what is no setting of a contender; `known` is None where only it knows that."""
    if known is None or key in known:
        return
    takes = ", ".join(known) or "nothing"
    what = f"{name} does not know '{key}'{meant(key, known)}: it takes {takes}"
    raise typer.BadParameter(what, param_hint="--tuning")


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
    from cpufree.engines import gpus
    from cpufree.env import Env

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
