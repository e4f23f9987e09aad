"""Counts, and suggestions, as text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 block, 4 000 blocks."""
    return f"{count:,} {noun}".replace(",", " ") + ("" if count == 1 else "s")


def number(value: float) -> str:
    """Return a count with thin separators: 1234567 -> 1 234 567."""
    return f"{value:,.0f}".replace(",", " ")


def meant(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean prcg?)" where a word is close to one that is known, else ""."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def time_text(value: float) -> str:
    """Return seconds in the unit that suits them, with three digits: 0.00123 is 1.23 ms."""
    value = float(f"{value:.3g}")  # what is shown as 1000 ns is 1 µs
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}" if value < 1000 else f"{value:.0f} s"
    return "0 s" if value == 0 else f"{value / 1e-9:.3g} ns"
