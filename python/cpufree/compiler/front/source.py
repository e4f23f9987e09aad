"""The text of a program: where its parts stand, and errors that show them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from cpufree.errors import InvalidInputError, ProgramError


@dataclass(frozen=True, eq=False)
class Source:
    """A function's text and tree."""

    name: str
    file: str
    first_line: int
    lines: tuple[str, ...]
    indent: int
    """Columns that the lines have been moved to the left."""
    tree: ast.FunctionDef
    names: dict[str, Any]
    """Globals and closure: what names outside the function mean."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Source:
        """Return the source of a function.

        Raises:
            InvalidInputError: it is no function of Python, or its text is not to be had.
        """
        if not inspect.isfunction(function):
            raise InvalidInputError(
                f"cpufree.program takes a function, not {function!r}: write @cpufree.program "
                "above a def"
            )
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise InvalidInputError(
                f"the text of {function.__name__} is not to be had: the compiler reads it from "
                "the file (functions typed at a prompt have none)"
            ) from None
        text = textwrap.dedent("".join(lines))
        indent = len(lines[0]) - len(lines[0].lstrip())
        tree = ast.parse(text).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise InvalidInputError(
                "cpufree.program takes a def: a lambda or an async function is none"
            )
        closure = inspect.getclosurevars(function)
        names = {**closure.builtins, **closure.globals, **closure.nonlocals}
        names = {**function.__globals__, **names}
        file = inspect.getsourcefile(function) or "<unknown>"
        return cls(function.__name__, file, first, tuple(text.splitlines()), indent, tree, names)

    def line_of(self, node: ast.AST) -> int:
        """Return the number of a node's line in its file."""
        return self.first_line + getattr(node, "lineno", 1) - 1

    def fail(self, node: ast.AST, problem: str, advice: str) -> NoReturn:
        """Raise ProgramError with file, line, the text, a caret, and what to write instead."""
        row = getattr(node, "lineno", 1) - 1
        text = self.lines[row]
        begin = getattr(node, "col_offset", 0)
        same_row = getattr(node, "end_lineno", row + 1) == row + 1
        end = getattr(node, "end_col_offset", begin + 1) if same_row else len(text)
        # Columns of the tree are in bytes of UTF-8.
        raw = text.encode()
        start = len(raw[:begin].decode(errors="replace"))
        width = max(1, len(raw[begin:end].decode(errors="replace")))
        shown = text.strip("\n")
        marks = " " * start + "^" * width
        raise ProgramError(
            f"{self.file}:{self.line_of(node)}, in {self.name}: {problem}\n"
            f"    {shown}\n    {marks}\n  {advice}",
            file=self.file,
            line=self.line_of(node),
            column=start + self.indent,
        )
