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
