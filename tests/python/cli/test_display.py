"""What the command line shows: exit codes, units, progress, JSON."""

from __future__ import annotations

import numpy as np
import pytest
from paths import ROOT
from rich.console import Console

from cpufree.cli import display
from cpufree.solvers.result import Reason


def test_every_reason_has_an_ending_with_a_code_of_its_own() -> None:
    assert set(display.ENDINGS) == set(Reason)
    failed = [display.ENDINGS[reason].exit_code for reason in Reason if not reason.converged]
    assert len(set(failed)) == len(failed)
    assert min(failed) >= 10


def test_exit_codes_are_those_of_the_documentation() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    for reason, ending in display.ENDINGS.items():
        row = next(line for line in text.splitlines() if f"`{reason.value}`" in line)
        assert row.startswith(f"| {ending.exit_code} |"), row


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 s"), (0.5e-6, "500 ns"), (0.00123, "1.23 ms"), (1.5, "1.5 s"), (4000, "4000 s")],
)
def test_times_are_told_in_fitting_units(value: float, text: str) -> None:
    assert display.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (1023, "1023 B"), (2**20, "1 MiB"), (3 * 2**29, "1.5 GiB")]
)
def test_sizes_are_told_in_binary_units(value: float, text: str) -> None:
    assert display.size(value) == text


def test_progress_counts_digits_gained() -> None:
    progress = display.SolveProgress(Console(), target=1e-8)
    progress(0, 1.0)
    assert progress.share(1.0) == 0.0
    assert progress.share(1e-4) == pytest.approx(0.5)
    assert progress.share(1e-9) == 1.0
    assert progress.share(10.0) == 0.0
    assert progress.share(float("nan")) == 0.0


def test_progress_always_asks_to_go_on() -> None:
    assert display.SolveProgress(Console(), target=0.0)(1, 0.0) is True


def test_json_has_no_nan() -> None:
    plain = display.to_plain({"a": np.float64("nan"), "b": (np.inf, np.arange(2)), "c": "text"})
    assert plain == {"a": None, "b": [None, [0, 1]], "c": "text"}
