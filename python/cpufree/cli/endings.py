"""How the command line tells why a solve has ended: a sentence, advice, and an exit code."""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.solvers.result import Reason, Result
from cpufree.text import counted


@dataclass(frozen=True)
class Ending:
    """How the command line tells a reason: its exit code, a few words, and what to do."""

    exit_code: int
    words: str
    advice: str = ""


KEEP_X = "with --out the x so far is saved and can be given as --x0."
ENDINGS: dict[Reason, Ending] = {
    Reason.CONVERGED_RTOL: Ending(0, "converged"),
    Reason.CONVERGED_ATOL: Ending(0, "converged"),
    Reason.DIVERGED_ITS: Ending(
        10, "iterations (--maxiter)", "Raise --maxiter, loosen --rtol, or try --pc fsai."
    ),
    Reason.STAGNATED: Ending(
        11,
        "stagnated",
        "The tolerance is below what this matrix allows in this precision: loosen --rtol.",
    ),
    Reason.TIME_LIMIT: Ending(12, "time limit", f"Raise --time-limit; {KEEP_X}"),
    Reason.DIVERGED_NANORINF: Ending(
        13,
        "NaN or infinity",
        "Look for huge or non-finite entries in A, b and x0: cpufree info.",
    ),
    Reason.DIVERGED_INDEFINITE_MAT: Ending(
        14,
        "matrix not positive definite",
        "Conjugate gradients need a positive definite matrix. If A is negative definite, solve "
        "-A x = -b; if it is indefinite, try --method minres, and --method bicgstab if it is not "
        "symmetric.",
    ),
    Reason.DIVERGED_INDEFINITE_PC: Ending(
        15, "preconditioner not positive definite", "Try --pc jacobi or --pc none."
    ),
    Reason.DIVERGED_BREAKDOWN: Ending(
        16,
        "breakdown",
        "Try another --method; if entries of A lie at an end of their type's range, scale A and b.",
    ),
    Reason.DIVERGED_DTOL: Ending(
        17,
        "diverged",
        "Try --method cg and check that A is symmetric positive definite: cpufree info. If it is "
        "not, there are --method minres and bicgstab.",
    ),
    Reason.UNCONFIRMED: Ending(
        18,
        "unconfirmed by the check",
        "Loosen --rtol. If that does not help, please report it: the two residuals should agree.",
    ),
    Reason.INTERRUPTED: Ending(
        130, "interrupted (Ctrl-C; the x so far is kept)", KEEP_X.capitalize()
    ),
}
LIMITS = {Reason.DIVERGED_ITS: "--maxiter", Reason.TIME_LIMIT: "--time-limit"}
"""Reasons after which a solve could go on, and the option that lets it."""


def exit_codes() -> str:
    """Return the codes of solves that have not converged, each with a few words."""
    codes = {one.exit_code: one.words for one in ENDINGS.values() if one.exit_code}
    return " · ".join(f"{code} {words}" for code, words in codes.items())


def advice(result: Result) -> str:
    """Return what to do after a solve, "" where it has converged.

    A higher limit is advised without reserve only where the residual has fallen.
    """
    first = float(result.history[0]) if len(result.history) else 0.0
    if result.reason in LIMITS and result.true_residual >= first > 0:
        return (
            f"‖b - A x‖ is {result.true_residual / first:.3g} times what it was at first. In early "
            f"iterations that is usual; after many, a higher {LIMITS[result.reason]} will not "
            "help: check that A is positive definite, or try --pc fsai."
        )
    return ENDINGS[result.reason].advice


def verdict(result: Result) -> str:
    """Return one sentence: converged or not, after how many iterations, and why."""
    state = "Converged" if result.converged else "NOT converged"
    count = counted(result.iterations, "iteration")
    return f"{state} after {count}: {result.reason.meaning} ({result.reason.value})"
