"""Options of commands out of the schema in `cpufree.options`."""

from __future__ import annotations

from enum import Enum
from typing import Any

import typer

from cpufree.options import Option


class Choice(str, Enum):
    """What values of a choice are for type checkers; `choice` makes the real one."""


def choice(option: Option) -> Any:
    """Return the values of an option as an enumeration, which the command line shows."""
    title = option.name.capitalize()
    return Enum(title, {value: value for value in option.choices}, type=str)


def as_option(option: Option, *flags: str) -> Any:
    """Return what the command line knows of an option, for Annotated.

    `flags`: instead of the one that the name of the parameter would give.
    """
    if option.kind == "switch" and option.default is True and not flags:
        flags = (f"--{option.name}/--no-{option.name}",)
    elif option.kind == "switch" and not flags:
        flags = (option.spelling,)
    bounded = not option.takes_auto and option.kind in ("number", "count")
    least = option.least if bounded else None
    most = option.most if bounded else None
    if option.kind == "count":
        least, most = (None if bound is None else int(bound) for bound in (least, most))
    return typer.Option(
        *flags,
        min=least,
        max=most,
        metavar=option.metavar or None,
        help=option.help,
    )
