"""Calls of public functions: unknown options get a suggestion, errors a short traceback."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from cpufree.env import Env
from cpufree.errors import CpufreeError, InvalidInputError, UnknownOptionError
from cpufree.text import meant

P = ParamSpec("P")
R = TypeVar("R")
INSIDE = {"cpufree", *sys.stdlib_module_names}
"""Packages whose frames tell a user nothing."""
# What other packages call an option.
ALIASES = {
    "preconditioner": "pc",
    "threads": "blocks",
    "n_jobs": "blocks",
    "max_iterations": "maxiter",
    "callback": "progress",
    "verbose": "progress",
    "device": "gpus",
}


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function as users call it.

    An option that it does not have is an UnknownOptionError, with the name that may be meant. An
    InvalidInputError is about what the caller gave: its traceback has the caller's line, without
    the frames inside this package, unless CPUFREE_LOG is debug.
    """
    parameters = inspect.signature(function).parameters
    words = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        for name in given:
            if name not in parameters:
                raise UnknownOptionError(_unknown(words, name, list(parameters)))
        try:
            return function(*args, **given)
        except InvalidInputError as error:
            if debugging() or not _is_ours(error.__traceback__):
                raise
            raise error.with_traceback(None) from None

    return call


def debugging() -> bool:
    """Return whether the user asked for whole tracebacks with CPUFREE_LOG=debug."""
    try:
        return Env.read().log == "debug"
    except CpufreeError:  # a wrong variable is what the error at hand may be about
        return False


def _unknown(words: str, name: str, known: list[str]) -> str:
    """Return what is wrong with a call that gives an option which is not known."""
    known = [one for one in known if one != "self" and not one.startswith("_")]
    alias = ALIASES.get(name, "")
    suggestion = f" (did you mean {alias}?)" if alias in known else meant(name, known)
    return f"{words}() has no option {name!r}{suggestion}: it takes {', '.join(known)}"


def _is_ours(at: TracebackType | None) -> bool:
    """Return whether no frame of a traceback is of a user's function, such as `progress`."""
    while at is not None:
        if at.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in INSIDE:
            return False
        at = at.tb_next
    return True
