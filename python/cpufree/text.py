"""Counts as text."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 block, 4 000 blocks."""
    return f"{count:,} {noun}".replace(",", " ") + ("" if count == 1 else "s")


def number(value: float) -> str:
    """Return a count with thin separators: 1234567 -> 1 234 567."""
    return f"{value:,.0f}".replace(",", " ")
