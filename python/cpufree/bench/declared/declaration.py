"""What a script of bench/ declares: its axes, who is measured, and whom the others are beside.

The shape is described in docs/benchmarking.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cpufree.errors import InvalidInputError
from cpufree.text import meant

Call: TypeAlias = Callable[[], "float | Mapping[str, Any] | None"]
"""Does the work once. Returns its seconds, or what the record is to hold, `seconds` among it; None:
the wall time counts."""
Axis: TypeAlias = "Sequence[Any] | Mapping[str, Any]"
"""Values, or values by the labels that name them. Of a sequence, others may be asked for."""
UNITS = {"s": 1.0, "ms": 1e3, "µs": 1e6, "MB": 1e-6, "iterations": 1.0, "×": 1.0, "mJ": 1e3}


_OF_LINES = ("kind", "case", "contender", "round", "error")


@dataclass(frozen=True)
class Case:
    """A point of the axes; `case.matrix` is its value on the axis `matrix`."""

    name: str
    """What tells it from the others of a run."""
    labels: dict[str, Any]
    """By axis, as the record has them."""
    values: dict[str, Any]
    contenders: tuple[str, ...] = ()
    """Those that are asked for; empty: all."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the record is to say of the problem; the set-up fills it in."""

    def asks(self, contender: str) -> bool:
        """Return whether a contender is to be measured; what others need may be left out."""
        return not self.contenders or contender in self.contenders

    def __getattr__(self, axis: str) -> Any:
        """Return the value on an axis."""
        try:
            return self.__dict__["values"][axis]
        except KeyError:
            raise AttributeError(axis) from None


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A benchmark: every contender on each point of the axes, interleaved in rounds.

    `set_up(case)` yields, once, the contenders by name; what it has opened it closes afterwards.

    Examples:
        >>> def set_up(case):
        ...     numbers = list(range(case.count))
        ...     yield {"sum": lambda: sum(numbers), "sorted": lambda: sorted(numbers)}
        >>> bench = Bench(name="sums", set_up=set_up, axes={"count": (10, 1000)}, ours="sum")
        >>> [case.count for case in bench.cases(bench.chosen({}, on_gpus=False, quick=False))]
        [10, 1000]
    """

    name: str
    set_up: Callable[[Case], Iterator[Mapping[str, Call]]]
    axes: Mapping[str, Axis]
    """The first varies slowest. An axis of one value is a setting."""
    cpu: Mapping[str, Axis] = field(default_factory=dict)
    """What other axes are where no GPU is in use."""
    quick: Mapping[str, Axis] = field(default_factory=dict)
    """What they are with --quick."""
    ours: str | None = None
    """The contender that the others are compared with; None: they are not."""
    apart: Sequence[str] = ()
    """Contenders that are no rivals, such as the speed of the memory."""
    unit: str = "ms"
    value: str = "seconds"
    """What is compared, of what calls return."""
    shown: Sequence[str] = ()
    """What else the table shows of it."""
    closing: Callable[[Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]], Iterator[str]] = (
        lambda _: iter(())
    )
    """What is said below the table, of what calls have returned, by case and contender."""
    repeats: int = 7
    cold: bool = False
    """No call warms up."""
    ordered: bool = False
    """The order is that of the set-up in each round: calls change what they find."""
    strict: bool = False
    """A failure makes the command fail, though others were measured."""
    pause: float = 0.0
    """Seconds between two calls: threads of a BLAS spin for some 20 ms after one."""

    def __post_init__(self) -> None:
        """Refuse axes whose names mean something else in a case, or in a line of the record."""
        if taken := {*self.axes} & {*Case.__dataclass_fields__, *_OF_LINES}:
            raise ValueError(f"an axis cannot be called {min(taken)}: the record has that already")

    def chosen(
        self, asked: Mapping[str, Sequence[str]], *, on_gpus: bool, quick: bool
    ) -> dict[str, dict[str, Any]]:
        """Return the values of each axis by label, those `asked` for in words if there are any.

        Raises:
            InvalidInputError: a word that is no value of its axis.
        """
        axes = {**self.axes, **({} if on_gpus else self.cpu), **(self.quick if quick else {})}
        return {name: _values(name, axis, asked.get(name) or ()) for name, axis in axes.items()}

    def cases(
        self, chosen: Mapping[str, Mapping[str, Any]], contenders: Sequence[str] = ()
    ) -> list[Case]:
        """Return the points of the axes, the first one varying slowest."""
        told = [name for name, values in chosen.items() if len(values) > 1] or list(chosen)[:1]
        found = []
        for labels in itertools.product(*chosen.values()):
            of = dict(zip(chosen, labels, strict=True))
            name = ", ".join(of[a] if not of[a].isdigit() else f"{a} {of[a]}" for a in told)
            values = {axis: chosen[axis][label] for axis, label in of.items()}
            found.append(Case(name or self.name, of, values, tuple(contenders)))
        return found


def _values(name: str, axis: Axis, words: Sequence[str]) -> dict[str, Any]:
    """Return the values of an axis by label: those that words name, all where there are none."""
    known = dict(axis) if isinstance(axis, Mapping) else {str(one): one for one in axis}
    if not words:
        return known
    kind = type(next(iter(known.values()), ""))
    is_open = not isinstance(axis, Mapping) and kind in (int, float, str)
    if kind in (int, float):
        words = [part for word in words for part in word.split(",")]
    found = {}
    for word in words:
        if word not in known and not is_open:
            several = ", ".join(known)
            raise InvalidInputError(
                f"--{name} {word}: unknown{meant(word, tuple(known))}; choose from {several}"
            )
        try:
            found[word] = known[word] if word in known else kind(word)
        except ValueError:
            raise InvalidInputError(f"--{name} {word}: give a number") from None
    return found
