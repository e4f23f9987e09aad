"""What a function is lowered to for given arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

from cpufree.compiler import ir
from cpufree.compiler.front.builder import Builder
from cpufree.compiler.front.values import Value
from cpufree.compiler.saved import to_json

Outside: TypeAlias = "Mapping[str, tuple[str, Any]]"


class Lowered:
    """A program for given arguments, with the values that it takes.

    `program` is the representation, `data` the arrays of its constants, `scalars` the values of
    its scalars; `result` says what the call returns. Of constants, `outside` has what the program
    calls them, and the arrays.
    """

    outside: Outside = MappingProxyType({})

    def __init__(self, program: ir.Program, builder: Builder, result: Value | None) -> None:
        self.program = program
        self.data = builder.data
        self.outside: Outside = {
            name: (builder.outside[name], array) for name, array in self.data.items()
        }
        self.scalars = {name: value for name, (_, value) in builder.scalars.items()}
        self.result = result

    @cached_property
    def key(self) -> str:
        """The representation as text: equal for programs that have one kernel."""
        return to_json(self.program)
