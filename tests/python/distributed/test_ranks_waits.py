"""A wait between ranks that is given up: which rank is named."""

from __future__ import annotations

import pytest
from ranks_here import cli, finish, start

from cpufree.distributed.team import late_rank


@pytest.mark.parametrize(
    ("waits", "rank"),
    [
        ([(0, 1, 3.0), (2, 1, 3.1)], 1),  # PE 1 did not wait
        ([(0, 1, 3.0), (1, 0, 0.0), (2, 0, 2.9)], 1),  # PE 1 had been stopped, and has gone on
        ([(0, 1, 3.0), (1, 2, 2.9)], 2),  # PE 0 waited for one that waited for PE 2
        ([(0, 1, 3.0), (1, 0, 2.9)], 1),  # each for the other
        ([], 7),
    ],
)
def test_the_rank_that_kept_others_waiting_is_found(
    waits: list[tuple[int, int, float]], rank: int
) -> None:
    dicts = [{"pe": pe, "waits_for_pe": other, "seconds": s} for pe, other, s in waits]
    assert late_rank(dicts, 7) == rank


def test_a_wait_that_lasts_too_long_is_told_once_about_the_rank_waited_for(place: str) -> None:
    # So large that ranks come to reductions further apart than they look without a clock.
    words = cli(["solve", "gen:poisson2d?nx=700,ny=700", "--rtol", "0", "--maxiter", "100000"])
    ended = finish([start(words, k, 2, place, CPUFREE_WAIT_LIMIT="1e-9") for k in range(2)])
    assert [end.code for end in ended] == [4, 4]
    said = "".join(end.err for end in ended)
    assert said.count("cpufree: error: rank ") == 1
    assert "was waited for: a block waited for another one longer than allowed" in said
