"""The tree of errors: what catches what, and what the errors carry."""

from __future__ import annotations

import pickle

import pytest

from cpufree import errors
from cpufree.errors import (
    CpufreeError,
    DiagonalError,
    EngineError,
    FileFormatError,
    InvalidInputError,
    MatrixError,
    NonFiniteError,
    NotEnoughGpusError,
    NotSymmetricError,
    OutOfMemoryError,
    RankFailedError,
    UnsupportedError,
    VectorError,
    WaitTimeoutError,
)

ALL = [
    error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, Exception) and not issubclass(error, Warning)
]


def test_the_module_holds_the_whole_tree() -> None:
    assert len(ALL) == 18


@pytest.mark.parametrize("error", ALL)
def test_every_error_is_a_cpufree_error(error: type[Exception]) -> None:
    assert issubclass(error, CpufreeError)


@pytest.mark.parametrize("error", ALL)
def test_every_error_can_be_made_from_a_message_alone(error: type[Exception]) -> None:
    # The extension raises them so.
    assert str(error("what, where, what to do")) == "what, where, what to do"


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (InvalidInputError, ValueError),
        (MatrixError, InvalidInputError),
        (NotSymmetricError, MatrixError),
        (NonFiniteError, MatrixError),
        (DiagonalError, MatrixError),
        (FileFormatError, InvalidInputError),
        (VectorError, InvalidInputError),
        (WaitTimeoutError, EngineError),
        (RankFailedError, EngineError),
        (NotEnoughGpusError, UnsupportedError),
        (OutOfMemoryError, MemoryError),
    ],
)
def test_error_is_caught_as(error: type[Exception], base: type[Exception]) -> None:
    assert issubclass(error, base)


@pytest.mark.parametrize("error", [UnsupportedError, EngineError, OutOfMemoryError])
def test_failures_of_the_machine_are_not_invalid_input(error: type[Exception]) -> None:
    assert not issubclass(error, ValueError)


def test_matrix_error_keeps_its_place_when_pickled() -> None:
    error = pickle.loads(pickle.dumps(DiagonalError("row 3 is empty", 3, 3)))
    assert (str(error), error.row, error.column) == ("row 3 is empty", 3, 3)


def test_wait_timeout_keeps_its_waits_when_pickled() -> None:
    waits = [{"pe": 1, "waits_for_pe": 0, "epoch": 7, "seen": 6}]
    assert pickle.loads(pickle.dumps(WaitTimeoutError("PE 1 waited", waits))).waits == waits


def test_wait_timeout_without_records_has_an_empty_list() -> None:
    assert WaitTimeoutError("PE 1 waited").waits == []


def test_warnings_can_be_filtered_by_category() -> None:
    with pytest.warns(UserWarning):
        import warnings

        warnings.warn("x", errors.CpufreeWarning, stacklevel=1)
