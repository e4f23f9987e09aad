"""Tables about conjugate gradients, from records of `cpufree bench cg`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from cpufree.bench.cg.configuration import Group
from cpufree.bench.cg.results import HOST_DRIVEN, Results, Series
from cpufree.bench.core import work
from cpufree.bench.core.entry import BASELINE, OURS
from cpufree.bench.core.noise import FASTER, NOISE, geometric_mean
from cpufree.bench.core.noise import FEW as FEW_REPEATS
from cpufree.bench.report.collected import Comparison, fastest
from cpufree.bench.report.tables import micro
from tools.results.records import markdown, origin, solver_record

EIGHT, FOUR = "cg-8x-2026-11-22.jsonl", "cg-4x-2026-11-22.jsonl"
TWO, ONE = "cg-2x-sorted-2026-11-23.jsonl", "cg-1x-2026-11-24.jsonl"
PETSC = "petsc-2x-2026-11-23.jsonl"
GPUS = {EIGHT: 8, FOUR: 4, TWO: 2, ONE: 1}
# Suite paper18, whose meshes are jittered, and matrices of others.
JITTERED_TWO, JITTERED_ONE = "cg-2x-2026-11-25.jsonl", "cg-1x-2026-11-25.jsonl"
JITTERED_FOUR = "cg-4x-2026-11-26.jsonl"
JITTERED_LATER = "cg-2x-2026-11-30.jsonl"
REAL_TWO, REAL_ONE = "cg-real-2x-2026-11-25.jsonl", "cg-1x-rest-2026-11-25.jsonl"
JITTERED = {JITTERED_FOUR: 4, JITTERED_TWO: 2, JITTERED_LATER: 2, JITTERED_ONE: 1}
REAL = {REAL_TWO: 2, REAL_ONE: 1}
COUNTS = {
    2: "both baselines",
    **{
        n: f"all {word} baselines"
        for n, word in ((3, "three"), (4, "four"), (5, "five"), (6, "six"))
    },
}
FEW = 1 << 16  # distinct values: that many can be numbered in 16 bits


def groups(name: str) -> list[Group]:
    """Return the systems of a record, by their number of nonzeros."""
    results = solver_record(name)
    those = [g for g in results.groups() if g.pes == GPUS.get(name, g.pes) and results.valid(g)]
    if name in JITTERED or name in REAL:  # a record may hold both
        those = [g for g in those if g.case.endswith("-like") == (name in JITTERED)]
    return sorted(those, key=lambda g: int(nonzeros(results, g)))


def nonzeros(results: Results, group: Group) -> int:
    """Return the nonzeros of a system."""
    return int(results.of(group)[0].problem["nnz"])


def rows_of(results: Results, group: Group) -> int:
    """Return the rows of a system."""
    return int(results.of(group)[0].problem["rows"])


def distinct(results: Results, group: Group) -> str:
    """Return how many distinct values a matrix has; of many, in millions."""
    count = results.distinct(group)
    if count is None:
        return "–"
    return millions(count) if count >= 1_000_000 else f"{count:,}"


def millions(count: int) -> str:
    """Return a count in millions with two digits or more."""
    return f"{count / 1e6:.{1 if count < 99.95e6 else 0}f} M"


def any_baseline(series: Series) -> bool:
    """Return whether it is one of the baselines, loops in graphs included."""
    return series.family == BASELINE


def paper_baseline(series: Series) -> bool:
    """Return whether it communicates as the papers' baselines do: peer copies, NCCL or MPI."""
    return series.task.contender in HOST_DRIVEN


def ours(results: Results, group: Group) -> Series:
    """Return cpufree by its fastest method."""
    return fastest(s for s in results.valid(group) if s.family == OURS)


def _speedup(verdict: Comparison[Series] | None) -> str:
    if verdict is None:
        return "–"
    return f"{verdict.speedup:.2f}×" + (" (n. s.)" if verdict.word == NOISE else "")


def _time(series: Series) -> str:
    return f"{micro(series.median)} `{series.task.method}`"


def against_baselines(name: str) -> str:
    """Return a row a matrix: cpufree, the best host-driven baseline, the best of all."""
    results, rows = solver_record(name), []
    for group in groups(name):
        host = results.against(group, results.host_driven)
        every = results.against(group, any_baseline)
        assert host and every
        mine = ours(results, group)
        best = f"{micro(host.theirs.median)} `{host.theirs.name}`"
        same = every.theirs is host.theirs
        device = "the same" if same else f"{micro(every.theirs.median)} `{every.theirs.name}`"
        rows.append([group.case, millions(nonzeros(results, group)), distinct(results, group)])
        rows[-1] += [_time(mine), best, _speedup(host), device, "" if same else _speedup(every)]
    heads = ["matrix", "nonzeros", "distinct values", "cpufree, µs", "best host-driven, µs"]
    return markdown([*heads, "speed-up", "best of all baselines, µs", "speed-up"], rows)


def has_few_values(name: str, group: Group) -> bool:
    """Return whether a matrix has few distinct values, which are stored as short codes."""
    return (solver_record(name).distinct(group) or FEW) < FEW


def mean(
    name: str, those: Callable[[Series], bool], method: str | None, few: bool = True
) -> float | None:
    """Return the geometric mean of the speed-ups of a record over the fastest of `those`.

    `few`: matrices with few distinct values count, too.
    """
    results = solver_record(name)
    counted = [group for group in groups(name) if few or not has_few_values(name, group)]
    found = [results.against(group, those, method) for group in counted]
    there = [verdict.speedup for verdict in found if verdict]
    return geometric_mean(there) if there else None


def least(name: str, those: Callable[[Series], bool]) -> tuple[float, str]:
    """Return the smallest speed-up of a record, and the matrix."""
    results = solver_record(name)
    found = [(results.against(group, those), group.case) for group in groups(name)]
    return min((verdict.speedup, case) for verdict, case in found if verdict)


def card(name: str) -> str:
    """Return the kind of GPU of a record, such as H100."""
    found = re.search(r"\bH\d+", origin(name).machine)
    assert found, name
    return found[0]


def means(records: dict[str, int], by_values: bool) -> str:
    """Return the geometric means of records: of all matrices, and of those of many values.

    Columns: over peer copies, NCCL and MPI; over all that the host drives; over all baselines.
    """
    rows = []
    for name, gpus in records.items():
        there = groups(name)
        many = [group for group in there if not has_few_values(name, group)]
        for few, counted in ((True, there), (False, many))[: 1 + by_values]:
            row = [
                f"{gpus} {card(name)}",
                f"{len(counted)} of 18" + ("" if few else ", many values"),
            ]
            methods = (None, "cg", "prcg")
            values = [mean(name, paper_baseline, method, few) for method in methods]
            values += [mean(name, solver_record(name).host_driven, None, few)]
            values += [mean(name, any_baseline, method, few) for method in methods]
            rows.append(row + ["–" if v is None else f"{v:.2f}×" for v in values])
    paper = [f"peer copies, NCCL, MPI: {what}" for what in ("fastest", "`cg`", "`prcg`")]
    every = [f"all baselines: {what}" for what in ("fastest", "`cg`", "`prcg`")]
    return markdown(["GPUs", "matrices", *paper, "all host-driven: fastest", *every], rows)


def baselines_of(name: str) -> list[str]:
    """Return the names of the baselines that a record holds."""
    results = solver_record(name)
    return sorted(
        {s.task.contender for g in groups(name) for s in results.of(g) if s.family == BASELINE}
    )


def measured_baselines(name: str) -> str:
    """Return the baselines that a record holds, in words."""
    return listed(baselines_of(name))


def listed(names: Sequence[str]) -> str:
    """Return names as code, one behind the other."""
    return ", ".join(f"`{one}`" for one in names)


def which_ran(records: dict[str, int]) -> str:
    """Return which baselines ran, a line a record, those of peer copies, NCCL and MPI first."""
    lines = []
    for name, gpus in records.items():
        names = baselines_of(name)
        paper = [one for one in names if one in HOST_DRIVEN]
        others = [one for one in names if one not in HOST_DRIVEN]
        ran = f"of peer copies, NCCL and MPI {listed(paper) or 'none'}; beside them"
        lines.append(f"- {gpus} {card(name)}: {ran} {listed(others)}\n")
    return "".join(lines)


def petsc() -> str:
    """Return cpufree against PETSc, a row a matrix."""
    results, rows = solver_record(PETSC), []
    for group in groups(PETSC):
        verdict = results.against(group, lambda s: s.task.contender == "petsc")
        assert verdict
        rows.append([group.case, millions(nonzeros(results, group)), _time(verdict.ours)])
        rows[-1] += [_time(verdict.theirs), _speedup(verdict)]
    return markdown(["matrix", "nonzeros", "cpufree, µs", "PETSc, µs", "speed-up"], rows)


def petsc_mean(method: str | None) -> float:
    """Return the geometric mean of the speed-ups over PETSc."""
    found = mean(PETSC, lambda s: s.task.contender == "petsc", method)
    assert found is not None
    return found


def phases(name: str) -> str:
    """Return where the time of an iteration goes, a row a matrix, by the fastest method."""
    results, rows = solver_record(name), []
    for group in groups(name):
        mine = ours(results, group)
        split = mine.split
        if split is None:
            continue
        cells = [micro(split[p]) for p in ("spmv", "vector", "halo_wait", "reduction_wait")]
        rows.append([group.case, f"`{mine.task.method}`", *cells, micro(split["other"])])
    heads = ["matrix", "method", "product", "vectors", "waiting for halos"]
    return markdown([*heads, "waiting for reductions", "launch"], rows)


def copy_rate(name: str) -> float:
    """Return the bytes per second of a copy within one GPU, measured in the same run."""
    rate = solver_record(name).memory_rate()
    assert rate
    return rate[1]


def floor(name: str, group: Group) -> tuple[float, float]:
    """Return the seconds that the bytes of an iteration of CG take, and the fastest iteration."""
    results = solver_record(name)
    mine = ours(results, group)
    return work.least_bytes(mine.counted, "cg") / copy_rate(name) / group.pes, mine.median


def floors() -> str:
    """Return floor and fastest iteration on one, two and eight GPUs, a row a matrix."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name in (ONE, TWO, EIGHT):
        for group in groups(name):
            found.setdefault(group.case, {})[name] = floor(name, group)
    rows = []
    for group in groups(ONE):
        row = [group.case]
        for name in (ONE, TWO, EIGHT):
            if (both := found[group.case].get(name)) is None:
                row += ["–", "–", "–"]
            else:
                row += [micro(both[0]), micro(both[1]), f"{both[1] / both[0]:.2f}"]
        rows.append(row)
    heads = [f"{n}: {x}" for n in ("1 GPU", "2", "8") for x in ("floor, µs", "iteration", "ratio")]
    return markdown(["matrix", *heads], rows)


def product(group: Group) -> tuple[float, float]:
    """Return speed-up of the product over the best of cuSPARSE, and its share of the copy rate.

    One GPU. The product's time is that of the clocks in the kernel, by the fastest method.
    """
    results = solver_record(ONE)
    split = ours(results, group).split
    trials = [s.facts["spmv_seconds"] for s in results.of(group) if "spmv_seconds" in s.facts]
    vendor = min(v for trial in trials for k, v in trial.items() if k.startswith("vendor"))
    assert split
    moved = 12.0 * nonzeros(results, group) + 20.0 * rows_of(results, group)
    return vendor / split["spmv"], moved / split["spmv"] / copy_rate(ONE)


def products(count: int) -> str:
    """Return the product of the largest matrices against cuSPARSE and against a copy."""
    rows = []
    for group in reversed(groups(ONE)[-count:]):
        over, share = product(group)
        rows.append([group.case, f"{over:.2f}×", f"{share:.2f}"])
    return markdown(["matrix", "over the best of cuSPARSE", "share of the copy rate"], rows)


def wins(name: str, least_gain: float, largest: bool, count: int) -> tuple[int, str]:
    """Return how many of the largest or smallest matrices gain that much, and all their gains."""
    results = solver_record(name)
    chosen = groups(name)[-count:] if largest else groups(name)[:count]
    gains = []
    for group in chosen:
        verdict = results.against(group, any_baseline)
        assert verdict
        gains.append((verdict.speedup, group.case))
    text = ", ".join(f"{case} {gain:.2f}×" for gain, case in sorted(gains, reverse=True))
    return sum(gain >= least_gain for gain, _ in gains), text


def significant(name: str) -> str:
    """Return on how many matrices cpufree is faster than all baselines, and where it is not."""
    results = solver_record(name)
    found = [(results.against(g, any_baseline), g.case) for g in groups(name)]
    faster = sum(v.word == FASTER for v, _ in found if v)
    below = [f"{case} ({_speedup(v)})" for v, case in found if v and v.speedup < 1]
    if all(v.word == FEW_REPEATS for v, _ in found if v):
        return "Its rounds are too few to tell a difference from noise."
    ran = COUNTS[len(baselines_of(name))]
    text = f"On {faster} of {len(found)} matrices cpufree is faster than {ran} that ran"
    return text + (f"; the ratio is below 1 on {', '.join(below)}." if below else ".")


def few_values() -> str:
    """Return the matrices with few distinct values, and how many each has."""
    results = solver_record(ONE)
    few = [group for group in groups(ONE) if has_few_values(ONE, group)]
    return ", ".join(f"{group.case} {distinct(results, group)}" for group in few)
