"""Command line of `python -m tools.results`."""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path

from tools.results.page import page
from tools.results.records import ROOT
from tools.results.timeline import PICTURE, description, draw

PAGE = ROOT / "docs/results.md"
current = cache(page)


def stale(written: Path = PAGE, picture: Path = PICTURE) -> list[Path]:
    """Return which of the two files do not hold what the records say."""
    found = [] if written.read_text(encoding="utf-8") == current() else [written]
    # The picture's text tells its figures; its lines differ between versions of Matplotlib.
    return found + ([] if description() in picture.read_text(encoding="utf-8") else [picture])


def main() -> int:
    """Write both files, or say which one is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.results")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--write", action="store_true", help="write page and picture")
    how.add_argument("--check", action="store_true", help="fail where one is out of date")
    if parser.parse_args().write:
        PAGE.write_text(current(), encoding="utf-8")
        draw(PICTURE)
        return 0
    for path in stale():
        print(f"{path.relative_to(ROOT)} is out of date: run `make results`", file=sys.stderr)
    return 1 if stale() else 0


if __name__ == "__main__":
    sys.exit(main())
