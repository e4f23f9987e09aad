"""The text of a function: found in its file, and compared with the function."""

from __future__ import annotations

import ast
import inspect
import linecache
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from typing import Any, NoReturn

from cpufree.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class FileText:
    """The text of a file, and what Python makes of it: by name and first line."""

    lines: tuple[str, ...]
    defs: dict[tuple[str, int], ast.FunctionDef]
    codes: dict[tuple[str, int], types.CodeType]


def text_of(function: Callable[..., Any]) -> tuple[tuple[str, ...], ast.FunctionDef]:
    """Return the lines of the file that a function stands in, and its def there.

    Raises:
        InvalidInputError: the text cannot be read, is no def, or is no longer the function's.
    """
    code = function.__code__
    if code.co_name == "<lambda>" or code.co_flags & _NO_DEF:
        raise InvalidInputError(
            "cpufree.program takes a def: a lambda, a generator or an async function is none"
        )
    try:
        text = _read(tuple(inspect.findsource(function)[0]))
    except (OSError, TypeError):
        if linecache.getlines(code.co_filename):  # it has become shorter
            _edited(function)
        raise InvalidInputError(
            f"the text of {function.__name__} cannot be read: the compiler reads it from "
            "the file (functions typed at a prompt have none)"
        ) from None
    except (SyntaxError, ValueError):
        _edited(function)
    place = code.co_name, code.co_firstlineno
    there = text.codes.get(place)
    if place not in text.defs or not there or not _is_same(code, there, _strictly(function)):
        _edited(function)
    return text.lines, text.defs[place]


@lru_cache(maxsize=16)
def _read(lines: tuple[str, ...]) -> FileText:
    tree = _Mangled().visit(ast.parse("".join(lines)))
    # A notebook's cell may wait for something outside its functions.
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(tree, "<text>", "exec", flags=flags, dont_inherit=True)
    defs = {(n.name, _first(n)): n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    return FileText(lines, defs, {(c.co_name, c.co_firstlineno): c for c in _codes(code)})


_NO_DEF = (
    inspect.CO_COROUTINE
    | inspect.CO_GENERATOR
    | inspect.CO_ASYNC_GENERATOR
    | inspect.CO_ITERABLE_COROUTINE
)


def _first(node: ast.FunctionDef) -> int:
    """Return the line at which Python says that a function begins."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _edited(function: Callable[..., Any]) -> NoReturn:
    raise InvalidInputError(
        f"the text of {function.__name__} in {function.__code__.co_filename} is not that of the "
        "function: the file was edited since it was imported; import it again, or restart Python"
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Return all code inside of a piece of code."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _strictly(function: Callable[..., Any]) -> bool:
    """Return whether Python itself has compiled a function's file.

    Others, such as pytest for its assertions, add instructions.
    """
    loader = function.__globals__.get("__loader__")
    return loader is None or isinstance(loader, type) or type(loader) is SourceFileLoader


def _is_same(one: types.CodeType, other: types.CodeType, strictly: bool) -> bool:
    """Return whether code does what other code does that has been compiled from the text."""
    if strictly:
        return bool(_print_of(one) == _print_of(other))
    known = {*map(_print_of, one.co_consts), *one.co_names, *one.co_varnames}
    plain = (c for c in other.co_consts if not isinstance(c, types.CodeType))
    return {*map(_print_of, plain), *other.co_names, *other.co_varnames} <= known


def _print_of(value: Any) -> Any:
    """Return something that is equal for code, and for constants, that are alike."""
    if isinstance(value, types.CodeType):
        numbers = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount
        names = value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars
        return numbers, names, value.co_code, tuple(map(_print_of, value.co_consts))
    if isinstance(value, tuple | frozenset):
        return type(value), type(value)(map(_print_of, value))
    return type(value), repr(value)  # 0.0 is not -0.0, and 1 is not True


class _Mangled(ast.NodeTransformer):
    """Gives private names in classes the names that Python gives them."""

    def __init__(self) -> None:
        self.owner = ""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self.owner = self.owner, node.name.lstrip("_")
        self.generic_visit(node)
        self.owner = outer
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._mangled(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._mangled(node.arg)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        node.arg = node.arg and self._mangled(node.arg)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._mangled(node.attr)
        return self.generic_visit(node)

    def _mangled(self, name: str) -> str:
        private = self.owner and name.startswith("__") and not name.endswith("__")
        return f"_{self.owner}{name}" if private else name
