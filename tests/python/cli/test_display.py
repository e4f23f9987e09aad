"""What the command line shows: exit codes, units, progress, JSON."""

from __future__ import annotations

import numpy as np
import pytest
from paths import ROOT

from cpufree.cli import display, endings
from cpufree.solvers.result import Reason


def test_every_reason_has_an_ending_with_a_code_of_its_own() -> None:
    assert set(endings.ENDINGS) == set(Reason)
    failed = [endings.ENDINGS[reason].exit_code for reason in Reason if not reason.converged]
    assert len(set(failed)) == len(failed)
    assert min(failed) >= 10


def test_exit_codes_are_those_of_the_documentation() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    for reason, ending in endings.ENDINGS.items():
        row = next(line for line in text.splitlines() if f"`{reason.value}`" in line)
        assert row.startswith(f"| {ending.exit_code} |"), row


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (0.5e-6, "500 ns"),
        (0.00123, "1.23 ms"),
        (1.5, "1.5 s"),
        (4000, "4000 s"),
        (999.7e-9, "1 µs"),
    ],
)
def test_times_are_told_in_fitting_units(value: float, text: str) -> None:
    assert display.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (1023, "1023 B"), (2**20, "1 MiB"), (3 * 2**29, "1.5 GiB")]
)
def test_sizes_are_told_in_binary_units(value: float, text: str) -> None:
    assert display.size(value) == text


def test_json_has_no_nan() -> None:
    plain = display.to_plain({"a": np.float64("nan"), "b": (np.inf, np.arange(2)), "c": "text"})
    assert plain == {"a": None, "b": [None, [0, 1]], "c": "text"}
