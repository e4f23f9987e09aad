"""Kernels that stream rows through registers give the bits of plain Python on real GPUs."""

from __future__ import annotations

from typing import Any

import edge_programs as edge
import grid_programs as grids
import numpy as np
import pytest
from gpus_here import COUNTS, needs_gpu
from grid_programs import copies, plainly
from kernel_ways import streamed

from cpufree.compiler import decorated

pytestmark = needs_gpu
RANDOM = np.random.default_rng(8)


def _arrays(*shapes: tuple[int, int]) -> list[Any]:
    return [RANDOM.random(shape) for shape in shapes]


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "jacobi_2d": (grids.jacobi_2d, (*_arrays((203, 311), (203, 311)), 7)),
    "jacobi_2d, float": (
        grids.jacobi_2d,
        (*(a.astype(np.float32) for a in _arrays((203, 517), (203, 517))), 7),
    ),
    "fdtd_2d": (grids.fdtd_2d, (*_arrays(*[(157, 307)] * 3), RANDOM.random(9), 9)),
    "acoustic": (
        grids.acoustic,
        (*_arrays((203, 311), (203, 311)), 0.01 * _arrays((203, 311))[0],
         grids._second_derivative(4), 7),
    ),
    "shallow_water": (
        grids.shallow_water,
        (*_arrays((203, 311), (204, 311), (203, 312)), 9.81, 1e-4, 7),
    ),
    "gray_scott": (grids.gray_scott, (*_arrays((203, 309), (203, 309)), 0.06, 0.062, 7)),
    "life": (grids.life, (RANDOM.integers(0, 2, (203, 509)).astype(np.int32), 7)),
    "swapped": (edge.swapped, (*_arrays((301, 203), (301, 203)), 11)),
    "others aside": (edge.reads_others_aside, (*_arrays((203, 311), (203, 311)), 7)),
    "others further": (edge.reads_others_further, (*_arrays((203, 311), (203, 311)), 7)),
    "three in turn": (edge.three_in_turn, (*_arrays(*[(301, 203)] * 3), 11)),
}  # fmt: skip


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.timeout(600)
def test_streams_give_the_bits_of_plain_python(
    name: str, pes: int, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "acoustic" and turns == 3:
        pytest.skip("takes too many registers")

    program, arguments = CASES[name]
    monkeypatch.setattr(decorated, "chosen_kernel", streamed(turns))
    program._gpu_runs.clear()
    plain, ours = copies(arguments), copies(arguments)
    plainly(program)(*plain)
    program.run(ours, engine="cuda_p2p", pes=pes, wait_limit=300)
    kernel = next(iter(program._gpu_runs)).engine.kernel
    assert kernel.text.on_chip.turns == turns and kernel.layout.slabs.pes == pes
    for mine, other in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(mine, other)
