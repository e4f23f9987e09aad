"""From what the core says of a solve to a Result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cpufree.solvers.result import Reason, Result
from cpufree.solvers.setup.layout import Layout

if TYPE_CHECKING:
    from cpufree._core import Outcome


def result_of(
    x: Any,
    outcome: Outcome,
    layout: Layout,
    options: Mapping[str, Any],
    why: str,
    timings: Mapping[str, float],
) -> Result:
    """Return the Result of a solve.

    Args:
        x: the solution, as the caller gets it.
        outcome: of the core, which solved with these options on this layout.
        why: this method.
        timings: of the set-up, and the seconds of the whole solve.
    """
    reason = Reason(outcome["reason"])
    iterations, kernel = int(outcome["iterations"]), float(outcome["seconds"])
    return Result(
        x=x,
        converged=reason.converged,
        reason=reason,
        iterations=iterations,
        residual=float(outcome["residual"]),
        true_residual=float(outcome["true_residual"]),
        weighted_residual=float(outcome["weighted_residual"]),
        bnorm=float(outcome["bnorm"]),
        history=outcome["history"],
        history_stride=int(outcome["history_stride"]),
        method=options["method"],
        pc=options["pc"],
        why="; ".join([why, *layout.why]),
        engine=layout.engine,
        pes=int(outcome["pes"]),
        blocks=int(outcome["blocks"]),
        timings={
            "setup": timings["setup"],
            "solve": timings["solve"],
            "kernel": kernel,
            "per_iteration": kernel / max(1, iterations),
            **timings,
            **{f"solve_{name}": seconds for name, seconds in outcome["laps"].items()},
        },
        counts={
            "reductions": int(outcome["reductions"]),
            "exchanges": int(outcome["exchanges"]),
            "replacements": int(outcome["replacements"]),
            "handed_over_at": int(outcome["handed_over_at"]),
            "lambda_max": float(outcome["lambda_max"]),
            "dependent": int(outcome["dependent"]),
        },
        disturbances=int(outcome["disturbances"]),
        gpus=layout.devices,
        device=layout.device_names,
        levels=tuple(layout.plan.get("levels", ())) if options["pc"] == "amg" else (),
        tolerance=max(options["rtol"] * float(outcome["bnorm"]), options["atol"]),
    )
