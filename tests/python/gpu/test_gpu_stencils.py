"""Stencils on the GPUs of this machine: the bits of the CPU engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpus_here import COUNTS, HERE, NUMBERS, needs_gpu, on_all_counts, several
from interrupts import interrupt_after

from cpufree import InvalidInputError
from cpufree.extension import load_core
from cpufree.stencil import StencilReason, jacobi

pytestmark = needs_gpu

SHAPES = [(3, 3), (5, 9), (64, 64), (129, 67), (300, 41), (700, 1030), (9, 12, 10), (40, 35, 130)]


def grid(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape).astype(dtype)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def on_cpu(*arguments: Any, **named: Any) -> Any:
    return jacobi(*arguments, engine="cpu_threads", **named)


@on_all_counts
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_those_of_the_cpu_engine(shape: tuple[int, ...], dtype: Any, pes: int) -> None:
    u0, source = grid(*shape, dtype=dtype), grid(*shape, dtype=dtype, seed=1)
    for bits in range(2 ** len(shape)):
        boundary = ["periodic" if bits >> a & 1 else "dirichlet" for a in range(len(shape))]
        for term in (None, source):
            result = jacobi(
                u0, 23, boundary=boundary, source=term, engine="cuda_p2p", pes=pes, wait_limit=5
            )
            assert result.engine == "cuda_p2p"
            assert same(result.u, on_cpu(u0, 23, boundary=boundary, source=term).u)


@on_all_counts
@pytest.mark.parametrize("steps", ["auto", 1, 2, 3, 4, 8])
def test_halo_steps_do_not_change_a_bit(steps: Any, pes: int) -> None:
    for u0 in (grid(256, 300, dtype=np.float32), grid(30, 40, 50)):
        result = jacobi(u0, 30, halo_steps=steps, engine="cuda_p2p", pes=pes, wait_limit=5)
        assert same(result.u, on_cpu(u0, 30).u)


@on_all_counts
@pytest.mark.parametrize("check_every", [1, 5, 16])
def test_tol_stops_where_the_cpu_engine_stops(check_every: int, pes: int) -> None:
    for u0 in (grid(60, 70), grid(300, 600, dtype=np.float32), grid(12, 14, 20)):
        how = {"tol": 1e-3, "check_every": check_every}
        result = jacobi(u0, 10**6, engine="cuda_p2p", pes=pes, wait_limit=5, **how)
        expected = on_cpu(u0, 10**6, **how)
        assert result.reason is StencilReason.CONVERGED_ATOL
        assert result.iterations == expected.iterations
        assert result.residual == expected.residual
        assert same(result.u, expected.u)


@on_all_counts
@pytest.mark.parametrize("tol", [None, 0.0])
def test_values_that_overflow_are_no_success(tol: float | None, pes: int) -> None:
    for shape in ((60, 70), (300, 600), (12, 14, 20)):
        u0 = np.full(shape, 3e38, np.float32)
        result = jacobi(u0, 200, tol=tol, check_every=5, engine="cuda_p2p", pes=pes, wait_limit=5)
        assert result.reason is StencilReason.DIVERGED_NANORINF


def experiment(u0: np.ndarray, iterations: int, pes: int, **more: Any) -> Any:
    """Return values and facts of a run with options that `jacobi` does not have."""
    options = {"engine": "cuda_p2p", "pes": pes, "gpus": NUMBERS[:pes], **more}
    options |= {"iterations": iterations, "wait_limit": 5.0}
    out = np.empty_like(u0)
    return out, load_core().jacobi(u0, None, out, [False] * u0.ndim, options, None)


def study(u0: np.ndarray, iterations: int, name: str, pes: int, steps: int) -> Any:
    """Return values and facts of a kernel that leaves something out."""
    return experiment(u0, iterations, pes, halo_steps=steps, study=name)


@on_all_counts
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sweep", ["registers_3d", "time_tiles", "wavefront"])
def test_every_sweep_in_three_dimensions_gives_the_bits_of_the_cpu_engine(
    sweep: str, dtype: Any, pes: int
) -> None:
    u0 = grid(64, 66, 62, dtype=dtype)
    u, facts = experiment(u0, 25, pes, sweep=sweep)
    assert facts["sweep"] == sweep
    assert same(u, on_cpu(u0, 25).u)


@several
@pytest.mark.parametrize("boundary_blocks", [0, 1, 16])
@pytest.mark.parametrize("shape, steps", [((300, 1111), 4), ((64, 90, 140), 1)], ids=str)
def test_specialized_blocks_give_the_bits_of_the_cpu_engine(
    shape: tuple[int, ...], steps: int, boundary_blocks: int
) -> None:
    u0, pes = grid(*shape, dtype=np.float32), COUNTS[-1]
    more = {"sweep": "specialized_blocks", "boundary_blocks": boundary_blocks}
    u, facts = experiment(u0, 37, pes, halo_steps=steps, **more)
    assert facts["sweep"] == "specialized_blocks" and facts["boundary_blocks"] > 0
    assert same(u, on_cpu(u0, 37).u)


@on_all_counts
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape, steps", [((64, 66), 1), ((700, 1030), 1), ((700, 1030), 4), ((40, 35, 130), 1)], ids=str
)
def test_studies_exchange_as_often_and_leave_something_out(
    shape: tuple[int, ...], steps: int, dtype: Any, pes: int
) -> None:
    u0 = grid(*shape, dtype=dtype)
    full, normal = study(u0, 24, "none", pes, steps)
    silent, facts = study(u0, 24, "no-compute", pes, steps)
    assert same(silent, u0)
    assert (facts["exchanges"], facts["checks"]) == (normal["exchanges"], normal["checks"])
    alone, facts = study(u0, 24, "no-comm", pes, steps)
    assert facts["exchanges"] == normal["exchanges"] and facts["iterations"] == 24
    assert same(alone, full) == (pes == 1)


def test_gpus_are_chosen_by_number_or_all() -> None:
    u0 = grid(200, 100)
    expected = on_cpu(u0, 9).u
    for gpus in ([NUMBERS[0]], [NUMBERS[-1]], "all"):
        result = jacobi(u0, 9, engine="cuda_p2p", gpus=gpus, wait_limit=5)
        assert result.pes == (len(HERE) if gpus == "all" else 1)
        assert same(result.u, expected)
    with pytest.raises(InvalidInputError, match="names device 99"):
        jacobi(u0, 9, engine="cuda_p2p", gpus=[99])


def test_auto_takes_gpus_for_large_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPUFREE_ENGINE")
    u0 = np.zeros((1024, 1024), np.float32)
    assert jacobi(u0, 1000).engine == "cuda_p2p"
    assert jacobi(u0, 2).engine == "cpu_threads"


def test_nothing_to_update_and_no_iterations_give_the_first_values() -> None:
    for shape, iters in (((2, 9), 4), ((9, 9), 0)):
        u0 = grid(*shape)
        assert same(jacobi(u0, iters, engine="cuda_p2p").u, u0)


def test_ctrl_c_and_time_limit_end_a_run() -> None:
    u0 = grid(500, 500, dtype=np.float32)
    timer = interrupt_after(0.5)
    result = jacobi(u0, 2**40, engine="cuda_p2p", pes=1)
    timer.join()
    assert result.reason is StencilReason.INTERRUPTED
    assert result.iterations > 0
    limited = jacobi(u0, 2**40, engine="cuda_p2p", pes=1, time_limit=0.5)
    assert limited.reason is StencilReason.TIME_LIMIT


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_on_a_gpu_give_an_array_beside_them(library: str) -> None:
    module = pytest.importorskip(library)
    u0 = grid(60, 70, dtype=np.float32)
    on_gpu = module.asarray(u0) if library == "cupy" else module.from_numpy(u0).cuda()
    u = jacobi(on_gpu, 9, engine="cuda_p2p", wait_limit=5).u
    assert type(u) is type(on_gpu)
    assert same(u.get() if library == "cupy" else u.cpu().numpy(), on_cpu(u0, 9).u)
