"""Tables and sentences that a command writes into pages, each between two marks."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Place: TypeAlias = "str | tuple[str, str]"
Tables: TypeAlias = Callable[[], Mapping[Any, str]]


def marks(name: str) -> tuple[str, str]:
    """Return what begins and what ends a table in the page."""
    return f"<!-- table: {name} -->\n", f"<!-- end of table: {name} -->"


def markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def with_tables(text: str, tables: Mapping[Place, str]) -> str:
    """Return the text of a page with its tables as they are to be.

    Each has a name, or the two marks between which it stands.

    Raises:
        ValueError: a table has no place in it.
    """
    for name, table in tables.items():
        begin, end = marks(name) if isinstance(name, str) else name
        places = re.findall(f"{re.escape(begin)}.*?{re.escape(end)}", text, re.DOTALL)
        if len(places) != 1:
            raise ValueError(f"table '{name}' has {len(places)} places in the page, not one")
        text = text.replace(places[0], f"{begin}{table}{end}")
    return text


def run(program: str, pages: Mapping[Path, Tables]) -> int:
    """Write the tables of pages, or say which are out of date; return the exit status."""
    parser = argparse.ArgumentParser(prog=program)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--write", action="store_true", help="write the tables")
    how.add_argument("--check", action="store_true", help="fail where they are out of date")
    write = parser.parse_args().write
    stale = False
    for page, tables in pages.items():
        written = page.read_text(encoding="utf-8")
        current = with_tables(written, tables())
        if write:
            page.write_text(current, encoding="utf-8")
        elif written != current:
            print(f"{page.name} is out of date: run {program} --write", file=sys.stderr)
            stale = True
    return int(stale)
