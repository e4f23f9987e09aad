"""Programs of the representation as JSON: objects with the name of their class as "is"."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from cpufree.compiler import ir
from cpufree.errors import InvalidInputError

_CLASSES: dict[str, Any] = {
    name: kind for name, kind in vars(ir).items() if dataclasses.is_dataclass(kind)
}


def to_json(program: ir.Program) -> str:
    """Return a program as JSON."""
    return json.dumps(plain(program))


def from_json(text: str) -> ir.Program:
    """Return the program of a JSON text.

    Raises:
        InvalidInputError: it holds none.
    """
    try:
        program = made(json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(f"the text is no program of the compiler: {error}") from None
    if not isinstance(program, ir.Program):
        raise InvalidInputError("the text is no program of the compiler")
    return program


def plain(value: Any) -> Any:
    """Return dataclasses as dictionaries, tuples as lists."""
    if dataclasses.is_dataclass(value):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"is": type(value).__name__, **fields}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value


def made(value: Any, classes: dict[str, Any] | None = None) -> Any:
    """Return what `plain` has been given; `classes` are those besides the representation's."""
    known = {**_CLASSES, **(classes or {})}
    if isinstance(value, dict) and "is" in value:
        kind = known[value["is"]]
        return kind(**{name: made(item, classes) for name, item in value.items() if name != "is"})
    if isinstance(value, list):
        return tuple(made(item, classes) for item in value)
    return value
