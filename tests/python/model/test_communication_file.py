"""Machine files of the communication model: units, published sets, and what is refused."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_samples import LOGGOP, rows_of, samples_of

from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.machine import files
from cpufree.machine.communication import load_ways, write_ways
from cpufree.model.fit import fit
from cpufree.model.use import parameters

pytestmark = pytest.mark.usefixtures("few_replicates")
GOOD: dict[str, Any] = {
    "format": files.FORMAT,
    "version": 1,
    "machine": "M",
    "provenance": {"source": "a test"},
    "ways": {
        "w": {
            "initiated": "host",
            "triggered": "host",
            "controlled": "host",
            "verb": "put",
            "payload": None,
            "parameters": {
                "L": {"value": 2, "unit": "us", "low": 1, "high": 3},
                "o_send": {"value": 4, "unit": "ns"},
                "o_recv": {"value": 5, "unit": "ms"},
                "O": {"value": [1, 2], "from": [0, 64], "unit": "ns/B"},
            },
            "curves": {
                "pipelined": {
                    "form": "pieces",
                    "breaks": [64],
                    "parameters": {
                        "start": {"value": 1, "unit": "us"},
                        "slope0": {"value": 1, "unit": "ns/B"},
                        "slope1": {"value": 1, "unit": "ns/B"},
                    },
                    "messages": 16,
                    "sizes": [8, 1024],
                    "spread": [-0.1, 0.2],
                }
            },
        }
    },
}
DROP = object()
WAY = ("ways", "w")
CURVE = (*WAY, "curves", "pipelined")
L = (*WAY, "parameters", "L")


def file_of(tmp_path: Path, place: tuple[str, ...] = (), value: Any = None) -> Path:
    """Write GOOD with another value at a place."""
    content = copy.deepcopy(GOOD)
    if place:
        at = content
        for key in place[:-1]:
            at = at[key]
        if value is DROP:
            del at[place[-1]]
        else:
            at[place[-1]] = value
    (tmp_path / "m.json").write_text(json.dumps(content))
    return tmp_path / "m.json"


def test_units_become_seconds(tmp_path: Path) -> None:
    found = load_ways(str(file_of(tmp_path))).ways["w"]
    latency = found.parameters["L"]
    assert (latency.value, latency.low, latency.high) == (2e-6, 1e-6, 3e-6)
    assert found.parameters["o_recv"].value == 5e-3
    loggop = parameters(found)
    assert loggop is not None
    assert float(loggop.O(100.0)) == pytest.approx(64e-9 + 36 * 2e-9)
    assert found.curves["pipelined"].messages == 16


def test_a_machine_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = fit(samples_of(rows_of(LOGGOP, noise=0.05)))
    write_ways(tmp_path / "m.json", found)
    read = load_ways(str(tmp_path / "m.json"))
    assert dataclasses.replace(read, origin="") == found


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((*L, "unit"), DROP, r"m\.json: ways\.w\.parameters\.L\.unit: it is missing"),
        ((*L, "unit"), "km", r"ways\.w\.parameters\.L\.unit: it is 'km', and must be one of s, ms"),
        ((*L, "unit"), "ns/B", r"L\.unit: it is 'ns/B', and must be one of s, ms"),
        ((*L, "value"), -1, r"parameters\.L\.value: it is -1, and must not be negative"),
        ((*L, "low"), -1, r"parameters\.L\.low: it is -1, and must not be negative"),
        ((*L, "value"), "2", r"L\.value: it is '2', and must be a number"),
        ((*L, "value"), True, r"L\.value: it is True, and must be a number"),
        ((*L, "value"), float("inf"), r"L\.value: it is inf, and must be finite"),
        ((*L, "values"), 1, r"parameters\.L\.values: it is not known \(did you mean value\?\)"),
        ((*WAY, "parameters", "Q"), {}, r"ways\.w\.parameters\.Q: it is not known"),
        ((*WAY, "speed"), 1, r"ways\.w\.speed: it is not known"),
        (("extra",), 1, r"m\.json: extra: it is not known"),
        (("version",), 2, r"version: it is 2; this cpufree reads 1"),
        (("format",), "x", "no machine file"),
        (("machine",), DROP, "machine: it is missing"),
        (("machine",), 3, "machine: it is 3, and must be a text"),
        (("ways",), [], "ways: it must be an object"),
        ((*WAY, "verb"), "shout", r"ways\.w\.verb: it is 'shout', and must be one of message"),
        ((*WAY, "initiated"), "cat", r"initiated: it is 'cat', and must be one of host, device"),
        ((*WAY, "payload"), "thrice", r"payload: it is 'thrice', and must be one of once, twice"),
        ((*WAY, "parameters", "O", "from"), [0], r"O\.from: it needs as many numbers as 'value'"),
        ((*WAY, "parameters", "O", "from"), [8, 64], r"O\.from: .* the first one 0"),
        ((*WAY, "parameters", "O", "from"), [0, 0], r"O\.from: its numbers must rise"),
        ((*WAY, "parameters", "O", "value"), [1, -2], r"O\.value: it is -2, and must not be"),
        ((*CURVE, "form"), "spline", r"curves\.pipelined\.form: it is 'spline'"),
        ((*CURVE, "parameters", "slope1"), DROP, r"parameters\.slope1: it is missing"),
        ((*CURVE, "parameters", "slope2"), {}, r"pipelined\.parameters\.slope2: it is not known"),
        ((*CURVE, "messages"), 1.5, r"messages: it is 1.5, and must be a whole number from 1"),
        ((*CURVE, "sizes"), [1], r"sizes: it must be two numbers"),
        ((*CURVE, "breaks"), 3, r"breaks: it is 3, and must be a list of numbers"),
        ((*WAY, "curves", "double"), {}, r"curves\.double: it is not known"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_file_and_field(
    tmp_path: Path, place: tuple[str, ...], value: Any, message: str
) -> None:
    with pytest.raises(FileFormatError, match=message):
        load_ways(str(file_of(tmp_path, place, value)))


def test_a_file_cut_short_is_told(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(FileFormatError, match=r"m\.json: not JSON: .*was it cut short\?"):
        load_ways(str(path))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no machine '.*none\.json'"):
        load_ways(str(tmp_path / "none.json"))


def test_published_sets_have_units_and_provenance_for_each_number() -> None:
    assert files.names("ways") == ["h100", "h200", "summit-2020"]
    content = files.read(files.FOLDER / "summit-2020.json").content
    for way in content["ways"].values():
        groups = [way["parameters"], *(one["parameters"] for one in way["curves"].values())]
        numbers = [one for group in groups for one in group.values()]
        assert numbers and all(one["unit"] and one["provenance"] for one in numbers)
    assert load_ways("summit-2020").provenance["source"]


@pytest.mark.parametrize("name", ["h100", "h200"])
def test_measured_sets_say_of_which_samples_they_are_and_have_intervals(name: str) -> None:
    found = load_ways(name)
    assert name[:4].upper() in found.machine
    assert "cpufree model measure" in found.provenance["command"]
    content = files.read(files.FOLDER / f"{name}.json").content
    numbers = [one for way in content["ways"].values() for one in way["parameters"].values()]
    assert numbers and all(one["unit"] and one["low"] <= one["high"] for one in numbers)


def test_published_numbers_are_those_of_the_tables() -> None:
    summit = load_ways("summit-2020").ways
    assert summit["host-get"].parameters["o_send"].value == 247e-9
    assert summit["host-put"].parameters["O"].value == pytest.approx(0.074e-9)
    assert summit["device-get"].parameters["S"].value == 4570e-9
    assert "S" not in summit["host-put"].parameters and "O" not in summit["device-put"].parameters
    power = summit["device-put"].curves["pipelined"].parameters
    assert (power["scale"].value, power["exponent"].value) == (1411e-9, -0.781)


def test_a_machine_is_found_by_name_or_by_file(tmp_path: Path) -> None:
    assert "Summit" in load_ways("summit-2020").machine
    assert load_ways(str(file_of(tmp_path))).machine == "M"


def test_a_name_that_nobody_has_published_is_told() -> None:
    with pytest.raises(InvalidInputError, match=r"'summit' \(did you mean summit-2020\?\)"):
        load_ways("summit")
