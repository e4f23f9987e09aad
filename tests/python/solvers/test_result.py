"""Result: what it derives, how it reads, what goes into JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from cpufree.solvers.result import Reason, Result


def result(**changes: Any) -> Result:
    """Return a converged result, with changes."""
    fields: dict[str, Any] = {
        "x": np.array([1.0, 2.0]),
        "converged": True,
        "reason": Reason.CONVERGED_RTOL,
        "iterations": 7,
        "residual": 1.5e-6,
        "true_residual": 2e-6,
        "bnorm": 4.0,
        "rhs": "float64 (2,)",
        "history": np.array([4.0, 1.0, 1.5e-6]),
        "history_stride": 1,
        "method": "prcg",
        "pc": "jacobi",
        "why": "prcg: one reduction; 1 PE: asked for",
        "engine": "cpu_threads",
        "pes": 1,
        "blocks": 2,
        "timings": {"setup": 0.25, "solve": 0.5, "kernel": 0.4, "per_iteration": 0.4 / 7},
    }
    return Result(**{**fields, **changes})


def test_repr_tells_verdict_residuals_place_and_time() -> None:
    assert repr(result()) == "\n".join(
        [
            "Result: converged after 7 iterations (CONVERGED_RTOL)",
            "  true residual       2.000e-06   relative to b: 5.000e-07",
            "  recursive residual  1.500e-06",
            "  right-hand side     float64 (2,), ‖b‖ 4.000e+00",
            "  x                   float64 (2,)",
            "  method              prcg, preconditioner jacobi",
            "  engine              cpu_threads, 1 PE × 2 blocks",
            "  seconds             setup 0.25, solve 0.5, kernel 0.4, per_iteration 0.0571",
            "  why                 prcg: one reduction",
            "                      1 PE: asked for",
        ]
    )


def test_repr_of_a_failure_says_not_converged_and_why_and_warns() -> None:
    text = repr(
        result(converged=False, reason=Reason.STAGNATED, iterations=1, warnings=("mind the gap",))
    )
    assert text.startswith("Result: NOT converged after 1 iteration (STAGNATED: rounding errors")
    assert text.endswith("  warning             mind the gap")


def test_info_is_zero_when_converged() -> None:
    assert result().info == 0


@pytest.mark.parametrize(("iterations", "info"), [(12, 12), (0, 1)])
def test_info_of_a_failure_is_the_number_of_iterations_and_never_zero(
    iterations: int, info: int
) -> None:
    failed = result(converged=False, reason=Reason.DIVERGED_ITS, iterations=iterations)
    assert failed.info == info


@pytest.mark.parametrize(
    ("true_residual", "bnorm", "relative"),
    [(2e-6, 4.0, 5e-7), (0.0, 0.0, 0.0), (1.0, 0.0, math.inf)],
)
def test_relative_residual_divides_the_true_residual_by_b(
    true_residual: float, bnorm: float, relative: float
) -> None:
    assert result(true_residual=true_residual, bnorm=bnorm).relative_residual == relative


def test_to_dict_survives_json_and_leaves_x_out() -> None:
    content = result(warnings=("w",), counts={"reductions": 8}).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert "x" not in content
    assert content["reason"] == "CONVERGED_RTOL"
    assert content["history"] == [4.0, 1.0, 1.5e-6]
    assert content["info"] == 0
    assert content["relative_residual"] == 5e-7


def test_to_dict_puts_none_for_what_json_cannot_write() -> None:
    content = result(
        true_residual=np.float64("nan"), history=np.array([1.0, math.inf]), bnorm=0.0
    ).to_dict()
    assert content["true_residual"] is None
    assert content["history"] == [1.0, None]
    assert content["relative_residual"] is None


def test_result_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        result().iterations = 3  # type: ignore[misc]


def test_exactly_two_reasons_mean_convergence() -> None:
    assert [reason.name for reason in Reason if reason.converged] == [
        "CONVERGED_RTOL",
        "CONVERGED_ATOL",
    ]


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_equals_its_name_and_has_a_meaning(reason: Reason) -> None:
    assert reason == reason.name == str(reason)
    assert len(reason.meaning) > 10


def test_a_disturbed_solve_says_so_and_a_quiet_one_nothing() -> None:
    text = repr(result(disturbances=3))
    assert "took the core of a thread 3 times; the other threads did its work" in text
    assert "disturbed" not in repr(result())
