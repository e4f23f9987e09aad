"""Ranks driven by the host: what the host would do, played in NumPy; and that kernels compile.

DaCe is not needed: its front end has saved the programs (support/dace/dace_cases.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import nvrtc
import pytest
from dace_cases import SAVED, arguments, constants, load, path
from dace_grids import CASES, whole_of
from played_by_host import Played

from cpufree.compiler.ranks import hosted, on_grid
from cpufree.compiler.ranks.host_messages import WAYS
from cpufree.compiler.ranks.hosted import RanksRecording
from cpufree.errors import UnsupportedError

MPI = [case for case in SAVED if "signals" not in case[0]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "ranks"), MPI)
def test_what_the_host_does_gives_the_bits_of_plain_numpy(name: str, ranks: int, way: str) -> None:
    _, plain, points, grids = CASES[name]
    program = load(path(name, ranks))
    for steps in (2, 7, 40):
        recording = RanksRecording(program, {"TSTEPS": steps}, 132, way)
        given = arguments(name, ranks, steps)
        played = Played(recording, given, constants(program))
        launches = played.play()
        assert launches >= 2 * ranks * (steps - 1)
        for key, wanted in zip(("lA", "lB"), plain(points, steps, ranks), strict=True):
            f = next(f for f in recording.ranks.fields if f.name == key)
            for rank, of_rank in enumerate(given):
                played.unload(rank, f, of_rank.arrays[key])
            found = whole_of([a.arrays[key] for a in given], grids[ranks])
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name}, {key}, {steps} steps")


def test_turns_that_are_alike_are_recorded_once() -> None:
    few, many = (
        RanksRecording(load(path("jacobi_2d", 2)), {"TSTEPS": n}, 132) for n in (1001, 100001)
    )
    assert sum(len(s.commands) for s in many.segments) < 400
    assert max(s.repeats for s in many.segments) > max(s.repeats for s in few.segments) > 10


def test_a_loop_leaves_its_variable_as_its_last_turn_does(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks: list[Any] = []
    made = hosted._Rank.__init__

    def keep(self: Any, *words: Any) -> None:
        made(self, *words)
        ranks.append(self)

    monkeypatch.setattr(hosted._Rank, "__init__", keep)
    RanksRecording(load(path("jacobi_2d", 2)), {"TSTEPS": 1001}, 132)
    assert [r.scalars.values["_t"] for r in ranks] == [1000, 1000]


def test_more_slices_than_a_block_keeps_account_of_are_refused() -> None:
    ranks = load(path("jacobi_2d", 2))
    on_grid._check_slices(ranks, 64 * 5, 20)
    with pytest.raises(UnsupportedError, match="321 slices of messages at once with 5 blocks"):
        on_grid._check_slices(ranks, 64 * 5 + 1, 20)


def test_puts_of_a_program_itself_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="no host-driven variant"):
        RanksRecording(load(path("jacobi_2d_signals", 2)), {"TSTEPS": 4}, 132)


@pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
@pytest.mark.parametrize("way", WAYS)
def test_kernels_compile_for_gpus(way: str) -> None:
    recording = RanksRecording(load(path("heat_3d", 4)), {"TSTEPS": 4}, 132, way)
    text = recording.text()
    assert text.count("__global__") == recording.kernels
    assert ("place.heaps[" in text) == (way == "stores") and "copy_region" in text
    assert len(nvrtc.compile_text(text)) > 1000
