"""Files of samples: written and read again, and what is wrong with others, by line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_samples import LOGGOP, rows_of, samples_of

from cpufree.errors import FileFormatError
from cpufree.model.samples import Samples, held_out_of, read_samples, write_samples

GIVEN = dataclasses.replace(
    samples_of(rows_of(LOGGOP, sizes=(8, 24), modes=("single", "window"))),
    missing={"pigeon": "there is no loft"},
)
Change = Callable[[list[dict[str, Any]]], object]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a good file of samples."""
    write_samples(tmp_path / "s.jsonl", GIVEN)
    return tmp_path / "s.jsonl"


def changed(path: Path, change: Change) -> Path:
    """Change the lines of a file, as objects."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_samples_are_read_as_they_were_written(path: Path) -> None:
    found = read_samples(path)
    assert dataclasses.replace(found, origin="", digest="") == GIVEN
    assert found.origin == str(path) and len(found.digest) == 64


def test_ways_come_in_the_order_of_the_file() -> None:
    rows = rows_of(LOGGOP, "b", sizes=(8,)) + rows_of(LOGGOP, "a", sizes=(8,))
    assert samples_of(rows).ways() == ["b", "a"]


def test_sizes_between_powers_of_two_are_held_out() -> None:
    assert held_out_of([1, 2, 3, 8, 24, 24, 1000]) == (3, 24, 1000)


@pytest.mark.parametrize("lines", range(1, 6))
def test_a_file_cut_between_lines_is_known_as_such(path: Path, lines: int) -> None:
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join(text[:lines]))
    with pytest.raises(FileFormatError, match=rf"s\.jsonl: line {lines}: .*it was cut short"):
        read_samples(path)


def test_a_file_cut_inside_a_line_is_known_as_such(path: Path) -> None:
    path.write_text(path.read_text()[:-200])
    with pytest.raises(FileFormatError, match=r"line \d+: not JSON.*was the file cut short\?"):
        read_samples(path)


def test_a_line_that_was_taken_out_is_missed(path: Path) -> None:
    changed(path, lambda lines: lines.pop(2))
    with pytest.raises(FileFormatError, match="line 6: 5 lines come before it, and 6 were written"):
        read_samples(path)


def drop(line: int, key: str) -> Change:
    """Return a change that drops a key of a line."""
    return lambda lines: lines[line].pop(key)


def put(line: int, **values: Any) -> Change:
    """Return a change that sets keys of a line."""
    return lambda lines: lines[line].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            put(0, version=2),
            r"line 1: version 2 of the format; this cpufree reads 1: measure again",
        ),
        (put(0, format="other"), "line 1: it is no header"),
        (drop(0, "date"), "line 1.date: it is missing"),
        (put(0, machine=3), "line 1.machine: it must be an object"),
        (put(0, held_out=[0]), "line 1.held_out: it is 0, and must be a whole number from 1"),
        (put(0, held_out=3), "line 1.held_out: it is 3, and must be a list"),
        (put(1, bytes=0), "line 2.bytes: it is 0, and must be a whole number from 1"),
        (put(1, bytes=-8), "line 2.bytes: it is -8"),
        (put(1, bytes=8.5), "line 2.bytes: it is 8.5"),
        (put(2, seconds=[1.0, 2.0], repeats=2), "line 3: 2 times: too few, at least 3 are needed"),
        (put(2, seconds=[1.0, -1.0, 2.0], repeats=3), "line 3.seconds: it has -1.0: times must be"),
        (put(2, seconds=[1.0, None, 2.0], repeats=3), "line 3.seconds: it is None"),
        (put(2, repeats=20), "line 3: 'repeats' is 20, with 21 times"),
        (put(1, mode="double"), "line 2.mode: it is 'double', and must be one of single, window"),
        (put(1, messages=4), "line 2: 'messages' is 4 in mode single: only windows have several"),
        (put(3, messages=1), "line 4: 'messages' is 1 in mode window"),
        (put(1, initiated="cat"), "line 2.initiated: it is 'cat', and must be one of host, device"),
        (put(1, verb="shout"), "line 2.verb: it is 'shout', and must be one of message, put, get"),
        (drop(1, "way"), "line 2.way: it is missing"),
        (put(1, way=""), "line 2.way: it is '', and must be a text"),
        (put(1, kind="rumour"), "line 2.kind: it is 'rumour', and must be one of sample, missing"),
        (drop(5, "reason"), "line 6.reason: it is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(path: Path, change: Change, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read_samples(changed(path, change))


def test_a_line_that_is_no_object_is_told(path: Path) -> None:
    path.write_text("[]\n")
    with pytest.raises(FileFormatError, match="line 1: it must be an object"):
        read_samples(path)


@pytest.mark.parametrize(("content", "message"), [(b"", "it is empty"), (b"\xff\n", "be read")])
def test_a_file_that_is_none_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "s.jsonl").write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        read_samples(tmp_path / "s.jsonl")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"none\.jsonl: cannot be read: No such file"):
        read_samples(tmp_path / "none.jsonl")


def test_a_file_that_cannot_be_written_leaves_the_old_one(path: Path) -> None:
    before = path.read_bytes()
    broken: Samples = dataclasses.replace(GIVEN, machine={"cpu": float("nan")})
    with pytest.raises(ValueError):
        write_samples(path, broken)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["s.jsonl"]
