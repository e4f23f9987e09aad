"""Results out of the files of runs: what was measured of whom, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cpufree.bench.cg.configuration import Group
from cpufree.bench.cg.matrices import matrices_text, sources, with_shown_names
from cpufree.bench.contenders.registry import DEVICE_DRIVEN
from cpufree.bench.core import work
from cpufree.bench.core.entry import BASELINE, OURS, PEER
from cpufree.bench.core.lines import Header, Lines, Load, OfGroup, Solve
from cpufree.bench.core.plan import Task
from cpufree.bench.report.collected import Collected, Measured
from cpufree.generate.look_alikes import entry_of

# What a split tells of a solve.
PHASES = ("spmv", "vector", "halo_wait", "reduction_wait")
# True residuals at the same iteration agree to within a small factor. Who is off the smallest one
# by more than this has computed something else.
MOST_OFF = 100.0
ABOVE_TOLERANCE = 2.0


@dataclass
class Series(Measured):
    """The repeated measurements of a contender with a method on a system."""

    group: Group
    fixed: bool
    """The iterations were fixed, not the tolerance."""
    rtol: float
    limit: int | None = None
    """The fixed number of iterations, as it was cut for the system."""
    least_residual: float | None = None
    """Smallest true residual of all on the system that did no more iterations than asked for."""

    @property
    def name(self) -> str:
        """Contender and method."""
        return f"{self.task.contender} {self.task.method}"

    @property
    def times(self) -> list[float]:
        """What is compared: seconds per iteration, or to the tolerance."""
        return self.per_iteration if self.fixed else [line["seconds"] for line in self.lines]

    @property
    def split(self) -> dict[str, float] | None:
        """Seconds per iteration of each phase and of what is `other`; None where it is not known.

        Out of the solve that was done for that, or the mean of the repeats that tell.
        """
        lines: list[Solve] = [self.split_line] if self.split_line else []
        lines = lines or [line for line in self.lines if line.get("split")]
        if not lines:
            return None
        iterations = sum(line["iterations"] for line in lines)
        splits = [line["split"] or {} for line in lines]
        spent = {n: sum(one.get(n) or 0.0 for one in splits) / iterations for n in PHASES}
        whole = sum(line["seconds"] for line in lines) / iterations
        return {**spent, "other": max(0.0, whole - sum(spent.values()))}

    @property
    def counted(self) -> work.Problem:
        """What flops and bytes are counted for."""
        value_bytes = 8 if self.group.precision == "double" else 4
        jacobi = self.group.preconditioner == "jacobi"
        return work.Problem(self.problem["rows"], self.problem["nnz"], value_bytes, jacobi)

    def rates(self) -> tuple[float, float]:
        """Return flops and bytes per second by the count of Trotter et al., of the median solve."""
        jacobi = self.group.preconditioner == "jacobi"
        done = work.operations(self.task.method, self.iterations, jacobi)
        seconds = self.spread.median * self.iterations
        return done.flops(self.counted) / seconds, done.bytes(self.counted) / seconds

    def roofline(self, rate: float) -> float:
        """Return the time for the least bytes at `rate` bytes per second over the time taken."""
        return work.least_bytes(self.counted, self.task.method) / rate / self.spread.median

    def problems(self) -> list[str]:
        """Return why this does not count as a solve of the system, nothing where it does."""
        if self.task.variant != "full":
            return []
        if self.check is None or self.check["true_residual"] is None:
            return ["x is not finite" if self.check else "x was not checked"]
        true = self.check["true_residual"]
        if not self.fixed:
            failed = {str(line["reason"]) for line in self.lines}
            failed = {reason for reason in failed if not reason.startswith("CONVERGED")}
            above = true > ABOVE_TOLERANCE * self.rtol
            found = [f"not converged: {', '.join(sorted(failed))}"] if failed else []
            return found or ([f"true residual {true:.1e} is above the tolerance"] if above else [])
        if self.least_residual is not None and true > MOST_OFF * self.least_residual:
            return [f"true residual {true:.1e}, where others have {self.least_residual:.1e}"]
        return []


class Results(Collected[Group, Series]):
    """All series of some files, and the lines that go with them."""

    benchmark = "cg"

    def __init__(self, files: Sequence[Path]) -> None:
        """Read files of one machine; errors as of Collected."""
        self.sources: dict[str, str] = {}
        super().__init__(files)
        self._compare_residuals()

    def _take(self, lines: Lines, file: Path) -> None:
        lines = with_shown_names(lines)
        self.sources |= sources(lines.header)
        super()._take(lines, file)

    def missing(self, header: Header, groups: Iterable[Group]) -> str:
        """Return which matrices a run was asked for and did not measure."""
        asked, there = sources(header), {group.case for group in groups}
        missing = [name for name in asked if name not in there]
        some = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" * (len(missing) > 3))
        return f"{some} of {len(asked)} matrices not measured" if missing else ""

    def matrices(self, groups: Iterable[Group]) -> str:
        """Return how many matrices of which suite these groups are."""
        return matrices_text(
            {self.sources[group.case] for group in groups if group.case in self.sources}
        )

    def distinct(self, group: Group) -> int | None:
        """Return the distinct values of a group's matrix; None where they were not counted.

        Records that do not tell are older than the count: of matrices of suites, it is known.
        """
        problem = self.of(group)[0].problem if self.of(group) else {}
        if "distinct" in problem:
            return int(problem["distinct"])
        entry = entry_of(self.sources.get(group.case, ""))
        return entry.distinct if entry and group.precision == "double" else None

    def group_of(self, line: OfGroup) -> Group:
        """Return the group that a line is of."""
        return Group(line["case"], line["precision"], line["preconditioner"], line["pes"])

    def make_series(self, group: Group, task: Task, load: Load, lines: Lines) -> Series:
        """Return a series without measurements yet."""
        limits = [line["iterations"] for line in lines.limits if _same(line, group)]
        configuration = lines.header["configuration"]
        return Series(
            group,
            task,
            load["family"],
            fixed=configuration["iterations"] is not None,
            rtol=configuration["rtol"],
            limit=limits[-1] if limits else None,
        )

    def _compare_residuals(self) -> None:
        for group in self.groups():
            residuals = [
                series.check["true_residual"]
                for series in self.of(group)
                if series.check
                and series.check["true_residual"] is not None
                and (series.limit is None or series.check["iterations"] <= series.limit)
            ]
            for series in self.of(group):
                series.least_residual = min(residuals, default=None)

    def settings(self) -> list[tuple[str, str, int]]:
        """Return precision, preconditioner and PEs of the groups, each once."""
        found = dict.fromkeys((g.precision, g.preconditioner, g.pes) for g in self.groups())
        return sorted(found)

    def groups_of(self, setting: tuple[str, str, int]) -> list[Group]:
        """Return the groups of a setting: one a matrix."""
        return [g for g in self.groups() if (g.precision, g.preconditioner, g.pes) == setting]

    def host_driven(self, series: Series) -> bool:
        """Return whether the CPU decides each step of a contender."""
        return host_driven(series)

    def reference(self) -> str | None:
        """Return whose classic CG on one PE speed-ups are over: the single GPU's, else SciPy's."""
        there = {s.task.contender for s in self.series.values() if s.task.method == "cg"}
        return next((n for n in ("single_gpu", "scipy", "cpufree") if n in there), None)

    def reference_for(self, group: Group) -> Series | None:
        """Return the reference on the system of a group, on one PE; None where it is not there."""
        name = self.reference()
        if name is None:
            return None
        one = Group(group.case, group.precision, group.preconditioner, 1)
        found = self.series.get((one, Task(name, "cg", "full")))
        return found if found and not found.problems() else None

    def rate_for(self, series: Series) -> float | None:
        """Return the bytes per second of the memory that a series could use."""
        if "copy_rate" in series.facts:
            return float(series.facts["copy_rate"])
        found = self.memory_rate()
        if found is None or (found[0] == "copy" and series.facts.get("device") == "cpu"):
            return None
        # The triad runs on all cores, whatever the number of PEs; the copy on one GPU.
        return found[1] * (series.group.pes if found[0] == "copy" else 1)


# The kinds of the papers; NCCL with a thread, or a process, for each GPU.
HOST_DRIVEN = ("peer_copy", "nccl", "nccl_mpi", "mpi")
# By the name under which a report gives the geometric mean of speed-ups over the fastest of each.
DENOMINATORS: dict[str, Callable[[Series], bool]] = {
    "peer_copy, nccl, mpi": lambda s: s.task.contender in HOST_DRIVEN,
    "all baselines": lambda s: s.family == BASELINE,
    "peers": lambda s: s.family == PEER,
}


def host_driven(series: Series) -> bool:
    """Return whether the CPU decides each step of a contender."""
    return series.family != OURS and series.task.contender not in DEVICE_DRIVEN


def _same(line: OfGroup, group: Group) -> bool:
    return (line["case"], line["precision"], line["preconditioner"]) == (
        group.case,
        group.precision,
        group.preconditioner,
    )
