"""Matrix Market files: the fast check of lines, ends of lines, compressed blanks."""

from __future__ import annotations

import bz2
import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from cpufree.errors import FileFormatError
from cpufree.matrix.io.matrix_market import read_matrix_market
from cpufree.matrix.io.number_text import BadLineError, count_numbers
from cpufree.matrix.load import load_matrix

GENERAL = "%%MatrixMarket matrix coordinate real general\n"


ARRAY = "%%MatrixMarket matrix array real general\n"


NUMBERS = ["1", "23", "-4", "+5", ".5", "-6.", "1e3", "2.5E-01", "7D+2", "nan", "-inf"]


PIECES = [" ", "\n", "1", "+", "-", ".", "e", "E", "D", "nan", "x", "\t", "\r", "1 2", "3\n"]


def some_text(rng: np.random.Generator, per_line: int, whole: bool) -> str:
    """Return a few lines, most of them good."""
    numbers = NUMBERS[:4] if whole or (per_line and rng.random() < 0.7) else NUMBERS
    lines = [list(rng.choice(numbers, size=per_line or rng.integers(5))) for _ in range(3)]
    text = "\n".join("  ".join(words) for words in lines)
    for _ in range(rng.integers(3)):
        at = rng.integers(len(text) + 1)
        text = text[:at] + str(rng.choice(PIECES)) + text[at:]
    return text


def count_slowly(block: str, per_line: int, whole: bool) -> int | None:
    """Return how many numbers a text holds, None if it breaks the rules."""
    number = re.compile(
        r"[+-]?(\d+\.?\d*([eEdD][+-]?\d+)?|\.\d+([eEdD][+-]?\d+)?|nan|inf|infinity)"
    )
    total = 0
    for line in block.split("\n"):
        words = line.split()
        for k, word in enumerate(words):
            must_be_whole = whole or (per_line and k != per_line - 1)
            if not (re.fullmatch(r"[+-]?\d+", word) if must_be_whole else number.fullmatch(word)):
                return None
        if words and per_line and len(words) != per_line:
            return None
        total += len(words)
    return total


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("per_line", [0, 2, 3])
def test_fast_check_of_lines_agrees_with_the_slow_one(per_line: int, whole: bool) -> None:
    rng = np.random.default_rng([per_line, whole])
    accepted = 0
    for _ in range(2000):
        block = some_text(rng, per_line, whole)
        # Left to the parser: a number without a digit, such as "." or "-.e5".
        if any(re.match(r"[+-]*\.?([eED]|$)", word) for word in block.split()):
            continue
        try:
            found: int | None = count_numbers(block.encode(), per_line, whole)
        except BadLineError:
            found = None
        assert found == count_slowly(block, per_line, whole), repr(block)
        accepted += found is not None
    assert 500 < accepted < 1800


# The last line


@pytest.mark.parametrize("kind", ["real", "integer", "pattern"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("end", ["", " ", "\t", "\r", " \n \t", "\n\r"])
def test_last_line_may_end_in_any_blank(tmp_path: Path, kind: str, suffix: str, end: str) -> None:
    value = "" if kind == "pattern" else " 1"
    text = f"{GENERAL.replace('real', kind)}1 1 1\n1 1{value}{end}".encode()
    packed = {"": text, ".gz": gzip.compress(text), ".bz2": bz2.compress(text)}[suffix]
    (tmp_path / f"a.mtx{suffix}").write_bytes(packed)
    assert load_matrix(tmp_path / f"a.mtx{suffix}").toarray() == [[1.0]]


# Small files that unpack to much


@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", ["header", "body"])
def test_bz2_of_blank_lines_takes_time_by_its_own_bytes(tmp_path: Path, where: str) -> None:
    blank = bz2.compress(b"\n" * (32 << 20)) * 64  # 2 GiB in 4 kB
    head = GENERAL + ("100000 100000 100000\n1 1 1\n" if where == "body" else "")
    (tmp_path / "a.mtx.bz2").write_bytes(bz2.compress(head.encode()) + blank)
    with pytest.raises(FileFormatError, match=r"far more text|no line with the sizes"):
        load_matrix(tmp_path / "a.mtx.bz2")


def test_bz2_that_promises_more_than_text_can_be_is_refused(tmp_path: Path) -> None:
    body = bz2.compress(b"1 1 1\n" * 10**6)
    head = bz2.compress(f"{GENERAL}5 5 1000000\n".encode())
    (tmp_path / "a.mtx.bz2").write_bytes(head + body)
    with pytest.raises(FileFormatError, match="promises 1000000 entries"):
        load_matrix(tmp_path / "a.mtx.bz2")


def test_negative_zeros_survive_in_arrays_and_entries(tmp_path: Path) -> None:
    for name, text in (
        ("a", ARRAY + "2 1\n-0\n-0.0e3\n"),
        ("b", GENERAL + "2 1 2\n1 1 -0\n2 1 -0.\n"),
    ):
        (tmp_path / f"{name}.mtx").write_text(text)
        found = read_matrix_market(tmp_path / f"{name}.mtx", square=False)
        values = found if name == "a" else found.data
        assert np.signbit(values).all()
