"""Checks that a text is lines of numbers, at the speed at which numbers are parsed.

The bytes are mapped to classes, and the classes of neighbours to codes, by tables; what is left
over when all permitted codes are deleted is wrong. Only then are lines looked at one by one.
"""

from __future__ import annotations

import re

import numpy as np

# Classes of characters, and which may follow one another.
_BLANK, _NEWLINE, _DIGIT, _SIGN, _DOT, _EXP, _WORD, _OTHER = range(8)
_CLASS = bytearray([_OTHER]) * 256
for _characters, _class in (
    (b" \t\r", _BLANK),
    (b"\n", _NEWLINE),
    (b"0123456789", _DIGIT),
    (b"+-", _SIGN),
    (b".", _DOT),
    (b"eEdD", _EXP),
    (b"naNAiIfFtTyY", _WORD),  # nan, inf, infinity: read here, refused by the checks of values
):
    for _character in _characters:
        _CLASS[_character] = _class
_SPACE = {_BLANK, _NEWLINE}
_MARK = {_DOT, _EXP, _WORD}
_FOLLOWERS = {
    _BLANK: {*_SPACE, _DIGIT, _SIGN, _DOT, _WORD},
    _NEWLINE: {*_SPACE, _DIGIT, _SIGN, _DOT, _WORD},
    _DIGIT: {*_SPACE, _DIGIT, _DOT, _EXP},
    _SIGN: {_DIGIT, _DOT, _WORD},
    _DOT: {*_SPACE, _DIGIT, _EXP},
    _EXP: {_DIGIT, _SIGN},
    _WORD: {*_SPACE, _WORD},
}


def _good_pairs(classes: set[int]) -> bytes:
    """Return the codes 8 * first + second of the pairs that may follow one another."""
    return bytes(
        8 * first + second
        for first, followers in _FOLLOWERS.items()
        for second in followers
        if {first, second} <= classes
    )


_GOOD_REAL = _good_pairs(set(range(_OTHER)))
_GOOD_WHOLE = _good_pairs({*_SPACE, _DIGIT, _SIGN})
# With digits and signs left out, what remains of one number may not hold a second point, and
# neither point, exponent nor word after an exponent.
_DIGITS_AND_SIGNS = bytes([_DIGIT, _SIGN])
_BAD_MARKS = {8 * _DOT + _DOT, 8 * _EXP + _DOT, 8 * _EXP + _EXP, 8 * _EXP + _WORD}
_GOOD_MARKS = bytes(set(range(64)) - _BAD_MARKS)

# The skeleton of a text: S where a number starts, M for each point, exponent or letter in it
# (which makes it other than whole), N at the end of a line; made from the codes of the pairs.
_SKELETON = bytearray(b"-" * 256)
for _first in range(8):
    for _second in range(8):
        if _second == _NEWLINE:
            _SKELETON[8 * _first + _second] = ord("N")
        elif _first in _SPACE and _second != _BLANK:
            # W: a number that starts with a mark, short for SM.
            _SKELETON[8 * _first + _second] = ord("W" if _second in _MARK else "S")
        elif _second in _MARK:
            _SKELETON[8 * _first + _second] = ord("M")
_NOT_IN_SKELETON = bytes(code for code in range(256) if _SKELETON[code] == ord("-"))

# The same rules, number by number. Nothing can match in two ways: failing takes linear time.
_WHOLE = rb"[+-]?[0-9]+"
_POWER = rb"(?:[ed][+-]?[0-9]+)?"
_REAL = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?%b|\.[0-9]+%b|nan|inf|infinity)" % (_POWER, _POWER)
_WORDS = re.compile(rb"[naifty]+", re.IGNORECASE)
_BLANKS = b" \t\r"
_GAP = rb"[ \t\r]+"


class BadLineError(Exception):
    """Line number `line` (from 0) of a block of text reads `text`, which does not fit."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(f"line {line}: {text!r}")
        self.line = line
        self.text = text


def count_numbers(block: bytes, per_line: int, whole: bool, reals: int = 1) -> int:
    """Return how many numbers a block of whole lines holds.

    Exponents may be written with e, E, d or D. Blank lines are allowed anywhere.

    Args:
        block: the text.
        per_line: numbers that each line must hold; 0: any number of them.
        whole: all numbers must be whole. Otherwise the last of each line may be real, or all of
            them if `per_line` is 0.
        reals: how many of the last ones may be.

    Raises:
        BadLineError: a line holds something else.
    """
    kinds = (b"\n" + block + b"\n").translate(_CLASS)
    pairs = _pairs(kinds)
    marks = kinds.translate(None, _DIGITS_AND_SIGNS)
    skeleton = pairs.translate(_SKELETON, _NOT_IN_SKELETON).replace(b"W", b"SM")
    good = not pairs.translate(None, _GOOD_WHOLE if whole else _GOOD_REAL)
    good = good and not _pairs(marks).translate(None, _GOOD_MARKS)
    if per_line and good:
        # A mark before another number of the same line is one in a number that must be whole.
        lines = skeleton.translate(None, b"M").replace(b"S" * per_line + b"N", b"")
        good = not lines.strip(b"N") and _whole_in_front(skeleton, per_line, reals)
    if not (good and _words_are_numbers(block, kinds)):
        raise _bad_line(block, per_line, whole, reals)
    return skeleton.count(b"S")


def _whole_in_front(skeleton: bytes, per_line: int, reals: int) -> bool:
    """Say whether all numbers of each line but the last ones are whole."""
    if reals == 1:
        return b"MS" not in skeleton
    line = b"%bSM*(?:SM*){%d}N|N" % (b"S" * (per_line - reals), reals - 1)
    return re.fullmatch(b"(?:%b)*" % line, skeleton) is not None


def _words_are_numbers(block: bytes, kinds: bytes) -> bool:
    """Say whether the words of a text, if there are any, are nan, inf and infinity."""
    if _WORD not in kinds:
        return True
    return {word.lower() for word in _WORDS.findall(block)} <= {b"nan", b"inf", b"infinity"}


def _pairs(kinds: bytes) -> bytes:
    """Return the codes 8 * first + second of all neighbours."""
    kind = np.frombuffer(kinds, dtype=np.uint8)
    return (8 * kind[:-1] + kind[1:]).tobytes()


def _bad_line(block: bytes, per_line: int, whole: bool, reals: int) -> BadLineError:
    """Find the first line that breaks the rules."""
    last = _WHOLE if whole else _REAL
    if per_line:
        numbers = _GAP.join([_WHOLE] * (per_line - reals) + [last] * reals)
    else:
        numbers = b"%b(?:%b%b)*" % (last, _GAP, last)
    fits = re.compile(b"(?:%b)?" % numbers, re.IGNORECASE).fullmatch
    lines = block.split(b"\n")
    number = next((k for k, line in enumerate(lines) if not fits(line.strip(_BLANKS))), 0)
    return BadLineError(number, lines[number].decode("latin-1"))
