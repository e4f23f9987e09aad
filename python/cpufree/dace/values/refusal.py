"""How what cannot be taken is refused: where it is, what it is, what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from cpufree.errors import ProgramError


def shown(name: str) -> str:
    """Return a name as it is in the user's text: DaCe makes others of it."""
    return name.removeprefix("__sym_").partition("@")[0]


@dataclass(frozen=True)
class Place:
    """A line of a program, and the node of the graph that is looked at."""

    program: str
    file: str = ""
    line: int = 0
    node: str = ""

    def at(self, node: Any, line: tuple[str, int] | None = None) -> Place:
        """Return the place of a node of DaCe's, at a line; without one it has the last one."""
        file, number = line or ("", self.line)
        name = str(getattr(node, "label", "") or type(node).__name__) if node is not None else ""
        return Place(self.program, file or self.file, number, name)

    def fail(self, problem: str, advice: str) -> NoReturn:
        """Raise ProgramError for what is here; `problem` without DaCe's own names for indices."""
        problem = re.sub(r"\b__(i\d+)\b", r"\1", problem)
        name = f", node {self.node}" if self.node else ""
        where = f"{self.file}:{self.line}, in {self.program}{name}" if self.line else self.program
        text = self.text
        shown = f"\n    {text}" if text else ""
        raise ProgramError(f"{where}: {problem}{shown}\n  {advice}", file=self.file, line=self.line)

    @property
    def text(self) -> str:
        """The text of the line, where it can be read."""
        try:
            lines = Path(self.file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return ""
        return lines[self.line - 1].strip() if 0 < self.line <= len(lines) else ""
