"""What the tables of all reports have in common."""

from __future__ import annotations

from rich.table import Table

STYLES = {
    "met": "green",
    "missed": "red",
    "unclear": "yellow",
    "faster": "green",
    "slower": "red",
    "within noise": "yellow",
}


def ranged(values: dict[str, float], scale: float = 1.0, digits: int = 2) -> str:
    """Return "median (min–max)"."""
    median, low, high = (f"{values[key] * scale:.{digits}f}" for key in ("median", "min", "max"))
    return f"{median} ({low}–{high})"


def styled(word: str) -> str:
    """Return a verdict in its colour."""
    style = STYLES.get(word, "dim")
    return f"[{style}]{word}[/{style}]"


def counted(number: int) -> str:
    """Return a number in thousands or millions where it is large."""
    if number >= 1_000_000:
        return f"{number / 1e6:.2f}M"
    return f"{number / 1e3:.1f}k" if number >= 1000 else str(number)


def new_table(title: str, *columns: str) -> Table:
    """Return a table whose first column is text and whose others are numbers."""
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False, box=None)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    return table
