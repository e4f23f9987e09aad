"""What measured matrices are called, and which suite they are of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cpufree.errors import InvalidInputError
from cpufree.generate.spec import format_spec, parse_spec
from cpufree.generate.suites import SuiteEntry, suite, suite_names

# Records used to name look-alikes, which had no jitter, as the matrices that they imitate.
_CALLED = {
    entry.name.replace("-like", "", 1): entry
    for name in ("structured", "structured-small")
    for entry in suite(name)
}


@dataclass(frozen=True)
class Part:
    """Which matrices of a suite there are.

    Attributes:
        suite: its name; "" for those that are of no suite.
        count: of the matrices.
        size: of the suite; of those of no suite, `count`.
    """

    suite: str
    count: int
    size: int


def shown_name(name: str, source: str, size: tuple[int, int] | None = None) -> str:
    """Return what a measured matrix is called: a look-alike by a name that says so.

    Args:
        name: as it stands in a record, which may be older than the names of look-alikes.
        source: where the matrix came from: `gen:NAME?key=value`, or a file.
        size: its rows and nonzeros, where they are known.

    Example:
        >>> shown_name("hood", "gen:plate_hex?ex=236,ey=158,holes=50")
        'hood-like'
        >>> shown_name("hood", "/matrices/hood.mtx")
        'hood'
    """
    entry = _CALLED.get(name)
    return entry.name if entry and _is_made(source, entry, size) else name


def made_by(name: str, source: str, size: tuple[int, int] | None = None) -> str:
    """Return the `gen:` text that made a measured matrix, else the source; as `shown_name`."""
    entry = _CALLED.get(name)
    made = entry and not source.startswith("gen:") and _is_made(source, entry, size)
    return f"gen:{entry.spec}" if entry and made else source


def _is_made(source: str, entry: SuiteEntry, size: tuple[int, int] | None) -> bool:
    """Return whether a matrix that has an old name of an entry is generated.

    `cpufree suite --out` used to write files such as hood.npz; originals come in other formats.
    """
    if source.startswith("gen:"):
        return True
    return source.endswith(".npz") and size in (None, (entry.rows, entry.nnz))


def entry_of(source: str, suites: Iterable[str] | None = None) -> SuiteEntry | None:
    """Return the entry of the suites that a source makes, None where it is of none."""
    spec = _canonical(source)
    for name in suite_names() if suites is None else suites:
        for entry in suite(name):
            if entry.spec == spec:
                return entry
    return None


def parts_of(sources: Iterable[str]) -> list[Part]:
    """Return of which suites the matrices of a run are, the suite with most of them first.

    A matrix counts once, for the suite with more of the matrices; what is of no suite comes last.
    """
    rest = {_canonical(source) for source in sources}
    found = []
    while rest:
        specs = {name: {entry.spec for entry in suite(name)} for name in suite_names()}
        best = max(specs, key=lambda name: len(specs[name] & rest))  # the first of equals
        mine = specs[best] & rest
        if not mine:
            found.append(Part("", len(rest), len(rest)))
            break
        found.append(Part(best, len(mine), len(specs[best])))
        rest -= mine
    return found


def _canonical(source: str) -> str:
    """Return a source as entries of suites write it: without `gen:`, numbers as Python does."""
    if not source.startswith("gen:"):
        return source
    try:
        return format_spec(*parse_spec(source))
    except InvalidInputError:
        return source  # of a program that knew more generators, or wrote them otherwise
