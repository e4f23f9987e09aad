"""A run is compared with another computation of the same, where cpufree.dace.check asks for it."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

dace = pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import cpufree.dace  # noqa: E402
from cpufree.dace import checked  # noqa: E402
from cpufree.dace.lowering.lower import LoweredGraph  # noqa: E402
from cpufree.errors import InvalidInputError, UnsupportedError, WrongResultError  # noqa: E402

M, N = (dace.symbol(n, dace.int64) for n in "MN")
_ROUGH = 1.0


@dace.program
def smooth(A: dace.float64[N, M], B: dace.float64[N, M], steps: dace.int64):
    for _t in range(steps):
        B[1:-1] = 0.25 * A[:-2] + 0.5 * A[1:-1] + 0.25 * A[2:]
        A[1:-1] = B[1:-1] * _ROUGH
    return np.sum(A), np.max(B)


@dace.program
def doubled(A: dace.float64[N], k: dace.int64[N]):
    A[2:] = 2.0 * A[2:]
    k[:] = k + 3


def grids() -> tuple[Any, Any]:
    return np.linspace(-1, 2, 60).reshape(12, 5), np.zeros((12, 5))


@pytest.fixture
def off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the lowering make another program than the one that is asked for."""
    lowered = cpufree.dace.compile(other).lower(np.zeros(9), np.zeros(9, np.int64))
    made = LoweredGraph(lowered, {}, {}, None)
    monkeypatch.setattr("cpufree.dace.program.lowered_graph", lambda *_: made)


@dace.program
def other(A: dace.float64[N], k: dace.int64[N]):
    A[3:] = 2.0 * A[3:]
    k[:] = k + 3


@pytest.mark.parametrize("how", [True, "dace", "interpreter"])
def test_a_run_that_agrees_returns_and_writes_as_ever(
    how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree.dace.check", how)
    wanted, given = grids(), grids()
    expected = smooth.f(*wanted, 4)
    found = cpufree.dace.compile(smooth).run((*given, 4), engine="cpu_threads", pes=2)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    for mine, plain in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(mine, plain)


def test_a_wrong_program_is_found_by_daces_own_code(
    off_by_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree.dace.check", True)
    A, k = np.arange(1.0, 10.0), np.arange(9)
    with pytest.raises(WrongResultError, match=r"A\[2\] is 3\.0, and 6\.0 by DaCe's own") as caught:
        cpufree.dace.compile(doubled).run((A, k), engine="cpu_threads")
    assert "test_check.py:" in str(caught.value) and "report this" in str(caught.value)
    assert A.tolist() == list(range(1, 10)) and k.tolist() == list(range(9))


def test_a_wrong_program_passes_without_check(
    off_by_one: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpufree.dace.check", False)
    A = np.arange(1.0, 10.0)
    cpufree.dace.compile(doubled).run((A, np.arange(9)), engine="cpu_threads")
    assert A[2] == 3.0


def test_a_wrong_engine_is_found_by_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    program = cpufree.dace.compile(doubled)
    right = type(program).__mro__[1].run

    def wrong(self: Any, args: Any, kwargs: Any, **options: Any) -> Any:
        result = right(self, args, kwargs, **options)
        args[1][4] += 1
        return result

    monkeypatch.setattr(type(program).__mro__[1], "run", wrong)
    k = np.arange(9)
    with pytest.raises(WrongResultError, match=r"k\[4\] is 8, and 7 by the interpreter"):
        program.run((np.zeros(9), k), engine="cpu_threads")
    assert k.tolist() == list(range(9))


def test_a_constant_of_the_module_that_has_changed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpufree.dace.check", True)
    given = grids()
    codes = checked.codes.of(program := cpufree.dace.compile(smooth), {})
    assert checked.codes.of(program, {}) is codes
    monkeypatch.setitem(smooth.f.__globals__, "_ROUGH", 0.5)
    assert checked.codes.of(program, {}) is not codes
    assert given[0][0, 0] == -1.0


def test_a_run_that_is_ended_is_not_compared() -> None:
    A, B = grids()
    program = cpufree.dace.compile(smooth)
    found = program.run((A, B, 10**9), engine="cpu_threads", progress=lambda *_: False)
    assert found is None and B.max() == 0.0


def test_another_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpufree.dace.check", "always")
    with pytest.raises(InvalidInputError, match="check is 'always': use True"):
        cpufree.dace.compile(doubled).run((np.zeros(9), np.arange(9)))


def test_code_of_daces_that_cannot_be_built_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no CMake")

    monkeypatch.setattr("cpufree.dace.check", True)
    monkeypatch.setattr("cpufree.dace.checked._Codes.of", fails)
    with pytest.raises(UnsupportedError, match=r"no CMake\n.*check = 'interpreter'"):
        cpufree.dace.compile(doubled).run((np.zeros(9), np.arange(9)), engine="cpu_threads")


@dace.program
def to_itself(A: dace.float64[N]):
    dace.comm.Send(A[1:3], 0, 0)
    dace.comm.Recv(A[4:6], 0, 0)


def test_runs_of_ranks_say_that_they_are_not_checked(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cpufree"):
        cpufree.dace.compile(to_itself).run_ranks(lambda r, n: {"A": np.arange(8.0)}, 1)
    assert "cpufree.dace.check does not check run_ranks" in caplog.text
