"""The text of a program: where its parts stand, and errors that show them."""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from cpufree.compiler.front.text.file import text_of
from cpufree.compiler.front.text.uses import Use, uses_of
from cpufree.errors import InvalidInputError, ProgramError


@dataclass(frozen=True, eq=False)
class Source:
    """A function's text and tree."""

    name: str
    file: str
    lines: tuple[str, ...]
    """Of the whole file."""
    tree: ast.FunctionDef
    names: Mapping[str, Any]
    """What names outside the function mean at the time when they are asked for."""
    uses: tuple[Use, ...]
    """What the text reads of these names, and of the parameters."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Source:
        """Return the source of a function.

        Raises:
            InvalidInputError: it is no function of Python, a decorator has wrapped it, or its text
                cannot be read, or is not the function's.
        """
        if not inspect.isfunction(function):
            raise InvalidInputError(
                f"cpufree.program takes a function, not {function!r}: write @cpufree.program "
                "above a def"
            )
        if hasattr(function, "__wrapped__"):
            raise InvalidInputError(
                f"another decorator has wrapped {function.__name__}, and what it adds is no part "
                "of the text that is compiled: put @cpufree.program next to the def, below the "
                "other decorators"
            )
        lines, tree = text_of(function)
        file = inspect.getsourcefile(function) or function.__code__.co_filename
        names = OutsideNames(function)
        return cls(function.__name__, file, lines, tree, names, uses_of(tree))

    def line_of(self, node: ast.AST) -> int:
        """Return the number of a node's line in its file."""
        return getattr(node, "lineno", 1)

    def fail(self, node: ast.AST, problem: str, advice: str) -> NoReturn:
        """Raise ProgramError with file, line, the text, a caret, and what to write instead."""
        number = self.line_of(node)
        text = self.lines[number - 1].rstrip()
        begin = getattr(node, "col_offset", 0)
        same_row = getattr(node, "end_lineno", number) == number
        # Columns of the tree are in bytes of UTF-8.
        raw = text.encode()
        end = getattr(node, "end_col_offset", begin + 1) if same_row else len(raw)
        start = len(raw[:begin].decode(errors="replace"))
        width = max(1, len(raw[begin:end].decode(errors="replace")))
        # Lines are shown as if the def stood at the margin.
        margin = self.tree.col_offset
        margin = margin if text[:margin].isspace() else 0
        blank = "".join(c if c == "\t" else " " for c in text[margin:start])
        raise ProgramError(
            f"{self.file}:{number}, in {self.name}: {problem}\n"
            f"    {text[margin:]}\n    {blank}{'^' * width}\n  {advice}",
            file=self.file,
            line=number,
            column=start,
        )


_NO_VALUE = object()


class OutsideNames(Mapping[str, Any]):
    """What a function's names mean that it does not set: found again each time, as Python does."""

    def __init__(self, function: types.FunctionType) -> None:
        names = function.__code__.co_freevars
        self._cells = dict(zip(names, function.__closure__ or (), strict=True))
        self._tables: tuple[dict[str, Any], dict[str, Any]] = (function.__globals__, vars(builtins))

    def __getitem__(self, name: str) -> Any:
        found = self.get(name, _NO_VALUE)
        if found is _NO_VALUE:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return what a name means now."""
        if name in self._cells:
            try:
                return self._cells[name].cell_contents
            except ValueError:  # it has no value yet
                return default
        first, second = self._tables
        return first[name] if name in first else second.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter({*self._cells, *self._tables[0], *self._tables[1]})

    def __len__(self) -> int:
        return len(set(self))
