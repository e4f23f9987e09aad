"""Check that no class of the product has more private functions than a reader can hold.

Usage: python tools/check_classes.py [ROOT]. Prints each class with too many as file:line: reason
and exits with 1 when there is one; else says which class has the most. Private are functions behind
`private:` in C++, and those whose names begin with an underscore in Python.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOST = 25


class Found(NamedTuple):
    """A class, and how many private functions it has."""

    file: Path
    line: int
    name: str
    functions: int


CPP_NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.S | re.M,
)
CPP_CLASS = re.compile(
    r"\b(?<!enum )(class|struct)\s+(\w+)(?:<[^;{}()]*>)?(?:\s+final)?\s*(?::[^;{}()]*)?\{"
)
ACCESS = re.compile(r"\s*(public|protected|private)\s*:(?!:)")
# What begins a member that is no function of the class, or the rest of one behind braces.
NO_FUNCTION = re.compile(
    r"\s*(?:[,)]|(?:using|friend|typedef|static_assert|enum|union|class|struct)\b)"
)
FUNCTION = re.compile(r"(?:~?\w+|operator\s*\S+?)\s*\(")


def blanked(source: str) -> str:
    """Return a C++ source without comments, strings and directives; lines stay where they are."""
    return CPP_NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def without_angles(text: str) -> str:
    """Return a declaration without its template arguments, which may hold parentheses."""
    before = None
    while before != text:
        before, text = text, re.sub(r"<[^<>;{}]*>", " ", text)
    return text


def members(text: str, begin: int) -> Iterator[str]:
    """Yield the members of a class whose body begins there, each up to its braces or semicolon."""
    place, depth, first = begin, 0, begin
    while place < len(text):
        letter = text[place]
        if letter == "{":
            if depth == 0:
                yield text[first:place]
            depth += 1
        elif letter == "}":
            depth -= 1
            if depth < 0:
                return
            if depth == 0:
                first = place + 1
        elif letter == ";" and depth == 0:
            yield text[first:place]
            first = place + 1
        place += 1


def private_functions(text: str, begin: int, private: bool) -> int:
    """Return how many private functions the class has whose body begins there."""
    count = 0
    for member in members(text, begin):
        while found := ACCESS.match(member):
            private, member = found[1] == "private", member[found.end() :]
        declaration = without_angles(member).replace("template", "", 1)
        if private and not NO_FUNCTION.match(declaration):
            count += FUNCTION.search(declaration.split("=")[0]) is not None
    return count


def cpp_classes(file: Path) -> Iterator[Found]:
    """Yield the classes of a C++ file, those inside others too."""
    text = blanked(file.read_text(encoding="utf-8"))
    for found in CPP_CLASS.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Found(file, line, found[2], private_functions(text, found.end(), found[1] == "class"))


def python_classes(file: Path) -> Iterator[Found]:
    """Yield the classes of a Python file, those inside others too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            names = [
                one.name
                for one in node.body
                if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))
            ]
            own = [name for name in names if name.startswith("_") and not name.endswith("__")]
            yield Found(file, node.lineno, node.name, len(own))


def classes(root: Path) -> Iterator[Found]:
    """Yield the classes of the product."""
    for file in sorted((root / "cpufree").rglob("*.[hc]*")):
        yield from cpp_classes(file)
    for file in sorted((root / "python").rglob("*.py")):
        yield from python_classes(file)


def main(root: Path) -> int:
    """Print the classes below root with too many private functions; return the exit status."""
    found = [*classes(root)]
    too_many = [one for one in found if one.functions > MOST]
    for file, line, name, count in too_many:
        many = f"{name} has {count} private functions, of which there may be {MOST}"
        print(f"{file.relative_to(root)}:{line}: {many}: divide it by what they are for")
    if not too_many and found:
        most = max(found, key=lambda one: one.functions)
        print(
            f"classes: {most.functions} private functions at most ({most.name}), of {MOST} allowed"
        )
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()))
