"""The measurement of wall times: processes of whole programs, and what they tell of themselves."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.process import ProcessError
from cpufree.bench.time.programs import CONTENDERS, KINDS, program
from cpufree.env import for_worker


def run(words: Sequence[str], kind: str, timeout: float) -> dict[str, Any]:
    """Run a program; return its wall time, phases, iterations and error.

    Raises:
        ProcessError: it fails, or takes longer than `timeout` seconds.
    """
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout, env=for_worker()
        )
    except subprocess.TimeoutExpired:
        raise ProcessError(f"it took more than {timeout:g} s") from None
    wall = time.perf_counter() - begin
    try:
        told = json.loads(done.stdout if kind == "command" else done.stdout.splitlines()[-1])
        phases = {str(name): float(seconds) for name, seconds in told["phases"].items()}
        iterations = int(told["iterations"])
        error = float(told["error" if kind != "command" else "relative_residual"])
    except (IndexError, KeyError, TypeError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise ProcessError(last) from None
    # What scripts do to check x is not what is measured; a command checks x for its user.
    wall -= phases.pop("check", 0.0) if kind != "command" else 0.0
    phases["outside"] = max(0.0, wall - sum(phases.values()))
    found = {"seconds": wall, "phases": phases, "iterations": iterations, "error": error}
    return found | {"parts": parts} if (parts := told.get("parts")) else found


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    """Yield the programs of a matrix and a kind, and with each of `pes` what could be chosen."""
    limits = (case.rtol, case.max_iterations, case.solves, case.engine)
    calls: dict[str, Call] = {}
    for contender in (*CONTENDERS, *(f"cpufree on {n}" for n in case.pes.split(",") if n)):
        words = program(contender, case.method, case.matrix, *limits)
        if words is not None and case.asks(contender):
            calls[contender] = partial(run, words, case.method, case.timeout)
    case.facts["programs"] = list(calls)
    yield calls


TIMES = Bench(
    name="time",
    set_up=set_up,
    axes={
        "matrix": ("",),
        "method": KINDS,
        "pes": ("",),
        "engine": ("auto",),
        "rtol": (1e-8,),
        "max_iterations": (100_000,),
        "solves": (5,),
        "timeout": (600.0,),
    },
    ours="cpufree",
    unit="s",
    cold=True,
    repeats=5,
)
