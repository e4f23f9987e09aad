"""What programs of DaCe say in plain Python: their functions as they are, with maps as loops."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

HEAD = """import dace
import numpy as np

import cpufree.dace

N, M = (dace.symbol(n, dace.int64) for n in "NM")
"""
"""The beginning of a module with a program of DaCe's."""


@dataclass(frozen=True)
class _Symbol:
    name: str

    def __str__(self) -> str:
        return self.name


class _Kind:
    """A type of DaCe's: of numbers, and with sizes in brackets of arrays."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, shape: Any) -> tuple[Any, ...]:
        return shape if isinstance(shape, tuple) else (shape,)

    def __call__(self, value: Any) -> Any:
        return np.dtype(self.name).type(value)


class _Map:
    """`dace.map[0:N, 0:M]`: the points of a box, or the numbers of a range."""

    def __getitem__(self, ranges: Any) -> Iterator[Any]:
        many = ranges if isinstance(ranges, tuple) else (ranges,)
        spans = [range(s.start, s.stop, s.step or 1) for s in many]
        return itertools.product(*spans) if len(spans) > 1 else iter(spans[0])


class PlainDace:
    """Stands for the module `dace` where programs are functions of Python."""

    map = _Map()
    float64, float32, int64, int32 = (_Kind(n) for n in ("float64", "float32", "int64", "int32"))
    bool = _Kind("bool")

    @staticmethod
    def symbol(name: str, _kind: Any = None) -> Any:
        """Return what stands for a number until a program is called."""
        return _Symbol(name)

    @staticmethod
    def program(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose symbols have values while it runs."""

        def call(*given: Any, **symbols: Any) -> Any:
            found = dict(symbols)
            for kind, value in zip(function.__annotations__.values(), given, strict=True):
                if isinstance(kind, tuple):
                    sizes = zip(kind, value.shape, strict=True)
                    found.update({s.name: n for s, n in sizes if isinstance(s, _Symbol)})
            names = function.__globals__
            before = {n: names[n] for n in found}
            names.update(found)
            try:
                return _typed(function(*given))
            finally:
                names.update(before)

        return call

    @staticmethod
    def reduce(
        function: Callable[[Any, Any], Any],
        source: Any,
        target: Any,
        axis: int,
        identity: Any = None,
    ) -> None:
        """Join the values along an axis, in order, and those of the target without identity."""
        found = target.copy() if identity is None else np.full_like(target, identity)
        for part in np.moveaxis(source, axis, 0):
            for index in np.ndindex(found.shape):
                found[index] = function(found[index], part[index])
        target[...] = found


def _typed(value: Any) -> Any:
    """Return numbers of Python as those of NumPy, which programs return."""
    if isinstance(value, tuple):
        return tuple(map(_typed, value))
    if isinstance(value, bool | int | float):
        return np.asarray(value)[()]
    return value


def is_dace(text: str) -> bool:
    """Return whether the program of a module is one of DaCe's."""
    return "import cpufree.dace\n" in text


def names_of(text: str, names: dict[str, Any]) -> str:
    """Give names what a module of a program of DaCe's needs; return the text that is left."""
    names["dace"] = PlainDace
    for line in ("import dace\n", "import cpufree.dace\n", "@cpufree.dace.persistent\n"):
        text = text.replace(line, "\n")
    return _TASKLET.sub(_plain_tasklet, text)


_TASKLET = re.compile(r"^( *)with dace\.tasklet:\n((?:\1    .*\n)+)", re.MULTILINE)
_OUT = re.compile(r"(\w+) >> (\w+)(?:\(1, lambda a, b: (.*?)\))?(\[.*\])")


def _plain_tasklet(found: re.Match[str]) -> str:
    """Return the statements of a tasklet: reads, what it does, and then writes."""
    indent, first, last = found.group(1), [], []
    for line in found.group(2).splitlines():
        out = _OUT.fullmatch(line.strip())
        if out:
            name, array, join, index = out.groups()
            joined = f"(lambda a, b: {join})({array}{index}, {name})" if join else name
            last.append(f"{indent}{array}{index} = {joined}")
        else:
            first.append(line[4:].replace(" << ", " = "))
    return "\n".join([*first, *last, ""])
