"""Environment variables: typed, validated, and unknown ones pointed out."""

from __future__ import annotations

import dataclasses
import re
import warnings

import pytest

from cpufree.env import VARIABLES, Env
from cpufree.errors import CpufreeWarning, InvalidInputError


def test_empty_environment_gives_the_defaults() -> None:
    assert Env.read({}) == Env("auto", None, None, None, "warning", "auto")


def test_values_are_read_with_their_types() -> None:
    env = Env.read(
        {
            "CPUFREE_ENGINE": "cpu_threads",
            "CPUFREE_PES": "8",
            "CPUFREE_BLOCKS": "4",
            "CPUFREE_WAIT_LIMIT": "2.5",
            "CPUFREE_LOG": "debug",
            "CPUFREE_GPUS": "0, 2-4",
        }
    )
    assert env == Env("cpu_threads", 8, 4, 2.5, "debug", (0, 2, 3, 4))


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_PES", "3")
    assert Env.read().pes == 3


@pytest.mark.parametrize("name", VARIABLES)
def test_empty_value_counts_as_unset(name: str) -> None:
    assert Env.read({name: ""}) == Env()


@pytest.mark.parametrize("name", ["CPUFREE_PES", "CPUFREE_BLOCKS", "CPUFREE_GPUS"])
def test_auto_leaves_a_number_open(name: str) -> None:
    assert Env.read({name: "Auto"}) == Env()


def test_words_are_read_without_regard_to_case() -> None:
    assert Env.read({"CPUFREE_LOG": " Error "}).log == "error"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CPUFREE_ENGINE", "gpu"),
        ("CPUFREE_PES", "0"),
        ("CPUFREE_PES", "-1"),
        ("CPUFREE_PES", "2.0"),
        ("CPUFREE_PES", "²"),
        ("CPUFREE_PES", "9" * 5000),
        ("CPUFREE_BLOCKS", "many"),
        ("CPUFREE_WAIT_LIMIT", "0"),
        ("CPUFREE_WAIT_LIMIT", "-1"),
        ("CPUFREE_WAIT_LIMIT", "nan"),
        ("CPUFREE_WAIT_LIMIT", "inf"),
        ("CPUFREE_WAIT_LIMIT", "10s"),
        ("CPUFREE_LOG", "loud"),
        ("CPUFREE_GPUS", "two"),
        ("CPUFREE_GPUS", "0,"),
        ("CPUFREE_GPUS", "3-1"),
    ],
)
def test_bad_value_is_refused_with_name_value_and_choices(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Env.read({name: value})
    assert f"{name}={value!r}" in str(caught.value)
    assert VARIABLES[name] in str(caught.value)


def test_unknown_name_gives_a_warning_with_the_one_meant() -> None:
    with pytest.warns(CpufreeWarning, match=re.escape("did you mean CPUFREE_ENGINE?")):
        Env.read({"CPUFREE_ENGIN": "cpu_threads"})


def test_unknown_name_gives_a_warning_with_all_valid_names() -> None:
    with pytest.warns(CpufreeWarning) as caught:
        Env.read({"CPUFREE_XYZZY": "1"})
    assert all(name in str(caught[0].message) for name in VARIABLES)


@pytest.mark.parametrize("name", ["HOME", "CPUFREE_DATA", "MYCPUFREE_X"])
def test_names_of_others_give_no_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Env.read({name: "1"})


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Env().pes = 3  # type: ignore[misc]
