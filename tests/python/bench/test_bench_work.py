"""The counting of operations, flops and bytes: by hand, and against published tables."""

from __future__ import annotations

from typing import Any

import pytest

from cpufree.bench.core import device_copy
from cpufree.bench.core.work import Problem, least_bytes, operations

TINY = Problem(rows=10, nnz=28)


@pytest.mark.parametrize(
    ("method", "flops", "moved"),
    [
        # cg: 2 products of 2 * 28 flops; a dot, 2 norms, 3 updates of 20 flops each.
        ("cg", 2 * 56 + 6 * 20, 2 * 20 * 38 + 160 + 2 * 80 + 3 * 240),
        # prcg: 2 products; 2 dots, 3 norms, 3 updates.
        ("prcg", 2 * 56 + 8 * 20, 2 * 20 * 38 + 2 * 160 + 3 * 80 + 3 * 240),
        # pipecg: 3 products; a dot, 2 norms, 6 updates.
        ("pipecg", 3 * 56 + 9 * 20, 3 * 20 * 38 + 160 + 2 * 80 + 6 * 240),
    ],
)
def test_one_iteration_counted_by_hand(method: str, flops: float, moved: float) -> None:
    done = operations(method, 1)
    assert done.flops(TINY) == flops
    assert done.bytes(TINY) == moved


def test_jacobi_adds_a_scaling_and_a_dot_product() -> None:
    plain, jacobi = operations("cg", 5), operations("cg", 5, jacobi=True)
    assert jacobi.flops(TINY) - plain.flops(TINY) == 5 * (10 + 20)
    assert jacobi.bytes(TINY) - plain.bytes(TINY) == 5 * (240 + 160)


def test_single_precision_halves_values_and_keeps_indices() -> None:
    single = Problem(rows=10, nnz=28, value_bytes=4)
    done = operations("cg", 1)
    assert done.flops(single) == done.flops(TINY)
    assert done.bytes(single) == 2 * 12 * 38 + 80 + 2 * 40 + 3 * 120


@pytest.mark.parametrize(
    ("rows", "nnz", "iterations", "seconds", "gflops", "terabytes"),
    [
        (943_695, 77_651_847, 4772, 3.36, 233.98, 2.36),  # audikw_1
        (2_911_419, 127_729_899, 25_290, 33.62, 214.09, 2.18),  # Bump_2911
    ],
)
def test_rates_agree_with_table_2_of_trotter(
    rows: int, nnz: int, iterations: int, seconds: float, gflops: float, terabytes: float
) -> None:
    # aCG (standard) on an H100; seconds are printed to three digits.
    done, problem = operations("cg", iterations), Problem(rows, nnz)
    assert done.flops(problem) / seconds / 1e9 == pytest.approx(gflops, rel=2e-3)
    assert done.bytes(problem) / seconds / 1e12 == pytest.approx(terabytes, rel=4e-3)


def test_rates_of_pipelined_cg_agree_with_table_3_of_trotter() -> None:
    # poisson1d, aCG (NCCL) on 16 H100: 930 iterations in 8.33 s; rates are per GPU.
    done, problem = operations("pipecg", 930), Problem(1_073_741_824, 3_221_225_470)
    assert done.flops(problem) / 16 / 8.33 / 1e9 == pytest.approx(164.98, rel=1e-3)
    assert done.bytes(problem) / 16 / 8.33 / 1e12 == pytest.approx(1.86, rel=3e-3)


def test_least_bytes_are_the_matrix_and_the_passes_over_vectors() -> None:
    matrix = 12 * 28 + 4 * 10
    assert least_bytes(TINY, "cg") == matrix + 10 * 80
    assert least_bytes(TINY, "pipecg") == matrix + 15 * 80
    jacobi = Problem(10, 28, jacobi=True)
    assert least_bytes(jacobi, "prcg") == matrix + 12 * 80
    assert least_bytes(jacobi, "pipecg") == matrix + 19 * 80
    assert least_bytes(Problem(10, 28, 4), "cg") == 8 * 28 + 4 * 10 + 10 * 40


def test_copy_falls_back_on_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device: int, size: int) -> Any:
        raise ImportError("not here")

    copiers = {"first": broken, "second": device_copy.numpy_copier}
    monkeypatch.setattr(device_copy, "COPIERS", copiers)
    found = device_copy.measure_copy("cuda_p2p", 0, 4096, 3)
    assert found["by"] == "second"
    assert len(found["bytes_per_second"]) == 3
    monkeypatch.setattr(device_copy, "COPIERS", {"first": broken})
    with pytest.raises(RuntimeError, match="first: ImportError: not here"):
        device_copy.measure_copy("cuda_p2p", 0, 4096, 3)
