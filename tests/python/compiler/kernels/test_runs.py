"""Runs of programs: whose memory they use, and how arrays of the caller come and go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.kept_runners import KeptRunners


def runners(most: int) -> tuple[KeptRunners, list[str], Any]:
    """Return kept runners, of which names stand for the runners, what was made, and a maker."""
    made: list[str] = []

    def make() -> Any:
        made.append(f"runner {len(made)}")
        return made[-1]

    return KeptRunners(most), made, make


def test_a_runner_is_kept_for_the_next_call() -> None:
    kept, made, make = runners(2)
    for _ in range(3):
        with kept.taken("a", make) as found:
            assert (found, len(kept)) == ("runner 0", 0)
    assert list(kept) == made == ["runner 0"]


def test_a_call_beside_another_one_has_a_runner_of_its_own() -> None:
    kept, made, make = runners(2)
    for _ in range(2):
        with kept.taken("a", make) as outer, kept.taken("a", make) as inner:
            assert outer != inner
    assert made == ["runner 0", "runner 1"]


def test_a_runner_is_kept_after_an_error() -> None:
    kept, _, make = runners(2)
    with pytest.raises(KeyError), kept.taken("a", make):
        raise KeyError
    assert list(kept) == ["runner 0"]


def test_those_that_were_used_last_are_kept() -> None:
    kept, _, make = runners(2)
    for key in ("a", "b", "a", "c"):
        with kept.taken(key, make):
            pass
    assert list(kept) == ["runner 0", "runner 2"]


def test_room_is_made_before_another_one_is() -> None:
    kept, _, make = runners(1)
    with kept.taken("a", make):
        pass

    def make_alone() -> Any:
        assert len(kept) == 0
        return make()

    with kept.taken("b", make_alone):
        pass


@cpufree.program
def smooth(u: Any, v: Any, n: int) -> None:
    for _ in range(n):
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        u[1:-1] = 0.5 * (v[2:] + v[:-2])


def test_rows_of_arrays_with_gaps_are_copied_where_they_lie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def copied(*_: Any, **__: Any) -> Any:
        pytest.fail("a whole array was copied")

    monkeypatch.setattr(Arguments, "contiguous", copied)
    wide = np.arange(9.0 * 14).reshape(9, 14) ** 2
    wanted = wide.copy()
    smooth.function(wanted[:, ::2].T, wanted[:, 1::2].T, 3)
    smooth.run((wide[:, ::2].T, wide[:, 1::2].T, 3), engine="cpu_threads", pes=2)
    np.testing.assert_array_equal(wide, wanted)


def test_a_place_for_results_has_no_copy_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Arguments("f", {"u": np.ones((4, 6))[:, ::2], "v": np.ones(4)})
    monkeypatch.setattr(np, "ascontiguousarray", lambda array: pytest.fail("copied"))
    place = given.contiguous("u", copy_values=False)
    assert place.flags.c_contiguous and place.shape == (4, 3)
