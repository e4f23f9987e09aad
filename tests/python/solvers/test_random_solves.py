"""Random systems and guesses, by all methods: support/random_solves.py, which runs more of them."""

from __future__ import annotations

import pytest
from random_solves import case_of, failures, run


@pytest.mark.cpu_only
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_no_random_solve_lies_or_spoils_its_guess_or_calls_a_definite_matrix_indefinite(
    first: int,
) -> None:
    assert not [bad for seed in range(first, first + 25) for bad in failures(run(case_of(seed)))]


@pytest.mark.cpu_only
@pytest.mark.thorough
def test_no_solve_of_many_does() -> None:
    assert not [bad for seed in range(100, 2100) for bad in failures(run(case_of(seed)))]
