"""Results of stencils out of the files of runs, and what follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cpufree.bench.core.entry import BASELINE
from cpufree.bench.core.lines import Lines, Load, OfGroup, Reference
from cpufree.bench.core.plan import Task, matches
from cpufree.bench.report.collected import Collected, Measured
from cpufree.bench.stencil.contenders import DEVICE_DRIVEN
from cpufree.bench.stencil.plan import PER_PE, Group


@dataclass
class StencilSeries(Measured):
    """The repeated measurements of a contender on a grid."""

    group: Group
    reference: Reference | None = None
    """What the values must be; its checksum is None where it is unknown."""

    @property
    def updates_per_second(self) -> float:
        """Points updated per second."""
        return float(self.problem["updates"]) / self.spread.median

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second of reading and writing each updated point once in an iteration."""
        value_bytes = 8 if self.group.precision == "double" else 4
        return 2.0 * value_bytes * self.updates_per_second

    def problems(self) -> list[str]:
        """Return why this does not count, nothing where it does."""
        if self.task.variant != "full":
            return []
        if self.check is None or self.reference is None:
            return ["its values were not checked"]
        if self.reference["checksum"] is None:
            return ["others have other values, and which are right is unknown"]
        if self.check["checksum"] != self.reference["checksum"]:
            return [f"its values are not those of {self.reference['by']}"]
        return []


Setting = tuple[str, str]


class StencilResults(Collected[Group, StencilSeries]):
    """All series of some files, and the lines that go with them."""

    benchmark = "stencil"

    def __init__(self, files: Sequence[Path]) -> None:
        """Read files of one machine; errors as of Collected."""
        super().__init__(files)
        for group in self.groups():
            self._agree(group)

    def group_of(self, line: OfGroup) -> Group:
        """Return the group that a line is of."""
        return Group(line["case"], line["precision"], line["boundary"], line["pes"])

    def make_series(self, group: Group, task: Task, load: Load, lines: Lines) -> StencilSeries:
        """Return a series without measurements yet."""
        of_group = [line for line in lines.references if matches(line, group)]
        reference = of_group[-1].copy() if of_group else None
        return StencilSeries(group, task, load["family"], reference=reference)

    def _agree(self, group: Group) -> None:
        """Where no reference was computed, take what most have, if two or more do."""
        checks = [s.check["checksum"] for s in self.of(group) if s.check]
        most = Counter(checks).most_common(2)
        clear = bool(most) and most[0][1] > 1 and (len(most) == 1 or most[0][1] > most[1][1])
        for series in self.of(group):
            if series.reference and series.reference["checksum"] is None and clear:
                series.reference["checksum"] = most[0][0]
                series.reference["by"] = f"{most[0][1]} others"

    def settings(self) -> list[Setting]:
        """Return precision and boundary of the groups, each once."""
        return sorted(dict.fromkeys((g.precision, g.boundary) for g in self.groups()))

    def cases(self, setting: Setting) -> list[str]:
        """Return the names of the grids of a setting, in the order of the files."""
        return list(
            dict.fromkeys(g.case for g in self.groups() if (g.precision, g.boundary) == setting)
        )

    def groups_of(self, setting: Setting, case: str) -> list[Group]:
        """Return the groups of a grid: one for each number of PEs, in order."""
        mine = [g for g in self.groups() if (g.precision, g.boundary, g.case) == (*setting, case)]
        return sorted(mine, key=lambda g: g.pes)

    def host_driven(self, series: StencilSeries) -> bool:
        """Return whether the CPU launches and orders each iteration of a contender."""
        return host_driven(series)


def host_driven(series: StencilSeries) -> bool:
    """Return whether it is a baseline of whose iterations the CPU launches and orders each."""
    return series.family == BASELINE and series.task.contender not in DEVICE_DRIVEN


def baseline(series: StencilSeries) -> bool:
    """Return whether it is a baseline, graphs that meet through flags among them."""
    return series.family == BASELINE


def weak(case: str) -> bool:
    """Return whether a grid grows with the number of PEs."""
    return case.endswith(PER_PE)


def dims(case: str) -> int:
    """Return the dimensions of a grid."""
    return case.count("x") + 1
