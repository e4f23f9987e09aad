"""Contenders as the harness knows them, and the choice among them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cpufree.bench.core.work import METHODS
from cpufree.errors import InvalidInputError, UnsupportedError

OURS, BASELINE, PEER = "cpufree", "baseline", "peer"


@dataclass(frozen=True)
class Entry:
    """A contender as the harness knows it."""

    name: str
    family: str
    """OURS, BASELINE or PEER."""
    command: tuple[str, ...]
    """{pes} and {python} are replaced."""
    methods: tuple[str, ...] = METHODS
    why_not: str = ""
    """Why it cannot be started here; "" where it can be tried."""
    cpu_only: bool = False
    """It does not use GPUs."""
    folder: Path | None = None
    """Where the command is run; None: in the working directory."""
    tuning: tuple[str, ...] | None = None
    """Settings that it takes by --tuning; None: only itself knows."""

    @property
    def by_pes(self) -> bool:
        """Whether its process is made for a number of PEs."""
        return any("{pes}" in word for word in self.command)

    def command_for(self, pes: int) -> list[str]:
        """Return the command for N PEs."""
        changes = {"{pes}": str(pes), "{python}": sys.executable}
        words = list(self.command)
        for mark, text in changes.items():
            words = [word.replace(mark, text) for word in words]
        return words


def parse_peer(text: str) -> Entry:
    """Return the peer of a text NAME=COMMAND; InvalidInputError where it is none."""
    name, equals, command = text.partition("=")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise InvalidInputError(f"--peer {text!r}: {error}") from None
    if not equals or not name.strip().isidentifier() or not words:
        raise InvalidInputError(
            f"--peer {text!r}: give NAME=COMMAND, such as "
            '"petsc=mpirun -n {pes} {python} bench/peers/petsc_worker.py"'
        )
    return Entry(name.strip(), PEER, words)


def choose(there: dict[str, Entry], wanted: Sequence[str], on_gpus: bool) -> list[Entry]:
    """Return the contenders of these names, "all" being those that can be started here.

    Who uses no GPU is not among all where GPUs are measured, and baselines, which need them, are
    not where the CPU is.

    Raises InvalidInputError for a name that is not known, UnsupportedError for one asked for by
    name that cannot be started.
    """
    chosen: dict[str, Entry] = {}
    for name in wanted:
        if name == "all":
            chosen |= {
                key: entry
                for key, entry in there.items()
                if not entry.why_not
                and not (entry.cpu_only if on_gpus else entry.family == BASELINE)
            }
        elif name not in there:
            raise InvalidInputError(f"there is no contender {name!r}; there are {', '.join(there)}")
        elif there[name].why_not:
            raise UnsupportedError(f"contender '{name}' is not available: {there[name].why_not}")
        else:
            chosen[name] = there[name]
    return list(chosen.values())
