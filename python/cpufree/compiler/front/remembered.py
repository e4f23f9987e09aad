"""Calls that are alike need not be lowered again.

What a call lowers to follows from the function's text, from what its names mean, from types and
shapes of arrays and from the values of other arguments (`outside`). A call is remembered where all
of these can be compared with those of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.front.lowered import Lowered
from cpufree.compiler.front.outside import Key, NoKey, key_of
from cpufree.compiler.front.text.source import Source
from cpufree.errors import ProgramError

_MOST = 64


class Remembered:
    """Lowered programs by what they follow from."""

    def __init__(
        self, source: Source, lower: Callable[[Source, Mapping[str, Any]], Lowered]
    ) -> None:
        self.source, self.lower = source, lower
        self.known: dict[Key, Lowered] = {}

    def of_call(self, arguments: Arguments) -> Lowered:
        """Return what a call lowers to; arrays in lists may be written, or be known beforehand.

        Raises
        ------
        ProgramError
            Something is outside the language.
        """
        try:
            return self.get(arguments.lowered)
        except ProgramError as error:
            if not arguments.leave_lists():
                raise
            with suppress(ProgramError):
                return self.get(arguments.lowered)
            raise error from None

    def get(self, arguments: Mapping[str, Any]) -> Lowered:
        """Return what a call lowers to.

        Raises
        ------
        ProgramError
            Something is outside the language.
        """
        try:
            key = key_of(self.source, arguments)
        except NoKey:
            return self.lower(self.source, arguments)
        found = self.known.pop(key, None) or self.lower(self.source, arguments)
        while len(self.known) >= _MOST:
            self.known.pop(next(iter(self.known)))
        self.known[key] = found
        return found
