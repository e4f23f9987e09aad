"""Numbers as Fortran prints them, and the formats by which it divides lines into numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

_D = re.compile(rb"(?<=[0-9.])[Dd](?=[+-]?[0-9])")
# Only where Fortran prints one: after a decimal point, with a sign and three digits.
_NO_LETTER = re.compile(rb"(\.[0-9]*)([+-][0-9]{3})(?![0-9])")
_D_TO_E = bytes.maketrans(b"Dd", b"EE")
_LINE = 1 << 12
_MOST_FIELDS = 1 << 16


def with_exponents_of_c(text: bytes) -> bytes:
    """Write E for Fortran's D, and where Fortran leaves the letter out: 0.1-100 is 0.1E-100."""
    # Large texts take long to search: most have no such numbers, and nothing but numbers.
    if b"D" in text or b"d" in text:
        only_numbers = not text.translate(None, b"0123456789+-.EeDd \t\r\n")
        text = text.translate(_D_TO_E) if only_numbers else _D.sub(b"E", text)
    if len(text) > _LINE and not _has_sign_within_number(text):
        return text
    return _NO_LETTER.sub(rb"\1E\2", text)


def _has_sign_within_number(text: bytes) -> bool:
    """Return whether a sign follows a digit or a point."""
    codes = np.frombuffer(text, np.uint8)
    before, after = codes[:-1], codes[1:]
    sign = (after == ord("-")) | (after == ord("+"))
    return bool((sign & (before >= ord(".")) & (before <= ord("9"))).any())


@dataclass(frozen=True)
class Format:
    """Where the numbers of a line lie, by a Fortran format."""

    first: tuple[tuple[int, int], ...]
    """Columns of the numbers on the first line: begin and end."""
    later: tuple[tuple[int, int], ...]
    """On lines that follow: a format goes on with the last of its groups."""
    whole: bool
    implied_point: bool
    """A number without a decimal point has one nevertheless."""
    free: bool = False
    """Numbers are divided by blanks, any number of them on a line: (*)."""

    def lines_of(self, count: int) -> int:
        """Return how many lines N numbers take."""
        more = count - len(self.first)
        return min(count, 1) if more <= 0 else 1 + -(-more // len(self.later))


_ITEM = re.compile(
    r"(?P<scale>[+-]?\d+)P|(?P<skip>\d*)X|(?P<group>\d*)\(|"
    r"(?P<repeat>\d*)(?P<kind>E[NS]?|[IDFG])(?P<width>\d+)(?:\.(?P<digits>\d+)(?:E\d+)?)?"
)


def formats_in(text: str) -> list[str]:
    """Return the formats on a line: what stands in parentheses, which may be nested."""
    found, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        if character == "(":
            begin = at if depth == 0 else begin
            depth += 1
        elif character == ")" and depth:
            depth -= 1
            if depth == 0:
                found.append(text[begin : at + 1])
    return found


def parse_format(text: str, whole: bool) -> Format:
    """Return a format such as (1X,8I9), (1P,4D20.12), (5(1X,E15.8)) or (*).

    `whole`: of whole numbers.

    Raises:
        ValueError: it is none for numbers of this kind; the message says why.
    """
    spelled = "".join(text.split()).upper()  # blanks mean nothing
    if spelled == "(*)":
        return Format(((0, 0),), ((0, 0),), whole, False, free=True)
    items, end = _items(spelled, 1, 0)
    groups = [k for k, item in enumerate(items) if isinstance(item, tuple)]
    kinds: set[str] = set()
    first = _fields(items, kinds)
    later = _fields(items[groups[-1] :] if groups else items, kinds)
    if end != len(spelled) or not first or not later:
        raise ValueError("it names no numbers")
    if not kinds <= ({"I"} if whole else {"E", "D", "F", "G"}):
        raise ValueError(f"{'whole' if whole else 'real'} numbers are expected")
    implied = not whole and any(item.digits for item in _leaves(items))
    if any(item.scale and item.kind in "FG" for item in _leaves(items)):
        raise ValueError("its scale factor is not understood")
    return Format(first, later, whole, implied)


@dataclass(frozen=True)
class _Numbers:
    """`repeat` numbers of a kind side by side, or as many columns without."""

    repeat: int
    kind: str = ""
    width: int = 1
    digits: int = 0
    scale: int = 0


def _items(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    """Return what stands in parentheses from `at` on, groups as (repeat, items); and its end."""
    items: list[Any] = []
    scale = 0
    while at < len(text) and text[at] != ")":
        match = _ITEM.match(text, at)
        if text[at] == ",":
            at += 1
            continue
        if match is None or depth > 8:
            raise ValueError(f"{text[at:]!r} in it is not understood")
        at = match.end()
        if match["scale"] is not None:
            scale = int(match["scale"])
        elif match["skip"] is not None:
            items.append(_Numbers(int(match["skip"] or 1)))
        elif match["group"] is not None:
            inner, at = _items(text, at, depth + 1)
            if not inner:
                raise ValueError("a group of it is empty")
            items.append((int(match["group"] or 1), inner))
        else:
            sizes = int(match["width"]), int(match["digits"] or 0)
            items.append(_Numbers(int(match["repeat"] or 1), match["kind"][0], *sizes, scale))
    if at >= len(text):
        raise ValueError("a parenthesis is not closed")
    return items, at + 1


def _leaves(items: list[Any]) -> list[_Numbers]:
    leaves: list[_Numbers] = []
    for item in items:
        leaves += _leaves(item[1]) if isinstance(item, tuple) else [item]
    return leaves


def _fields(items: list[Any], kinds: set[str]) -> tuple[tuple[int, int], ...]:
    """Return the columns of a line's numbers, and add their kinds."""
    fields: list[tuple[int, int]] = []
    column = 0

    def lay_out(items: list[Any]) -> None:
        nonlocal column
        for item in items:
            repeat = item[0] if isinstance(item, tuple) else item.repeat
            if not 0 < repeat <= _MOST_FIELDS:
                raise ValueError(f"nothing is there {repeat} times")
            for _ in range(repeat):
                if isinstance(item, tuple):
                    lay_out(item[1])
                    continue
                if item.kind:
                    kinds.add(item.kind)
                    fields.append((column, column + item.width))
                column += item.width
                if item.width == 0 or max(column, len(fields)) > _MOST_FIELDS:
                    raise ValueError("a line of it is empty, or too long")

    lay_out(items)
    return tuple(fields)
