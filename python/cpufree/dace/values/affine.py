"""Values of DaCe's symbolic expressions: numbers, or sums of multiples of a map's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

Number: TypeAlias = "int | float | bool | Fraction"


class Moving(Exception):
    """An index depends on a value of the run, `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Names(dict[str, Any]):
    """What symbols stand for: numbers, or sums; `missing` says it of names that are not in it."""

    def __init__(self, names: Mapping[str, Any], missing: Callable[[str], Any]) -> None:
        super().__init__(names)
        self.missing = missing


class NotAffine(Exception):
    """An index is no sum of multiples of parameters."""


@dataclass(frozen=True)
class Affine:
    """constant + the sum of factor * parameter."""

    constant: Any
    factors: tuple[tuple[str, Any], ...] = ()

    @property
    def params(self) -> tuple[str, ...]:
        """The parameters in it."""
        return tuple(name for name, _ in self.factors)

    def factor(self, name: str) -> int:
        """Return what a parameter is multiplied with."""
        return int(dict(self.factors).get(name, 0))

    def with_values(self, values: Mapping[str, Affine | int]) -> Affine:
        """Return it with parameters replaced."""
        found = Affine(self.constant)
        for name, factor in self.factors:
            value = values.get(name, Affine(0, ((name, 1),)))
            found = plus(found, times(as_affine(value), Affine(factor)))
        return found


def as_affine(value: Any) -> Affine:
    """Return a number as an Affine."""
    return value if isinstance(value, Affine) else Affine(value)


def plus(a: Affine, b: Affine) -> Affine:
    """Return the sum."""
    factors = dict(a.factors)
    for name, factor in b.factors:
        factors[name] = factors.get(name, 0) + factor
    kept = tuple((n, f) for n, f in sorted(factors.items()) if f != 0)
    return Affine(_plain(a.constant + b.constant), kept)


def times(a: Affine, b: Affine) -> Affine:
    """Return the product, one of which is a number."""
    if a.factors and b.factors:
        raise NotAffine
    if b.factors:
        a, b = b, a
    factors = tuple((n, _plain(f * b.constant)) for n, f in a.factors)
    return Affine(_plain(a.constant * b.constant), tuple(x for x in factors if x[1] != 0))


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def affine(expr: Any, names: Mapping[str, Any]) -> Affine:
    """Return what an expression of SymPy is, given what its symbols stand for.

    Raises
    ------
    Moving
        A symbol is none of the names.
    NotAffine
        It is no sum of multiples.
    """
    if isinstance(expr, int | float | bool):
        return Affine(expr)
    if expr.is_Symbol:
        name = str(expr)
        if name not in names:
            found = names.missing(name) if isinstance(names, Names) else None
            if found is None:
                raise Moving(name)
            return as_affine(found)
        return as_affine(names[name])
    if expr.is_Integer:
        return Affine(int(expr))
    if expr.is_Rational:
        return Affine(Fraction(int(expr.p), int(expr.q)))
    if expr.is_number and not expr.args:
        return Affine(float(expr))
    parts = [affine(a, names) for a in expr.args]
    if expr.is_Add or expr.is_Mul:
        found = parts[0]
        for part in parts[1:]:
            found = plus(found, part) if expr.is_Add else times(found, part)
        return found
    return Affine(_called(expr, parts))


_FUNCTIONS: dict[str, Any] = {
    "int_floor": lambda a, b: a // b,
    "int_ceil": lambda a, b: -(-a // b),
    "Min": min,
    "Max": max,
    "Mod": lambda a, b: a % b,
    "Abs": abs,
    "Pow": lambda a, b: Fraction(a) ** b if isinstance(a, int) else a**b,
    "floor": lambda a: a // 1,
    "ceiling": lambda a: -(-a // 1),
}


def _called(expr: Any, parts: list[Affine]) -> Any:
    function = _FUNCTIONS.get(type(expr).__name__)
    if function is None or any(p.factors for p in parts):
        raise NotAffine
    return _plain(function(*(p.constant for p in parts)))


def number(expr: Any, names: Mapping[str, Any]) -> int:
    """Return the whole number that an expression is.

    Raises
    ------
    Moving, NotAffine
        As `affine`; or it has parameters, or is no whole number.
    """
    found = affine(expr, names)
    if found.factors or found.constant != int(found.constant):
        raise NotAffine
    return int(found.constant)
