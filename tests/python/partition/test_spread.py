"""What a sample of rows tells of a partition, and how many iterations it has to pay in."""

from __future__ import annotations

import pytest
from grid_matrices import grid

from cpufree.partition.cost import Gain, Spread
from cpufree.partition.methods import partition


@pytest.mark.parametrize("pes", [2, 3])
def test_halo_of_consecutive_rows_is_guessed_from_a_sample(pes: int) -> None:
    A = grid(60, 50)
    spread = Spread.of(A)
    plain = partition(A, pes, "contiguous").report
    assert spread.ghosts(pes) == pytest.approx(max(plain.ghosts), rel=0.1)
    assert spread.cut(pes) == pytest.approx(2 * plain.edge_cut / pes, rel=0.5)


def test_expected_iterations_of_all_solves_count() -> None:
    assert Gain(1e-8, 1e-8, 1e-6, 1000.0, solves=4).iterations(10**8) == pytest.approx(80_000)
    assert Gain(1e-8, 1e-8, 1e-6, 1000.0, solves=4, expected=300.0).iterations(10**8) == 1200.0
