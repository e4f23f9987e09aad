"""Command line of `python -m tools.results`: everything in pages that is made, and by whom."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tools.results import option_tables, page_figures, simulate_tables, trace_picture, triggered
from tools.results.page import page
from tools.results.page_tables import Tables, with_tables
from tools.results.records import ROOT
from tools.results.timeline import PICTURE, description, draw

Maker = Callable[[str], str]
"""Returns the text of a page as it will be, from what it is."""


def _whole(text: str) -> str:
    return page()


def _between_marks(tables: Tables, text: str) -> str:
    return with_tables(text, tables())


MADE: dict[Path, Maker] = {
    ROOT / "docs/results.md": _whole,
    ROOT / "docs/cli.md": option_tables.with_tables,
    ROOT / "docs/triggered.md": triggered.page,
    ROOT / "docs/simulate.md": partial(_between_marks, simulate_tables.tables),
    **{file: partial(_between_marks, tables) for file, tables in page_figures.PAGES.items()},
}


def stale(made: Mapping[Path, Maker], picture: Path = PICTURE) -> list[Path]:
    """Return which pages do not hold what the records say, and the picture if it does not."""
    texts = {file: file.read_text(encoding="utf-8") for file in made}
    found = [file for file, text in texts.items() if made[file](text) != text]
    # The picture's text tells its figures; its lines differ between versions of Matplotlib.
    return found + ([] if description() in picture.read_text(encoding="utf-8") else [picture])


def write(made: Mapping[Path, Maker]) -> None:
    """Write the pages as they are to be."""
    for file, maker in made.items():
        file.write_text(maker(file.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> int:
    """Write what is made, or say what is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.results")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--write", action="store_true", help="write pages and picture")
    how.add_argument("--check", action="store_true", help="fail where one is out of date")
    if parser.parse_args().write:
        write(MADE)
        draw(PICTURE)
        trace_picture.draw(trace_picture.PICTURE)
        return 0
    old = stale(MADE)
    for path in old:
        print(f"{path.relative_to(ROOT)} is out of date: run `make results`", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
