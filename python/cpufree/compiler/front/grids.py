"""Grids of several widths: how many rows of one array a row of another one stands for.

`coarse[:] = fine[::2]` says that rows of `coarse` stand for every second row of `fine`. A coarse
row lies where its fine row lies (ir.Field.apart), so that what it is computed from is at a constant
distance. Statements say so one by one: lowering notes them, and begins again with what they add up
to where it is not what was assumed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from cpufree.compiler import ir

Places: TypeAlias = "dict[str, tuple[int, int, int]]"
"""Of fields the distance of rows, where the first one lies, and all rows with those between."""


class Regrid(Exception):
    """Rows of arrays stand for others than was assumed: lowering begins again with `places`."""

    def __init__(self, places: Places) -> None:
        super().__init__(places)
        self.places = places


class Grids:
    """How far rows of fields are apart, as far as statements have said."""

    def __init__(self, assumed: Places) -> None:
        """`assumed`: of fields that are not in it rows have the distance 1."""
        self.assumed = assumed
        self._of: dict[str, tuple[str, Fraction]] = {}
        """By field: another one, and the distance in distances of that one's rows."""
        self._hints: list[tuple[str, str, Fraction]] = []

    def __copy__(self) -> Grids:
        made = Grids(self.assumed)
        made._of, made._hints = dict(self._of), list(self._hints)
        return made

    def tie(self, one: str, other: str, ratio: Fraction) -> bool:
        """Note that rows of one field are `ratio` times as far apart as those of another.

        Returns False where that does not agree with what has been noted before.
        """
        (a, x), (b, y) = (self._of.get(name, (name, Fraction(1))) for name in (one, other))
        if a == b:
            return x == ratio * y
        self._of.setdefault(b, (b, Fraction(1)))
        self._of[one] = a, x
        for name, (root, z) in self._of.items():
            if root == b:
                self._of[name] = a, z * x / (ratio * y)
        return True

    def hint(self, one: str, other: str, ratio: Fraction) -> None:
        """Note the same of a single row, which may lie anywhere, but should lie near."""
        self._hints.append((one, other, ratio))

    def check(self, fields: Mapping[str, ir.Field]) -> None:
        """Raise Regrid where rows lie otherwise than was assumed."""
        for hint in self._hints:
            self.tie(*hint)
        grids: dict[str, dict[str, Fraction]] = defaultdict(dict)
        for name, (root, z) in self._of.items():
            grids[root][name] = z
        found: Places = {}
        for ratios in grids.values():
            found.update(_places({fields[name]: z for name, z in ratios.items()}))
        known = {name: self.assumed.get(name, (1, 0, fields[name].shape[0])) for name in found}
        if known != found:
            raise Regrid(found)


def _places(ratios: Mapping[ir.Field, Fraction]) -> Places:
    """Return where rows of fields lie that stand for one another's."""
    unit = math.lcm(*(z.denominator for z in ratios.values()))
    least = math.gcd(*(int(z * unit) for z in ratios.values()))
    apart = {f: int(z * unit) // least for f, z in ratios.items()}
    finest = min(apart.values())
    ends = max(f.given_shape[0] * finest for f, n in apart.items() if n == finest)
    found = {}
    for f, distance in apart.items():
        # The last row, and of those behind it as many as the finest grid has.
        rows = f.given_shape[0]
        last = distance * (rows - 1) + 1
        found[f.name] = distance, 0, min(max(last, ends), distance * rows)
        short = (ends - 1) // distance + 1 - rows
        if short > 1 and max(apart.values()) > 1:  # points inside: in the middle
            first = short // 2 * distance
            found[f.name] = distance, first, first + last
    return found
