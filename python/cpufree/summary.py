"""Reports on results and solvers: the same rows as text for terminals, as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

Rows = Iterable[tuple[str, str]]
NEXT = "\n"
"""Parts the lines of a value."""
GOOD, BAD = "#2c7a3f", "#b3261e"
_CELL = "text-align: left; vertical-align: top; padding: 0 1.5em 0 0"


def as_text(title: str, rows: Rows, width: int = 20) -> str:
    """Return a title, and below it a line for each name and value; more lines of a value below."""
    below = "\n" + " " * (width + 2)
    lines = [f"  {name:<{width - 1}} {value.replace(NEXT, below)}" for name, value in rows]
    return "\n".join([title, *lines])


def as_html(title: str, rows: Rows, good: bool | None = None) -> str:
    """Return the same as a table.

    Args:
        good: the title is green (True) or red (False); None: as other text.
    """
    color = "" if good is None else f" style='color: {GOOD if good else BAD}'"
    body = "".join(
        f"<tr><th style='{_CELL}'>{escape(name)}</th><td style='{_CELL}'>{_cell(value)}</td></tr>"
        for name, value in rows
    )
    return f"<div><strong{color}>{escape(title)}</strong><table>{body}</table></div>"


def one_a_line(reasons: str) -> str:
    """Return reasons, which semicolons part, with a line for each."""
    return reasons.replace("; ", NEXT)


def _cell(value: str) -> str:
    """Return a value as HTML: several lines are a list."""
    lines = [escape(line) for line in value.split(NEXT)]
    if len(lines) == 1:
        return lines[0]
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f"<ul style='margin: 0; padding-left: 1.2em'>{items}</ul>"
