"""Generators written as text: NAME?key=value,key=value."""

from __future__ import annotations

from collections.abc import Mapping

from cpufree.errors import InvalidInputError

Value = int | float | bool | str | tuple["Value", ...] | None

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None}


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def parse_value(text: str) -> Value:
    """A value of a specification: true, false, none, 12, 1e-3, 60x36x20, or a word."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    number = _number(text)
    if number is not None:
        return number
    parts = [_number(part) for part in text.split("x")]
    if len(parts) > 1 and None not in parts:
        return tuple(parts)
    return text


def parse_spec(spec: str) -> tuple[str, dict[str, Value]]:
    """Split "name?key=value,key=value" (a leading "gen:" is allowed) into name and parameters."""
    text = spec.strip()
    name, _, rest = text.removeprefix("gen:").partition("?")
    name = name.strip()
    if not name:
        raise InvalidInputError(
            f"{spec!r} names no generator; write NAME or NAME?key=value,key=value"
        )
    params: dict[str, Value] = {}
    for item in rest.split(",") if rest.strip() else []:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not key or not equals or not value:
            raise InvalidInputError(
                f"{item!r} in {spec!r} is not of the form key=value; "
                "write NAME?key=value,key=value (a tuple as shape=60x36x20)"
            )
        if key in params:
            raise InvalidInputError(f"{key} is given twice in {spec!r}")
        params[key] = parse_value(value)
    return name, params


def _format_value(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return "x".join(_format_value(item) for item in value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def format_spec(name: str, params: Mapping[str, object]) -> str:
    """The text that parse_spec turns back into name and params."""
    if not params:
        return name
    return name + "?" + ",".join(f"{key}={_format_value(value)}" for key, value in params.items())
