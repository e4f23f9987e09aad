"""Random programs for the compiler: text by a seed, and arrays to run it on."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np

_ROWS, _COLUMNS = 17, 11
_FLOATS = ("{a} + {b}", "{a} - {b}", "0.25 * ({a} + {b})", "np.maximum({a}, {b})", "{a} * {b}",
           "np.where({a} > {b}, {a}, 0.5 * {b})", "np.abs({a} - {b})", "np.minimum({a}, s)",
           "np.clip({a}, -1.0, 1.0) + {b}", "{a} ** 2 - {b}", "-{a}",
           "np.sqrt(np.abs({a}))")  # fmt: skip
_WIDE = ("u", "v", "w")


class _Writer:
    """Writes a program of some statements."""

    def __init__(self, numbers: int | random.Random) -> None:
        self.random = random.Random(numbers) if isinstance(numbers, int) else numbers

    def text(self) -> str:
        """Return the module's text; the program is `p`."""
        body = [self.statement() for _ in range(self.random.randint(1, 5))]
        lines = ["import numpy as np", "", "import cpufree", "", "", "@cpufree.program"]
        lines += ["def p(u, v, w, c, steps):", "    s = 0.5"]
        lines += ["    for t in range(steps):"]
        lines += [f"        {line}" for statement in body for line in statement]
        return "\n".join([*lines, "    return s, u", ""])

    def box(self) -> tuple[int, int, int, int]:
        """Return how much of either end of both axes is left out."""
        return tuple(self.random.choice((0, 1, 1, 2)) for _ in range(4))  # type: ignore[return-value]

    def slices(self, box: tuple[int, int, int, int], move: bool) -> str:
        """Return the slices of a box, moved as far as it leaves room for."""
        parts = []
        for first, last, n in ((box[0], box[1], _ROWS), (box[2], box[3], _COLUMNS)):
            d = self.random.randint(-first, last) if move else 0
            parts.append(f"{first + d}:{n - last + d}")
        return f"[{', '.join(parts)}]"

    def operand(self, box: tuple[int, int, int, int]) -> str:
        """Return an array for a box."""
        kind = self.random.random()
        name = self.random.choice(_WIDE)
        if kind < 0.15:
            where = self.slices(box, False)
            shift, axis = self.random.choice((-2, -1, 1)), self.random.randint(0, 1)
            return f"np.roll({name}, {shift}, {axis}){where}"
        return name + self.slices(box, self.random.random() < 0.7)

    def value(self, box: tuple[int, int, int, int]) -> str:
        """Return an expression for a box."""
        a, b = self.operand(box), self.operand(box)
        if self.random.random() < 0.3:
            b = self.random.choice(("c", "s", "0.125", "t"))
        return self.random.choice(_FLOATS).format(a=a, b=b)

    def statement(self) -> list[str]:
        """Return the lines of a statement."""
        kind, box = self.random.random(), self.box()
        name = self.random.choice(_WIDE)
        here = name + self.slices(box, False)
        if kind < 0.45:
            return [f"{here} = 0.5 * ({self.value(box)})"]
        if kind < 0.6:
            sign = self.random.choice("+-*")
            return [f"{here} {sign}= 0.3 * {self.operand(box)}"]
        if kind < 0.68:
            row = self.random.choice(("0, :", "-1, :", ":, 0", ":, -1"))
            other = row.replace("-1", "-2") if "-1" in row else row.replace("0", "1")
            return [f"{name}[{row}] = {self.random.choice((0, f'{name}[{other}]'))}"]
        if kind < 0.78:
            return ["u, v = v, u"]
        if kind < 0.86:
            return [f"s = 0.01 * np.max(np.abs({self.operand(box)}))"]
        if kind < 0.93:
            return [f"n = {self.value(box)}", f"{here} = 0.5 * n + {self.operand(box)}"]
        return [f"if s > {self.random.random():.2f} or t == 1:", f"    {here} = {self.value(box)}"]


class WriterOfCopies(_Writer):
    """The same, with copies of parts of an array that is larger, and of which more is written."""

    def statement(self) -> list[str]:
        """Return the lines of a statement."""
        if self.random.random() < 0.5:
            return super().statement()
        whole, box, other = (0, 0, 0, 0), self.box(), self.box()
        name = self.random.choice(_WIDE)
        lines = [f"m = {self.value(whole)} + 0 * u"]
        if self.random.random() < 0.5:
            lines.append(f"m{self.slices(other, False)} = 0.5 * {self.operand(other)}")
        return [*lines, f"{name}{self.slices(box, False)} = m{self.slices(box, False)}"]


class WriterOfSweeps(_Writer):
    """The same without reductions and conditions: loops that have rounds, most of them."""

    def __init__(self, numbers: int | random.Random) -> None:
        super().__init__(numbers)
        self.rolls = self.random.random() < 0.3

    def operand(self, box: tuple[int, int, int, int]) -> str:
        """Return an array for a box; rolled where all points are computed."""
        name = self.random.choice(_WIDE)
        if self.rolls:
            shift, axis = self.random.choice((-2, -1, 0, 1)), self.random.randint(0, 1)
            return f"np.roll({name}, {shift}, {axis})"
        return name + self.slices(box, self.random.random() < 0.7)

    def box(self) -> tuple[int, int, int, int]:
        """Return how much of either end of both axes is left out."""
        return (0, 0, 0, 0) if self.rolls else super().box()

    def statement(self) -> list[str]:
        """Return the lines of a statement."""
        kind, box = self.random.random(), self.box()
        name = self.random.choice(_WIDE)
        here = name + self.slices(box, False)
        if kind < 0.5:
            return [f"{here} = 0.5 * ({self.value(box)})"]
        if kind < 0.65:
            return [f"{here} += 0.3 * {self.operand(box)}"]
        if kind < 0.8:
            return [self.random.choice(("u, v = v, u", "u, v, w = w, u, v", "v, w = w, v"))]
        return [f"m = {self.value(box)} + 0 * {name}{self.slices(box, False)}", f"{here} = 0.5 * m"]


WRITERS = (_Writer, WriterOfCopies, WriterOfSweeps)


def random_program(seed: int, folder: Path, writer: type[_Writer] = _Writer) -> Any:
    """Return the program of a seed; its text is in a file of the folder."""
    return program_of(writer(seed).text(), folder, f"random_program_{seed}_{writer.__name__}")


def program_of(text: str, folder: Path, name: str) -> Any:
    """Return the program of a module's text, which is written to a file of the folder."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.p


def random_arguments(seed: int) -> tuple[Any, ...]:
    """Return arguments for a program: arrays of one type, and two numbers."""
    rng = np.random.default_rng(seed)
    dtype = (np.float64, np.float32)[seed % 2]
    arrays = (rng.standard_normal((_ROWS, _COLUMNS)).astype(dtype) for _ in range(3))
    return (*arrays, 0.375, 3)
