"""Triggered operations on GPUs: both PEs on the first GPU, and on two where there are two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gpus_here import NUMBERS, needs_gpu

from cpufree import triggered
from cpufree.errors import InvalidInputError, UnsupportedError, WaitTimeoutError
from cpufree.triggered.extension import GPU_BACK_ENDS, load_gpu_extension

SCRIPTS = Path(__file__).parents[2] / "cpp" / "triggered" / "trigger_scripts.txt"


def _why_not() -> str:
    try:
        load_gpu_extension()
    except UnsupportedError as error:
        return str(error)
    return ""


pytestmark = [needs_gpu, pytest.mark.skipif(bool(_why_not()), reason=_why_not())]
two_gpus = pytest.mark.skipif(len(NUMBERS) < 2, reason="there is one GPU")
PLACES = [[0, 0], pytest.param([0, 1], marks=two_gpus)]
WITHIN_KERNELS = [name for name in GPU_BACK_ENDS if name != "on_stream"]


@pytest.mark.parametrize("gpus", PLACES)
@pytest.mark.parametrize("back_end", GPU_BACK_ENDS)
def test_back_end_agrees_with_the_rules_on_every_script(back_end: str, gpus: list[int]) -> None:
    replays = load_gpu_extension().scripts(SCRIPTS.read_text(), gpus, back_end, 4)
    assert len(replays) == 22
    assert [one["difference"] for one in replays if one["wrong"]] == []
    assert all(one["skipped"] or one["replays"] == 4 for one in replays)


@pytest.mark.parametrize("gpus", PLACES)
@pytest.mark.parametrize("back_end", WITHIN_KERNELS)
def test_put_of_two_blocks_arrives_before_the_kernel_ends(back_end: str, gpus: list[int]) -> None:
    with triggered.Domain(pes=2, blocks=2, gpus=gpus, back_end=back_end) as domain:
        source, target = domain.buffer("source", 8), domain.buffer("target", 8)
        result = domain.buffer("result", 8)
        domain.put(7, source, target, pe=0, to=1, threshold=2, signal=3)
        program = domain.program()
        for block in range(2):
            program.block(0, block).store(source.at(4 * block, 4), 1.0 + block).trigger(7)
        program.block(1).wait_signal(3, origin=0).copy(target, result)
        domain.run(program)
        assert result.on(1).tolist() == [1.0] * 4 + [2.0] * 4


@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("back_end", WITHIN_KERNELS)
def test_long_run_delivers_every_word(back_end: str, channels: int) -> None:
    _, wrong, found, expected = load_gpu_extension().soak([0, 0], back_end, 100, 2, 500, channels)
    assert wrong == 0
    assert found == expected


@pytest.mark.parametrize("back_end", WITHIN_KERNELS)
def test_no_trigger_of_4096_threads_is_lost(back_end: str) -> None:
    assert load_gpu_extension().flood(0, back_end, 32, 128, 128 * 25) > 0.0


@pytest.mark.parametrize("way", ["triggered", "at_end", "host"])
def test_jacobi_has_the_bits_of_the_cpu(way: str) -> None:
    start = np.random.default_rng(1).random((40, 33))
    u = start.copy()
    load_gpu_extension().jacobi(u, 25, [0, 0], 3, 64, way, "copy_engine", 10.0)
    assert np.array_equal(u, triggered.jacobi(start, 25))


def test_hang_report_says_what_the_nic_has_seen() -> None:
    with triggered.Domain(pes=2, gpus=[0, 0], wait_limit=0.5) as domain:
        source, target = domain.buffer("source", 1), domain.buffer("target", 1)
        domain.put(7, source, target, pe=0, to=1, threshold=4, signal=0)
        program = domain.program()
        for _ in range(3):
            program.block(0).trigger(7)
        program.block(1).wait_signal(0, origin=0)
        with pytest.raises(WaitTimeoutError, match=r"tag 7, epoch 0: 3 of 4 triggers seen"):
            domain.run(program)


def test_a_domain_names_a_gpu_for_each_pe() -> None:
    with pytest.raises(InvalidInputError, match="names one for each of its 3 PEs, not 2"):
        triggered.Domain(pes=3, gpus=[0, 0])
