"""Stencils from Python: values, options, stopping, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interrupts import interrupt_after

import cpufree
from cpufree import InvalidInputError, WaitTimeoutError
from cpufree.stencil import StencilReason, jacobi, reference

pytestmark = pytest.mark.cpu_only

FOREVER = 2**40


def grid(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape).astype(dtype)


def by_numpy(u: np.ndarray, iters: int, periodic: bool, source: Any = None) -> np.ndarray:
    """Return iterations by array operations, in the order of additions that is promised."""
    weight = u.dtype.type(1) / u.dtype.type(2 * u.ndim)
    for _ in range(iters):
        total = None
        for axis in range(u.ndim):
            pair = np.roll(u, 1, axis) + np.roll(u, -1, axis)
            total = pair if total is None else total + pair
        new = weight * (total if source is None else total + source)
        if not periodic:
            inner = (slice(1, -1),) * u.ndim
            kept, kept[inner] = u.copy(), new[inner]
            new = kept
        u = new
    return u


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(33, 20), (9, 12, 10)])
@pytest.mark.parametrize("boundary", ["dirichlet", "periodic"])
def test_values_are_those_of_array_operations(
    dtype: Any, shape: tuple[int, ...], boundary: str
) -> None:
    u0, source = grid(*shape, dtype=dtype), grid(*shape, dtype=dtype, seed=1)
    result = jacobi(u0, 12, boundary=boundary, source=source, pes=2, halo_steps=2)
    assert result.u.dtype == dtype
    assert result.reason is StencilReason.CONVERGED_ITS
    assert np.array_equal(result.u, by_numpy(u0, 12, boundary == "periodic", source))


def test_reference_is_that_of_array_operations() -> None:
    u0 = grid(11, 13)
    assert np.array_equal(reference(u0, 9), by_numpy(u0, 9, periodic=False))


def test_each_axis_may_have_a_boundary_of_its_own() -> None:
    u0 = np.zeros((6, 5))
    u0[0], u0[-1] = 1.0, 3.0
    u = jacobi(u0, 5000, boundary=("dirichlet", "periodic")).u
    assert u == pytest.approx(np.linspace(1.0, 3.0, 6)[:, None] * np.ones(5))


def test_pes_blocks_and_halo_steps_do_not_change_a_bit() -> None:
    u0 = grid(40, 31)
    expected = jacobi(u0, 25, pes=1, blocks=1, halo_steps=1).u
    for pes, blocks, steps in [(2, 1, 1), (3, 2, 4), (1, 4, 5), (5, 1, 8)]:
        assert np.array_equal(jacobi(u0, 25, pes=pes, blocks=blocks, halo_steps=steps).u, expected)


def test_u0_is_not_changed_and_may_have_any_layout() -> None:
    whole = grid(30, 40)
    view = whole[::2, ::-2].T
    before = whole.copy()
    assert np.array_equal(jacobi(view, 7).u, jacobi(view.copy(), 7).u)
    assert np.array_equal(whole, before)
    swapped = view.astype(">f8")
    assert np.array_equal(jacobi(swapped, 7).u, jacobi(view, 7).u)
    assert jacobi(view.astype(">f4"), 1).u.dtype == np.float32


def test_integers_become_float64() -> None:
    assert jacobi(np.eye(5, dtype=int), 1).u.dtype == np.float64


def test_result_reports_rates_and_division() -> None:
    result = jacobi(grid(100, 90, dtype=np.float32), 50, pes=2)
    assert result.updates == 98 * 88
    assert result.moved_bytes == 2 * 4 * 98 * 88
    assert result.glups == pytest.approx(1e-9 * result.updates * 50 / result.seconds)
    assert result.pes == 2
    assert result.plan["pe_grid"] == "2 x 1"
    assert result.plan["pe_halo_points"] > 0
    assert "CONVERGED_ITS" in repr(result)
    assert result.to_dict()["shape"] == [100, 90]


def test_fewer_pes_and_halo_steps_than_asked_for_are_said() -> None:
    result = jacobi(grid(5, 40), 4, pes=2, halo_steps=40)
    assert result.halo_steps < 40
    assert any("tiles are no wider" in note for note in result.warnings)
    crowded = jacobi(grid(3, 4), 4, pes=8)
    assert crowded.pes == 2
    assert any("rows for 2 PEs only, not for 8" in note for note in crowded.warnings)


# --- stopping ------------------------------------------------------------------------------------


def test_tol_stops_where_no_point_changes_by_more() -> None:
    u0 = grid(12, 12)
    result = jacobi(u0, FOREVER, tol=1e-7, check_every=5, pes=2)
    assert result.reason is StencilReason.CONVERGED_ATOL
    before = jacobi(u0, result.iterations - 1).u
    assert np.abs(result.u - before).max() == result.residual <= 1e-7


def test_tol_that_is_not_met_is_said() -> None:
    result = jacobi(grid(50, 50), 10, tol=1e-12)
    assert result.reason is StencilReason.DIVERGED_ITS
    assert result.iterations == 10
    assert result.residual > 1e-12


@pytest.mark.parametrize("tol", [None, 0.0])
def test_values_that_overflow_are_no_success(tol: float | None) -> None:
    result = jacobi(np.full((30, 30), 1.7e308), 50, tol=tol, check_every=5, pes=2)
    assert result.reason is StencilReason.DIVERGED_NANORINF
    assert not np.isfinite(result.residual)


def test_time_limit_stops() -> None:
    result = jacobi(grid(60, 60), FOREVER, time_limit=0.1, pes=2)
    assert result.reason is StencilReason.TIME_LIMIT
    assert np.isnan(result.residual)


def test_progress_sees_iterations_and_can_stop() -> None:
    seen: list[tuple[int, float]] = []

    def progress(iteration: int, update: float) -> bool:
        seen.append((iteration, update))
        return len(seen) < 3

    result = jacobi(grid(300, 300), FOREVER, tol=0.0, check_every=10, progress=progress)
    assert result.reason is StencilReason.INTERRUPTED
    assert result.iterations >= seen[-1][0] > 0
    assert 0 < seen[-1][1] < 1


def test_errors_of_progress_are_passed_on() -> None:
    def progress(iteration: int, update: float) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        jacobi(grid(60, 60), FOREVER, progress=progress)


@pytest.mark.parametrize("pes", [1, 2])
def test_ctrl_c_keeps_the_values_so_far(pes: int) -> None:
    timer = interrupt_after(0.2)
    result = jacobi(grid(200, 200), FOREVER, pes=pes, blocks=1)
    timer.join()
    assert result.reason is StencilReason.INTERRUPTED
    assert result.iterations > 0
    if result.iterations < 3000:
        assert np.array_equal(result.u, reference(grid(200, 200), result.iterations))


def test_wait_that_is_too_short_is_told_with_the_channel() -> None:
    with pytest.raises(WaitTimeoutError, match=r"halo arrival") as failed:
        jacobi(grid(2000, 2000), FOREVER, pes=2, blocks=4, wait_limit=1e-9)
    assert failed.value.waits


# --- wrong input ---------------------------------------------------------------------------------


def test_values_that_are_not_finite_are_refused_with_their_place() -> None:
    u0 = grid(4, 5)
    u0[2, 3] = np.nan
    with pytest.raises(InvalidInputError, match=r"u0\[2, 3\] is nan: values must be finite"):
        jacobi(u0, 1)
    with pytest.raises(InvalidInputError, match=r"source\[0, 0\] is inf"):
        jacobi(grid(4, 5), 1, source=np.full((4, 5), np.inf))


@pytest.mark.parametrize(
    ("u0", "message"),
    [
        (np.zeros(5), "u0 has 1 dimension: give an array of 2 or 3"),
        (np.zeros((2, 2, 2, 2)), "u0 has 4 dimensions"),
        (np.zeros((3, 0)), "every dimension needs a point"),
        (np.zeros((3, 3), dtype=complex), "u0 holds complex128: give real numbers"),
        (np.array([["a"]]), "give real numbers"),
        (np.zeros((3, 3), dtype=bool), "u0 holds bool"),
        (np.ma.masked_array(np.zeros((3, 3)), mask=True), "has a mask"),
        ([[1.0, 2.0], [3.0]], "u0 is no array of numbers"),
    ],
)
def test_arrays_that_are_no_grids_are_refused(u0: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        jacobi(u0, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"boundary": "neumann"}, "unknown boundary 'neumann': choose one of dirichlet, periodic"),
        ({"boundary": None}, "unknown boundary None"),
        ({"boundary": ("periodic",)}, "boundary has 1 name, but u0 2 dimensions"),
        ({"source": np.zeros((3, 3))}, r"source has shape \(3, 3\), u0 \(6, 6\)"),
        ({"tol": -1.0}, "tol is -1.0"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"check_every": 0}, "check_every is 0"),
        ({"pes": 0}, "pes is 0"),
        ({"blocks": "many"}, "blocks is 'many'"),
        ({"halo_steps": 0}, "halo_steps is 0"),
        ({"halo_steps": 65}, "halo_steps is 65: give 'auto' or a whole number from 1 to 64"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"progress": 3}, "progress is 3"),
        ({"engine": "gpu"}, "unknown engine 'gpu'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        jacobi(grid(6, 6), 3, **options)


@pytest.mark.parametrize("iters", [-1, 1.5, "many", True])
def test_wrong_numbers_of_iterations_are_refused(iters: Any) -> None:
    with pytest.raises(InvalidInputError, match="iters is"):
        jacobi(grid(6, 6), iters)


def test_too_large_source_for_float32_is_refused() -> None:
    source = np.full((6, 6), 1e300)
    with pytest.raises(InvalidInputError, match="too large for float32: give u0 as float64"):
        jacobi(grid(6, 6, dtype=np.float32), 1, source=source)


def test_environment_presets_pes_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPUFREE_PES", "2")
    monkeypatch.setenv("CPUFREE_BLOCKS", "3")
    result = jacobi(grid(60, 60), 3)
    assert (result.pes, result.blocks) == (2, 3)
    assert jacobi(grid(60, 60), 3, pes=1, blocks=1).pes == 1


def test_stencil_is_part_of_the_package() -> None:
    assert cpufree.stencil.jacobi is jacobi
