"""A contender's side of a benchmark: requests as JSON lines on stdin, answers on stdout."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, UnsupportedError


def serve(contender: Any) -> None:
    """Answer requests until `quit` or the end of the input; what is printed goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = None
        try:
            request = json.loads(line)
            answer = {"ok": True, **_answer(contender, request)}
        except Exception as error:  # whatever it is, the harness is told
            unsupported = isinstance(error, UnsupportedError)
            answer = {"ok": False, "error": str(error), "unsupported": unsupported}
        print(json.dumps(answer), file=answers, flush=True)
        if isinstance(request, dict) and request.get("do") == "quit":
            return
    contender.close()


def _answer(contender: Any, request: Any) -> dict[str, Any]:
    what = request.get("do") if isinstance(request, dict) else None
    if what == "load":
        contender.close()
        return {"facts": contender.load(Path(request["folder"]), request["options"])}
    if what == "solve":
        return dict(contender.solve(request))
    if what == "quit":
        contender.close()
        return {}
    raise InvalidInputError(f"unknown request {what!r}: load, solve and quit are known")
