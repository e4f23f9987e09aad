"""Descriptions of machines: every number with its unit and provenance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cpufree import machine
from cpufree.machine import Entry, load, of_gpu, parse


def text(**entry: object) -> str:
    """Return a machine with one entry."""
    given = {"value": 2.0, "unit": "s", "what": "a time", "provenance": "a test", **entry}
    return json.dumps({"machine": "M", "gpu": "G", "entries": {"a": given}})


@pytest.mark.parametrize("file", sorted(Path(machine.__file__).parent.glob("*.json")))
def test_every_entry_of_the_files_has_unit_and_provenance(file: Path) -> None:
    found = load(file.stem)
    assert found.entries and found.gpu
    for name, entry in found.entries.items():
        assert entry.unit in ("s", "1/s", "B", "B/s", "1"), name
        assert entry.what and entry.provenance, name
        values = entry.value.values() if isinstance(entry.value, dict) else [entry.value]
        # An amount is positive; what is longer than elsewhere, or a share, may be nothing.
        may_be_nothing = "how much longer" in entry.what or "the share" in entry.what
        assert may_be_nothing or all(value > 0 for value in values), name
        assert min(values) >= 0, name


def test_numbers_and_tables_are_read_with_their_units() -> None:
    found = parse(text(), "here")
    assert found.entries["a"] == Entry(2.0, "s", "a time", "a test")
    assert found.number("a", "s") == 2.0
    assert parse(text(value={"1": 2, "8": 4.5}), "here").table("a", "s") == {1: 2.0, 8: 4.5}


@pytest.mark.parametrize(
    ("given", "ask", "message"),
    [
        (text(unit="ms"), lambda m: m.number("a", "s"), "is in ms, not in s"),
        (text(value={"1": 2}), lambda m: m.number("a", "s"), "is a table"),
        (text(), lambda m: m.table("a", "s"), "is a number"),
    ],
)
def test_another_unit_or_kind_of_value_is_refused(given: str, ask: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask(parse(given, "here"))  # type: ignore[operator]


@pytest.mark.parametrize(
    "damaged",
    [
        "{",
        "[]",
        "{}",
        text(value="many"),
        text(value=None),
        text(value={"one": 1.0}),
        '{"entries":1}',
    ],
)
def test_a_damaged_description_is_named(damaged: str) -> None:
    with pytest.raises(ValueError, match=r"h\.json: not the description of a machine"):
        parse(damaged, "h.json")


def test_a_machine_nobody_has_described_is_missing() -> None:
    with pytest.raises(FileNotFoundError):
        load("nobody")


def test_a_machine_like_another_has_its_entries_but_for_its_own() -> None:
    content = {"machine": "M", "gpu": "G", "like": "h200", "entries": json.loads(text())["entries"]}
    found, other = parse(json.dumps(content), "here"), load("h200")
    assert found.number("a", "s") == 2.0
    assert {name: entry for name, entry in found.entries.items() if name != "a"} == other.entries


def test_a_machine_is_found_by_its_gpus_and_one_that_nobody_measured_is_the_default() -> None:
    assert of_gpu("NVIDIA H100 80GB HBM3") == load("h100")
    assert of_gpu("NVIDIA H200") == load("h200")
    assert of_gpu("another") == load() == of_gpu("")
