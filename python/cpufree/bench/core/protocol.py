"""A contender's side of a benchmark: requests as JSON lines on stdin, answers on stdout.

Programs elsewhere call `serve` with a contender of their own. docs/benchmarking.md lists requests
and answers.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Protocol, TypedDict

from cpufree.errors import CpufreeError, InvalidInputError, UnsupportedError


class _Timed(TypedDict):
    seconds: float
    iterations: int


class SolveAnswer(_Timed, total=False):
    """The answer to a solve."""

    reason: str
    residual: float | None
    split: dict[str, float | None] | None
    """Seconds of the phases of the solve; None: not known."""
    note: str | None
    checksum: str | None
    """Of the values of a grid, where it was asked for."""


class Contender(Protocol):
    """What is measured: a solver that loads one problem at a time."""

    name: str

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Read the problem in folder and set up; return facts, ready for JSON."""

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve; return seconds, iterations, reason, residual, and split (None: not known).

        Who tells the split in solves that ask for it alone (`split`) says so in its facts.
        """

    def close(self) -> None:
        """Free what load has set up; called also where load failed."""


def serve(
    contender: Contender, requests: IO[str] | None = None, answers: IO[str] | None = None
) -> None:
    """Answer requests until `quit` or the end of the input.

    A request that fails gets an answer that says why, and the loop goes on: UnsupportedError and
    NotImplementedError mean what the contender lacks. What else is printed to stdout, by libraries
    too, goes to stderr.
    """
    answers = answers or take_stdout()
    for line in requests or sys.stdin:
        request, answer = None, {}
        try:
            request = json.loads(line)
            answer = _answer(contender, request)
        except Exception as error:  # whatever it is, it is reported to the harness
            answer = refusal(error)
        json.dump(_plain({"ok": True, **answer}), answers, allow_nan=False)
        answers.write("\n")
        answers.flush()
        if isinstance(request, dict) and request.get("do") == "quit":
            return
    contender.close()


def _answer(contender: Contender, request: Any) -> dict[str, Any]:
    """Do what a request says."""
    what = request.get("do") if isinstance(request, dict) else None
    if what == "load":
        contender.close()
        return {"facts": contender.load(Path(request["folder"]), request["options"])}
    if what == "solve":
        return contender.solve(request)
    if what == "quit":
        contender.close()
        return {}
    raise InvalidInputError(f"unknown request {what!r}: load, solve and quit are known")


def refusal(error: Exception) -> dict[str, Any]:
    """Return the answer that says why a request has failed."""
    unsupported = isinstance(error, (UnsupportedError, NotImplementedError))
    if not isinstance(error, (CpufreeError, NotImplementedError)):
        traceback.print_exc()  # to stderr, of which the harness keeps the end
        return {"ok": False, "error": f"{type(error).__name__}: {error}", "unsupported": False}
    return {"ok": False, "error": str(error), "unsupported": unsupported}


def take_stdout() -> IO[str]:
    """Return the stream of answers; what writes to stdout from here on writes to stderr."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _plain(value: Any) -> Any:
    """Return value with NumPy's numbers replaced, None for what JSON does not have."""
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def main(arguments: list[str], make: Callable[[str], Contender]) -> int:
    """Serve the contender that the arguments name, which `make` returns; return the exit status."""
    if len(arguments) != 1:
        print("usage: python -m cpufree.bench.worker NAME", file=sys.stderr)
        return 2
    try:
        contender = make(arguments[0])
    except CpufreeError as error:
        print(f"worker: {error}", file=sys.stderr)
        return 2
    serve(contender)
    return 0
