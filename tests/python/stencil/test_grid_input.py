"""Values on grids as users give them: functions that are asked for boxes, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cpufree.cli.stencil_input import FirstValues, parse, random
from cpufree.errors import InvalidInputError, OutOfMemoryError
from cpufree.stencil import jacobi
from cpufree.stencil.grid_input import GridValues, as_grid, whole

pytestmark = pytest.mark.cpu_only


def grid(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(0).random(shape).astype(dtype)


def test_a_function_gives_what_an_array_gives() -> None:
    u0, source = grid(20, 30), grid(20, 30)
    result = jacobi(lambda box: u0[box], 9, shape=u0.shape, source=lambda box: source[box], pes=2)
    assert result.u.tobytes() == jacobi(u0, 9, source=source).u.tobytes()
    assert result.box == whole(u0.shape)


def test_a_function_may_stand_beside_an_array() -> None:
    u0, source = grid(20, 30), grid(20, 30)
    result = jacobi(u0, 9, source=lambda box: source[box])
    assert result.u.tobytes() == jacobi(u0, 9, source=source).u.tobytes()


def test_values_of_a_function_take_the_type_that_is_asked_for() -> None:
    result = jacobi(lambda box: np.zeros((8, 9), int), 3, shape=(8, 9), dtype=np.float32)
    assert result.u.dtype == np.float32


@pytest.mark.parametrize(
    ("u0", "how", "message"),
    [
        (lambda box: 0, {}, "u0 is a function: give the shape of the grid as well"),
        (lambda box: 0, {"shape": 5}, "shape is 5: give 2 or 3 numbers of points"),
        (lambda box: 0, {"shape": (5,)}, "shape has 1 number: give 2 or 3"),
        (lambda box: 0, {"shape": (5, 0)}, "a number of shape is 0"),
        (lambda box: 0, {"shape": (5, 6), "dtype": int}, "choose float32 or float64"),
        (lambda box: 0, {"shape": (5, 6), "dtype": "x"}, "dtype is 'x': choose float32 or"),
        (lambda box: np.zeros((5, 5)), {"shape": (5, 6)}, r"\(5, 5\) for points \[0:5, 0:6\]"),
        (lambda box: np.full((5, 6), np.nan), {"shape": (5, 6)}, "is nan: values must be finite"),
        (lambda box: np.full((5, 6), 1e300), {"shape": (5, 6), "dtype": "f4"}, "too large"),
        (np.zeros((5, 6)), {"shape": (5, 6)}, "shape is for a function"),
        (np.zeros((5, 6)), {"dtype": "f4"}, "dtype is for a function"),
    ],
)
def test_functions_that_do_not_fit_are_refused(u0: Any, how: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        jacobi(u0, 1, **how)


def test_a_grid_that_no_memory_holds_is_told_as_such() -> None:
    with pytest.raises(OutOfMemoryError, match=r"100000 x 1000000000 points .* not enough"):
        jacobi(lambda box: np.zeros((1, 1)), 1, shape=(10**5, 10**9))


def test_errors_of_a_function_are_passed_on() -> None:
    def first(box: object) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        jacobi(first, 3, shape=(8, 9))


def test_summaries_differ_where_arrays_do() -> None:
    values = [as_grid(array, "u0", None, None) for array in (grid(5, 6), grid(5, 6) + 1e-9)]
    assert values[0].summary != values[1].summary


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("box", [np.s_[0:7, 0:9], np.s_[3:5, 2:9], np.s_[4:7, 0:1]])
def test_random_values_of_a_box_are_those_of_the_whole_grid(
    box: tuple[slice, ...], dtype: Any
) -> None:
    expected = np.random.default_rng(12).random((7, 9), dtype=dtype)
    assert np.array_equal(random(12, (7, 9), np.dtype(dtype), box), expected[box])


def test_a_hot_wall_is_hot_where_axis_0_begins() -> None:
    values = parse("hot-wall", "6x4", 2, None).open()
    assert isinstance(values, GridValues)
    assert values.part(np.s_[0:2, 1:4]).tolist() == [[1.0] * 3, [0.0] * 3]
    assert not values.part(np.s_[1:6, 0:4]).any()


def test_the_size_of_a_file_is_known_before_its_values_are_read(tmp_path: Any) -> None:
    np.save(tmp_path / "u0.npy", np.full((4, 5), np.nan))
    values = FirstValues(str(tmp_path / "u0.npy"), 2, None, None).open()
    assert values.shape == (4, 5)
    with pytest.raises(InvalidInputError, match="must be finite"):
        values.part(np.s_[0:2, 0:5])
