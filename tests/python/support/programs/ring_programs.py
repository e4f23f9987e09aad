"""Random programs whose ends are neighbours: row statements, rolls, steps, exits, swaps."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

_ROWS = 13
_SHAPES = ((_ROWS,), (_ROWS, 6), (_ROWS, 5, 4))
_NAMES = ("u", "v", "w")


class RingWriter:
    """Writes a program of a seed, for arrays of one to three dimensions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shape = _SHAPES[seed % len(_SHAPES)]
        self.locals: list[str] = []

    def text(self) -> str:
        """Return the module's text; the program is `p`."""
        head = self.random.choice(("for t in range(turns):", "while t < turns:"))
        body = ["t += 1"] if head.startswith("while") else []
        for _ in range(self.random.randint(2, 6)):
            body += self.statement()
        lines = ["import numpy as np", "", "import cpufree", "", "", "@cpufree.program"]
        lines += ["def p(u, v, w, turns):", "    t = 0", f"    {head}"]
        return "\n".join([*lines, *(f"        {line}" for line in body), "    return t", ""])

    def name(self) -> str:
        """Return an array."""
        return self.random.choice((*_NAMES, *self.locals))

    def columns(self) -> str:
        """Return what follows a slice of rows, the same on both sides of a statement."""
        if len(self.shape) == 1:
            return ""
        return self.random.choice(("", "", ", 1:-1", ", ::2", ", 1::2", ", 0", ", 2"))

    def around(self) -> str:
        """Return a rolled array."""
        axis = 0 if self.random.random() < 0.7 else self.random.randrange(len(self.shape))
        return f"np.roll({self.name()}, {self.random.choice((-2, -1, 1, 2))}, {axis})"

    def rows(self) -> list[str]:
        """Return an update of rows from rows beside, or from opposite ones."""
        here, columns = self.random.choice(_NAMES), self.columns()
        a, b = self.name(), self.name()
        kind = self.random.random()
        if kind < 0.35:
            to, one, other = self.random.choice(
                ((0, -2, 1), (-1, 1, -2), (0, -1, 0), (-1, 0, -1), (1, -1, 0))
            )
            return [f"{here}[{to}{columns}] = 0.5 * ({a}[{one}{columns}] - {b}[{other}{columns}])"]
        boxes = (
            ("1:-1", "2:", ":-2"), ("1:", ":-1", "1:"), (":-1", "1:", ":-1"),
            ("1:-1:2", "2::2", ":-2:2"), ("2:-2", "4:", ":-4"), ("2:-2:3", "4::3", "1:-3:3"),
        )  # fmt: skip
        to, one, other = self.random.choice(boxes)
        return [f"{here}[{to}{columns}] = 0.5 * ({a}[{one}{columns}] - {b}[{other}{columns}])"]

    def through_new(self) -> list[str]:
        """Return an array that is computed again, and read beside and around in one group."""
        lines = [f"p = 0.5 * {self.name()}", f"{self.random.choice(_NAMES)}[1:] = p[1:] - p[:-1]"]
        self.locals = sorted({*self.locals, "p"})
        last = self.random.choice(
            ("v[0] = p[0] - p[-1]", "u[-1] = p[0]", "w[:] = np.roll(p, -1, 0) + v", "v += u")
        )
        return [*lines, last]

    def statement(self) -> list[str]:
        """Return the lines of a statement."""
        kind = self.random.random()
        here = self.random.choice(_NAMES)
        if kind < 0.2:
            new = self.random.choice("pq")
            lines = [f"{new} = 0.5 * {self.name()} + {self.random.choice(('1.0', self.name()))}"]
            self.locals = sorted({*self.locals, new})
            return lines
        if kind < 0.45:
            return self.rows()
        if kind < 0.55:
            return self.through_new()
        if kind < 0.7:
            return [f"{here}[:] = 0.5 * {self.around()} - 0.25 * {self.name()}"]
        if kind < 0.78:
            return [f"{here} += 0.5 * {self.name()}"]
        if kind < 0.88:
            return [self.random.choice(("u, v = v, u", "v, w = w, v", "u, v, w = w, u, v"))]
        way = self.random.choice(("break", "continue", None))
        inner = self.rows() if way is None else [*self.rows(), way]
        condition = f"np.max({self.name()}) > {self.random.choice((0.0, 1.0, 2.0))}"
        return [f"if {condition}:", *(f"    {line}" for line in inner)]


def ring_arguments(seed: int) -> tuple[Any, ...]:
    """Return arguments for the program of a seed."""
    rng = np.random.default_rng(seed)
    shape = _SHAPES[seed % len(_SHAPES)]
    return (*(rng.standard_normal(shape) for _ in _NAMES), 3)
