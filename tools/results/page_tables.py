"""Tables and sentences that a command writes into pages, each between two marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Tables: TypeAlias = Callable[[], Mapping[Any, str]]
"""Tables by name, or by the two marks between which they stand."""


LONGEST_FIGURE = 60  # characters between two words of a sentence


def marks(name: str) -> tuple[str, str]:
    """Return what begins and what ends a table in the page."""
    return f"<!-- table: {name} -->\n", f"<!-- end of table: {name} -->"


def markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def with_tables(text: str, tables: Mapping[Any, str]) -> str:
    """Return the text of a page with its tables as they are to be.

    Each has a name, or the two marks between which it stands: comments, or the words of a sentence
    before and after a figure, which may be in lines of any length.

    Raises:
        ValueError: a table has no place in it.
    """
    for name, table in tables.items():
        both = marks(name) if isinstance(name, str) else name
        begin, end = map(_pattern, both)
        # A figure is short: words that occur elsewhere, too, are no place of it.
        within = ".*?" if "<!--" in both[0] else f".{{0,{LONGEST_FIGURE}}}?"
        places = list(re.finditer(f"({begin}){within}({end})", text, re.DOTALL))
        if len(places) != 1:
            raise ValueError(f"table '{name}' has {len(places)} places in the page, not one")
        (place,) = places
        text = text[: place.end(1)] + table + text[place.start(2) :]
    return text


def _pattern(mark: str) -> str:
    """Return what finds a mark; between words of a sentence a line may end."""
    pattern = re.escape(mark)
    return pattern if "<!--" in mark else re.sub(r"(\\ )+", lambda _: r"\s+", pattern)
