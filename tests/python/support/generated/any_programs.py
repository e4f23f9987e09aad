"""Generators of programs by feature, and how they fared: what was taken, refused, and wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from any_program import Case
from any_program_aliases import write_aliases
from any_program_chosen import write_chosen
from any_program_errors import write_errors
from any_program_fewer import write_fewer
from any_program_fields import write_fields
from any_program_grids import write_grids
from any_program_helpers import write_helpers
from any_program_lists import write_lists
from any_program_names import write_names
from any_program_odd import write_odd
from any_program_order import write_order
from any_program_outside import write_outside
from any_program_products import write_products
from any_program_returns import write_returns
from any_program_rings import write_rings
from any_program_turns import write_turns
from any_program_types import write_special, write_types

FEATURES: dict[str, Callable[[int], Case]] = {
    "names": write_names,
    "aliases": write_aliases,
    "order": write_order,
    "types": write_types,
    "special": write_special,
    "errors": write_errors,
    "odd": write_odd,
    "rings": write_rings,
    "chosen": write_chosen,
    "fewer": write_fewer,
    "fields": write_fields,
    "products": write_products,
    "grids": write_grids,
    "lists": write_lists,
    "turns": write_turns,
    "helpers": write_helpers,
    "returns": write_returns,
    "outside": write_outside,
}
BROKEN = ("errors", "odd", "outside")
"""Features most of whose programs are to be refused, or raise."""


class Tally:
    """Counts of outcomes, of a feature and of its constructs."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.labels: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def add(self, feature: str, labels: Iterable[str], outcome: str) -> None:
        """Count a program."""
        self.outcomes[feature][outcome] += 1
        for label in labels:
            self.labels[feature, label][outcome] += 1

    def share(self, feature: str) -> float:
        """Return which part of the programs that Python runs to its end is not refused."""
        return _share(self.outcomes[feature])

    def lines(self, labels: bool = True) -> list[str]:
        """Return a table: for each feature and construct the share taken, and the counts."""
        found = []
        for feature, counts in self.outcomes.items():
            found.append(f"{feature:32} {_share(counts):4.0%}  {_counts(counts)}")
            for (owner, label), of_label in sorted(self.labels.items()):
                if labels and owner == feature:
                    found.append(f"    {label:28} {_share(of_label):4.0%}  {_counts(of_label)}")
        return found


def _share(counts: Counter[str]) -> float:
    ended = counts["same"] + counts["failed"] + counts["refused"]
    return 1 - counts["refused"] / ended if ended else 1.0


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))


def words_of(case: Case, verdict: Any) -> str:
    """Return a failure as a text that can be run, headed by what is wrong."""
    label = f"{case.feature}, seed {case.seed}"
    words = f"{verdict.kind}: {verdict.words}".replace("\n", "\n# ")
    return f"# {label}\n# {words}\n{case.text}"
