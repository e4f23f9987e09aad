"""GPUs by number: how users name them, how they are named to users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_core import FakeCore, gpu

from cpufree.engines import gpus
from cpufree.engines.asked import Asked
from cpufree.errors import InvalidInputError


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ("auto", "auto"),
        (" All ", "all"),
        ("3", (3,)),
        ("0,2-5", (0, 2, 3, 4, 5)),
        (" 1 , 0 ", (1, 0)),
        ("4-4", (4,)),
        ([2, 0], (2, 0)),
        (range(3), (0, 1, 2)),
        (np.array([1, 3]), (1, 3)),
        (iter([0, 1]), (0, 1)),
        ([0, 0, 1, 1], (0, 0, 1, 1)),
        ("0,0-1", (0, 0, 1)),
    ],
)
def test_gpus_are_named_in_many_ways(value: Any, parsed: Any) -> None:
    assert Asked(gpus=value).devices == parsed


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2, r"gpus is 2, which is ambiguous: pes=2 asks for 2 GPUs, gpus=\[2\] for device 2"),
        (np.int64(2), "gpus is 2, which is ambiguous"),
        (True, "gpus is True"),
        (None, "gpus is None"),
        ([], r"gpus is \[\]: no device is named"),
        ("", "gpus is '': no device is named"),
        ("0,,1", "'' is neither a number nor a range"),
        ("0;1", "'0;1' is neither a number nor a range"),
        ("1-2-3", "'1-2-3' is neither"),
        ("-1", "'-1' is neither"),
        ("²", "'²' is neither"),
        ("5-2", "the range '5-2' runs backwards"),
        ("0-99999999999999", "devices have numbers up to 1023"),
        ([0, 1.5], "1.5 is no device number"),
        ([0, -1], "-1 is no device number"),
        ([True], "True is no device number"),
        (["0"], "'0' is no device number"),
    ],
)
def test_gpus_that_name_no_devices_are_refused_with_the_reason(value: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Asked(gpus=value)


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ([0], "GPU 0"),
        ([0, 1, 2, 5], "GPUs 0-2, 5"),
        ([3, 1], "GPUs 3, 1"),
        ([], "no GPU"),
        ([0, 0], "GPU 0 (shared by 2)"),
        ([0, 1, 0, 2], "GPUs 0 (shared by 2), 1, 2"),
    ],
)
def test_device_numbers_are_spelled_as_ranges(chosen: list[int], text: str) -> None:
    assert gpus.spell(chosen) == text


def test_models_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCore([gpu(0), gpu(1, "NVIDIA H100"), gpu(2)])
    monkeypatch.setattr("cpufree._core", fake)
    assert gpus.models(gpus.find()) == "2 × NVIDIA H200, 1 × NVIDIA H100"
