"""What statements of random programs of DaCe are made of: regions, values and conditions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_LINES = ("u", "v", "w")  # of N values
_GRIDS = ("A", "B")  # of N × M values, M at most N
FLOATS = (
    "{a} + {b}", "{a} - {b}", "0.5 * ({a} + {b})", "{a} * c", "0.25 * {a} - {b}", "-{a}",
    "np.maximum({a}, {b})", "np.minimum({a}, c)", "np.abs({a} - {b})", "{a} * 0.5 * {b}",
    "np.where({a} > {b}, {a}, 0.5 * {b})", "np.sqrt(np.abs({a}))", "{a} ** 2 - {b}", "{a} / 4.0",
)  # fmt: skip
ONES = (
    "{a} + {b}", "{a} - {b}", "0.5 * ({a} + {b})", "{a} * c", "0.25 * {a}", "-{a}", "abs({a})",
    "max({a}, {b})", "min({a}, c)", "{a}", "{a} * 0.5 * {b}",
)  # fmt: skip


class Writer:
    """Writes the lines of a program, and notes the constructs that it uses.

    `turns` are the variables of the loops around what is written, all of them indices of any axis;
    `rows` those that reach up to N - 1. `numbers` are local floats that have a value.
    """

    def __init__(self, r: random.Random, sizes: tuple[str, ...] = ()) -> None:
        """`sizes`: names of whole numbers from 0 to 4, arguments or symbols."""
        self.r = r
        self.sizes = sizes
        self.labels: list[str] = []
        self.turns: list[str] = []
        self.rows: list[str] = []
        self.numbers: list[str] = []
        self.made = 0
        self.depth = 0
        self.loops = 0

    def chance(self, share: float) -> bool:
        """Return whether something happens that does so in a share of all cases."""
        return self.r.random() < share

    def pick(self, *choices: str) -> str:
        """Return one of several texts."""
        return self.r.choice(choices)

    def fresh(self, letter: str) -> str:
        """Return a name that is new."""
        self.made += 1
        return f"{letter}{self.made}"

    def note(self, *labels: str) -> None:
        """Note constructs that the program has."""
        self.labels += labels

    @contextmanager
    def inside(self, *, turn: str = "", row: str = "") -> Iterator[None]:
        """Let what is written be inside a block, perhaps with the variable of a loop."""
        before = [*self.turns], [*self.rows], [*self.numbers]
        self.turns += [turn] if turn else []
        self.rows += [row] if row else []
        self.depth += 1
        yield
        self.depth -= 1
        self.turns, self.rows, self.numbers = before

    # --- whole numbers ---

    def index(self, axis: int = 0) -> str:
        """Return an index that is within any line, or within any axis of a grid."""
        known = [*self.turns, *(self.rows if axis == 0 else [])]
        if known and self.chance(0.5):
            self.note("index by a turn")
            return self.r.choice(known)
        if self.sizes and self.chance(0.3):
            self.note("index by a number")
            return self.r.choice(self.sizes)
        return self.pick("0", "1", "2", "3", "-1", "-2", f"{'NM'[axis]} - 1", f"{'NM'[axis]} // 2")

    def count(self) -> str:
        """Return a whole number from 0 to 4."""
        if self.sizes and self.chance(0.6):
            return self.r.choice(self.sizes)
        return self.pick("2", "3", "4", "1", "0")

    # --- regions ---

    def trim(self) -> tuple[int, int]:
        """Return how many points of an axis a region leaves out, and its step."""
        step = 2 if self.chance(0.15) else 1
        if step == 2:
            self.note("strided")
        return self.r.choice((0, 0, 1, 2, 2, 3)), step

    def part(self, trim: tuple[int, int], size: str) -> str:
        """Return a slice that leaves out a number of points."""
        left, step = trim
        begin = self.r.randint(0, left)
        end = left - begin
        if left == 0 and step == 1:
            return ":"
        stop = "" if end == 0 else self.pick(f"-{end}", f"{size} - {end}")
        return f"{begin or ''}:{stop}" + (f":{step}" if step > 1 else "")

    def line(self, trim: tuple[int, int], of: Sequence[str] = _LINES) -> str:
        """Return a region of a line."""
        name = self.r.choice(of)
        found = self.part(trim, "N")
        if found == ":" and self.chance(0.5):
            return name
        if found == ":" and self.chance(0.02):
            self.note("reversed")
            return f"{name}[::-1]"
        return f"{name}[{found}]"

    def grid(self, rows: tuple[int, int], columns: tuple[int, int]) -> str:
        """Return a region of a grid, or of a line, a row or a column that is repeated."""
        if self.chance(0.2):
            self.note("repeated")
            row, column = self.part(rows, "N"), self.part(columns, "M")
            j = self.r.choice([*self.turns, "1", "M - 1"])
            one = self.pick(f"{j}:{j} + 1", ":1", "-1:", "2:3")
            found = self.pick(f"A[{row}, {one}]", f"B[{row}, {one}]", f"A[{one}, {column}]")
            return self.pick(f"x[{column}]", found)
        name = self.r.choice(_GRIDS)
        return f"{name}[{self.part(rows, 'N')}, {self.part(columns, 'M')}]"

    def row(self, trim: tuple[int, int]) -> str:
        """Return M values, less what is left out: of x, or a row of a grid."""
        found = self.part(trim, "M")
        if self.chance(0.5):
            return f"x[{found}]"
        return f"{self.r.choice(_GRIDS)}[{self.index()}, {found}]"

    # --- values ---

    def element(self) -> str:
        """Return an element of an array."""
        kind = self.r.random()
        if kind < 0.6:
            return f"{self.r.choice(_LINES)}[{self.index()}]"
        if kind < 0.75:
            return f"x[{self.index(1)}]"
        return f"{self.r.choice(_GRIDS)}[{self.index()}, {self.index(1)}]"

    def number(self) -> str:
        """Return a float: local, an argument, an element, or one written down."""
        kind = self.r.random()
        if kind < 0.35 and self.numbers:
            return self.r.choice(self.numbers)
        if kind < 0.65:
            return self.element()
        if kind < 0.75 and (self.turns or self.rows):
            return self.r.choice([*self.turns, *self.rows])
        return self.pick("c", "0.5", "1.25", "-0.75", "2.0")

    def one(self) -> str:
        """Return an expression that is a float."""
        found = self.r.choice(ONES).format(a=self.number(), b=self.number())
        return found

    def condition(self) -> str:
        """Return a condition on numbers."""
        kind = self.r.random()
        if kind < 0.3 and (self.turns or self.rows):
            t = self.r.choice([*self.turns, *self.rows])
            return self.pick(f"{t} == 2", f"{t} % 2 == 0", f"{t} > {self.count()}", f"{t} != 1")
        if kind < 0.45 and self.sizes:
            return f"{self.r.choice(self.sizes)} {self.pick('>', '==', '<=')} {self.pick('1', '2')}"
        a, b = self.number(), self.number()
        found = f"{a} {self.pick('>', '<', '>=')} {b}"
        if self.chance(0.2):
            self.note("and, or")
            found += f" {self.pick('and', 'or')} {self.number()} > {self.pick('0.0', 'c')}"
        return found
