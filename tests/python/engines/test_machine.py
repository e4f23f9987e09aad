"""Descriptions of machines: every number with its unit and provenance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cpufree import machine
from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.machine import files, least, load, of_gpu, own_file
from cpufree.machine.files import FORMAT, Quantity


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's folder for settings, which is empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CPUFREE_MACHINE", raising=False)
    return tmp_path / "home"


def file_of(path: Path, like: str = "", **entry: object) -> str:
    """Write a machine with one entry; return the file."""
    given = {"value": 2.0, "unit": "s", "what": "a time", "provenance": "a test", **entry}
    content = {"format": FORMAT, "version": 1, "machine": "M", "gpu": "NVIDIA X"}
    content |= {"like": like} if like else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**content, "choices": {"a": given}}))
    return str(path)


@pytest.mark.parametrize("name", files.names("choices"))
def test_every_entry_of_the_files_has_unit_and_provenance(name: str) -> None:
    found = load(name)
    assert found.entries and found.gpu
    for key, entry in found.entries.items():
        assert entry.unit in ("s", "1/s", "B", "B/s", "1"), key
        assert entry.what and entry.provenance, key
        values = entry.table.values() if entry.table is not None else [entry.value]
        # An amount is positive; what is longer than elsewhere, or a share, may be nothing.
        may_be_nothing = "how much longer" in entry.what or "the share" in entry.what
        assert may_be_nothing or all(value > 0 for value in values), key
        assert min(values) >= 0, key


def test_numbers_and_tables_are_read_with_their_units(tmp_path: Path) -> None:
    found = load(file_of(tmp_path / "m.json", unit="ms"))
    assert found.entries["a"] == Quantity(2e-3, "s", provenance="a test", what="a time")
    assert found.number("a", "s") == 2e-3
    table = load(file_of(tmp_path / "t.json", value={"1": 2, "8": 4.5}))
    assert table.table("a", "s") == {1: 2.0, 8: 4.5}


@pytest.mark.parametrize(("place", "value"), [(0, 2.0), (1, 2.0), (3, 3.0), (5, 4.0), (9, 4.0)])
def test_tables_are_read_on_their_lines_and_go_on_as_they_end(
    tmp_path: Path, place: float, value: float
) -> None:
    found = load(file_of(tmp_path / "t.json", value={"1": 2, "5": 4}))
    assert found.at("a", "s", place) == value


def test_a_number_is_the_same_at_all_places(tmp_path: Path) -> None:
    assert load(file_of(tmp_path / "m.json")).at("a", "s", 7) == 2.0


@pytest.mark.parametrize(
    ("entry", "table", "message"),
    [
        ({"unit": "B"}, False, "is in B, not in s"),
        ({"value": {"1": 2}}, False, "is a table"),
        ({}, True, "is a number"),
    ],
)
def test_another_unit_or_kind_of_value_is_refused(
    tmp_path: Path, entry: dict[str, object], table: bool, message: str
) -> None:
    found = load(file_of(tmp_path / "m.json", **entry))
    with pytest.raises(ValueError, match=message):
        found.table("a", "s") if table else found.number("a", "s")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"value": "many"}, r"choices\.a\.value: it is 'many'"),
        ({"value": {"one": 1.0}}, r"choices\.a\.value\.one: tables go by whole numbers"),
        ({"unit": "km"}, r"choices\.a\.unit: it is 'km'"),
        ({"provenance": ""}, r"choices\.a\.provenance"),
        ({"value": -1.0}, r"choices\.a\.value: it is -1"),
    ],
)
def test_a_damaged_entry_is_named(tmp_path: Path, entry: dict[str, object], message: str) -> None:
    with pytest.raises(FileFormatError, match=r"h\.json: " + message):
        load(file_of(tmp_path / "h.json", **entry))


def test_a_machine_nobody_has_described_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"no machine 'h20'.*h100, h200"):
        load("h20")


def test_a_machine_like_another_has_its_entries_but_for_its_own(tmp_path: Path) -> None:
    found, other = load(file_of(tmp_path / "m.json", like="h200")), load("h200")
    assert found.number("a", "s") == 2.0
    assert {name: one for name, one in found.entries.items() if name != "a"} == other.entries


def test_a_machine_is_found_by_its_gpus() -> None:
    assert of_gpu("NVIDIA H100 80GB HBM3") == load("h100")
    assert of_gpu("NVIDIA H200") == load("h200") == of_gpu("")


def test_gpus_that_nobody_measured_have_the_default_numbers_and_are_not_known() -> None:
    found = of_gpu("NVIDIA B200")
    assert found.entries == load().entries and not found.known


def test_the_users_own_file_for_these_gpus_comes_first() -> None:
    file = own_file("NVIDIA H200")
    assert file.name == "nvidia-h200.json"
    file_of(file, like="h200")
    assert of_gpu("NVIDIA H200").number("a", "s") == 2.0
    assert "a" not in of_gpu("NVIDIA H100").entries
    assert of_gpu("").number("a", "s") == 2.0  # the GPUs are not looked at yet
    file_of(own_file("NVIDIA H100"), like="h100")
    assert of_gpu("") == load("h200")  # either may be there


def test_before_gpus_are_looked_at_the_users_own_file_decides() -> None:
    usual = least("setup.least_nonzeros")
    sooner = {"setup.least_nonzeros": {"value": 5, "unit": "1", "provenance": "a test"}}
    file = own_file("NVIDIA H200")
    file.parent.mkdir(parents=True)
    files.write(file, {"machine": "M", "gpu": "NVIDIA H200", "like": "h200", "choices": sooner})
    assert (usual, least("setup.least_nonzeros")) == (20_000, 5)


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    assert load(file_of(path)).number("a", "s") == 2.0
    file_of(path, value=3.0)
    assert load(str(path)).number("a", "s") == 3.0


def test_the_environment_names_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_MACHINE", file_of(tmp_path / "m.json"))
    assert of_gpu("NVIDIA H200").number("a", "s") == of_gpu("").number("a", "s") == 2.0
    monkeypatch.setenv("CPUFREE_MACHINE", "h100")
    assert of_gpu("NVIDIA H200") == load("h100")


def test_writing_a_section_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    file_of(path)
    files.write(path, {"machine": "N", "ways": {}})
    found = files.read(path).content
    assert (found["machine"], found["ways"], found["choices"]["a"]["value"]) == ("M", {}, 2.0)
    assert machine.load(str(path)).number("a", "s") == 2.0
