"""One program as text, with its arguments: what generators write and the oracle runs.

A text is a whole module. It defines the program `p` and those that `p` calls, `arguments()`, which
makes the arguments of a call, and perhaps `between()`, which changes something between two calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dace_plain import is_dace, names_of

HEAD = "import math\n\nimport numpy as np\n\nimport cpufree\n"
_MOST_LINES = 4000  # that Python runs of a program: what takes more is not tried


@dataclass(frozen=True)
class Case:
    """A program of a feature; `labels` name the constructs in it, for the share that is taken."""

    feature: str
    seed: int
    text: str
    labels: tuple[str, ...] = ()


class Given(tuple[Any, ...]):
    """The arguments of a call; those that go by their names are `named`."""

    named: dict[str, Any]

    @classmethod
    def of(cls, names: dict[str, Any]) -> Given:
        """Return what the functions of a module make: `arguments`, and `symbols` of DaCe's."""
        found = cls(names["arguments"]())
        found.named = names["symbols"]() if "symbols" in names else {}
        return found


class TooLong(BaseException):
    """A program runs longer than it may; nothing that a program catches."""


def module_text(
    body: str | list[str],
    arguments: str,
    signature: str,
    before: str = "",
    after: str = "",
) -> str:
    """Return a module with the program `p(signature)`, whose lines are not indented."""
    lines = body.splitlines() if isinstance(body, str) else body
    parts = [HEAD]
    if before:
        parts.append(before.strip("\n") + "\n")
    inner = "\n".join(f"    {line}" if line else "" for line in lines)
    parts.append(f"@cpufree.program\ndef p({signature}):\n{inner}\n")
    parts.append(f"def arguments():\n    return ({arguments},)\n")
    if after:
        parts.append(after.strip("\n") + "\n")
    return "\n\n".join(parts)


def load(text: str, path: Path) -> dict[str, Any]:
    """Return the names of a module whose text lies at a path."""
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(text, str(path), "exec", dont_inherit=True), names)
    return names


def load_plain(text: str, path: Path) -> dict[str, Any]:
    """Return the names of the same module with functions of Python in place of programs."""
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path), "_plain": lambda f: f}
    text = names_of(text, names) if is_dace(text) else text.replace("cpufree.program", "_plain")
    exec(compile(text, str(path), "exec", dont_inherit=True), names)
    return names


def run_within(path: Path, function: Callable[[], Any]) -> Any:
    """Call a function; raise TooLong after too many lines of the file at a path."""
    count = 0
    file = str(path)

    def trace(frame: Any, event: str, _arg: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != file:
            return None
        count += event == "line"
        if count > _MOST_LINES:
            raise TooLong
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function()
    finally:
        sys.settrace(before)
