"""Conjugate gradients: the tables of Ismayilov 2023 and Trotter et al. 2025 beside records."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from cpufree.bench.cg.configuration import Group
from cpufree.bench.cg.results import Results, Series
from cpufree.bench.core.entry import OURS
from cpufree.bench.core.noise import geometric_mean
from cpufree.bench.core.plan import Task
from cpufree.bench.report.tables import micro
from tools.results import solver_tables as cg
from tools.results.other_tables import billion
from tools.results.records import FOLDER, markdown, medians, problems, solver_record

BOTH = "cg-2x-2026-11-22.jsonl"  # one and two GPUs in one run
PARTITIONS = "partitions-2026-11-30.jsonl"
# Trotter et al. 2025, Table 2, H100 with 64 GB: iterations and seconds of aCG (standard), of aCG
# (monolithic) and of PETSc. Bytes per second at most: 2.02e12 (there, section 4.2.1); an H100 SXM
# with 80 GB has 3.35e12 (NVIDIA's data sheet).
TABLE_2 = {
    "Queen_4147": ((26165, 79.91), (26642, 87.32), (26418, 85.80)),
    "Bump_2911": ((25290, 33.62), (26342, 37.44), (25035, 36.40)),
    "Cube_Coup_dt6": ((408, 0.51), (408, 0.56), (408, 0.54)),
    "Flan_1565": ((1155, 1.26), (1154, 1.35), (1158, 1.35)),
    "audikw_1": ((4772, 3.36), (4941, 3.82), (4753, 3.67)),
    "Serena": ((3703, 2.39), (3745, 2.81), (3700, 2.66)),
}
THEIR_MEMORY, OUR_MEMORY = 2.02e12, 3.35e12
# Iterations per second on Flan_1565, A100: Trotter et al. 2025, section 4.2.3.
FLAN = (
    ("Ismayilov 2023", {1: 397.5, 8: 2458.5}),
    ("Ma et al., as Trotter et al. quote them", {1: 880.0}),
    ("aCG, monolithic (Trotter et al. 2025)", {1: 732.9, 8: 3121.9}),
)
SAMPLED = ((cg.JITTERED_ONE, 1), (cg.JITTERED_TWO, 2), (cg.JITTERED_FOUR, 4))
PER_GPU_TABLE_3 = 1.61  # TB/s of aCG (MPI), CG, poisson1d, 16 H100: Trotter et al., Table 3
SHARE_OF_TABLE_3 = PER_GPU_TABLE_3 * 1e12 / THEIR_MEMORY


def filled(text: str) -> str:
    """Return a paragraph in lines of the page."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def _best(results: Results, group: Group, method: str | None = None) -> float:
    """Return the fastest iteration of cpufree, in seconds."""
    mine = [s for s in results.valid(group) if s.family == OURS]
    return min(s.median for s in mine if method in (None, s.task.method))


def strong_scaling() -> str:
    """Return iterations of suite `structured` on one to eight H200, and efficiencies."""
    found: dict[str, dict[int, float]] = {}
    for name, gpus in cg.GPUS.items():
        results = solver_record(name)
        for group in cg.groups(name):
            found.setdefault(group.case, {})[gpus] = _best(results, group)
    rows, counts = [], (2, 4, 8)
    for group in cg.groups(cg.ONE):
        times = found[group.case]
        cells = [micro(times[n]) if n in times else "–" for n in (1, *counts)]
        cells += [f"{times[1] / n / times[n]:.0%}" if n in times else "–" for n in counts]
        rows.append([group.case, *cells])
    whole = [times for times in found.values() if all(n in times for n in (1, *counts))]
    means = [f"{geometric_mean([t[1] / n / t[n] for t in whole]):.0%}" for n in counts]
    rows.append([f"*geometric mean of {len(whole)} on all*", "", "", "", "", *means])
    heads = ["1 GPU, µs", *(f"{n}" for n in counts), *(f"efficiency, {n}" for n in counts)]
    return markdown(["matrix", *heads], rows)


def single_gpu_beside() -> str:
    """Return what two GPUs gain over the single-GPU baseline of the same run."""
    results = Results([FOLDER / BOTH])
    gains: dict[int, list[float]] = {1: [], 2: []}
    for group in results.groups():
        alone = Group(group.case, "double", "none", 1)
        one = results.series.get((alone, Task("single_gpu", "cg", "full")))
        if one and not one.problems() and results.valid(group):
            gains[group.pes].append(one.median / _best(results, group))
    single, double = (geometric_mean(gains[n]) for n in (1, 2))
    return filled(
        f"One run with one and two H200 ([record](../bench/results/{BOTH}), an earlier state of "
        f"the kernels): over `single_gpu` by `cg`, cpufree is {single:.2f} times as fast on one "
        f"GPU ({len(gains[1])} matrices), {double:.2f} times on two ({len(gains[2])})."
    )


def over_on_stream() -> str:
    """Return speed-ups over NVSHMEM on streams, the opponent of Ismayilov 2023, Table 3.1."""

    def theirs(series: Series) -> bool:
        return series.task.contender == "nvshmem_on_stream"

    rows = [["Ismayilov 2023, 8 A100, 18 matrices", "1.54×, 0.95×", "1.63×, 0.94×"]]
    for name, gpus in cg.GPUS.items():
        if "nvshmem_on_stream" not in cg.baselines_of(name):
            continue
        cells = [_mean_and_least(name, theirs, method) for method in ("cg", "pipecg")]
        rows.append([f"{gpus} H200, {len(cg.groups(name))} matrices", *cells])
    return markdown(["GPUs", "`cg`: mean, least", "`pipecg`: mean, least"], rows)


def _mean_and_least(name: str, those: Callable[[Series], bool], method: str) -> str:
    results = solver_record(name)
    found = [results.against(group, those, method) for group in cg.groups(name)]
    gains = [verdict.speedup for verdict in found if verdict]
    return f"{geometric_mean(gains):.2f}×, {min(gains):.2f}×"


def by_minima() -> str:
    """Return geometric means by the least of the repeats, as the papers take it, and by medians."""
    rows = []
    for name, gpus in {**cg.JITTERED, **cg.GPUS}.items():
        results = solver_record(name)
        medians, least = [], []
        for group in cg.groups(name):
            verdict = results.against(group, cg.any_baseline)
            if verdict:
                medians.append(verdict.speedup)
                least.append(_gain_of_least(results, group))
        suite = "paper18" if name in cg.JITTERED else "structured"
        means = [f"{geometric_mean(each):.2f}×" for each in (medians, least)]
        where = f"{gpus} {cg.card(name)}"
        rows.append([where, f"`{suite}`", *means])
    return markdown(["GPUs", "suite", "by medians", "by the least repeat"], rows)


def _gain_of_least(results: Results, group: Group) -> float:
    """Return the speed-up where each side has its fastest repeat of its fastest method."""
    valid = results.valid(group)
    ours = min(s.spread.least for s in valid if s.family == OURS)
    return min(s.spread.least for s in valid if cg.any_baseline(s)) / ours


def table_2() -> str:
    """Return Table 2 of Trotter et al. beside the look-alikes on one H100."""
    results, rows = solver_record(cg.JITTERED_ONE), []
    ours = {group.case.removesuffix("-like"): group for group in cg.groups(cg.JITTERED_ONE)}
    for name, (standard, monolithic, petsc) in TABLE_2.items():
        theirs = [seconds / count for count, seconds in (standard, monolithic, petsc)]
        cells = [micro(seconds) for seconds in theirs]
        if (group := ours.get(name)) is None:
            rows.append([f"{name}-like", *cells, "–", "–", "–", "–"])
            continue
        mine = _best(results, group)
        by_cg = next(s for s in results.valid(group) if s.family == OURS and s.task.method == "cg")
        share = by_cg.rates()[1] / cg.copy_rate(cg.JITTERED_ONE)
        best = min(theirs)
        equal = best * THEIR_MEMORY / (mine * OUR_MEMORY)
        rows.append([group.case, *cells, micro(mine), f"{by_cg.rates()[1] / 1e12:.2f}"])
        rows[-1] += [f"{share:.2f}", f"{equal:.2f}×"]
    heads = ["aCG standard, original, µs", "aCG monolithic", "PETSc", "cpufree, µs"]
    heads += ["TB/s of `cg` by their count", "over the copy rate", "at equal memory"]
    return markdown(["matrix", *heads], rows)


def table_1() -> str:
    """Return what stands for the matrices of Table 1 of Trotter et al."""
    results = solver_record(cg.JITTERED_ONE)
    sizes = {g.case: cg.millions(cg.nonzeros(results, g)) for g in cg.groups(cg.JITTERED_ONE)}
    there = [f"{one}-like ({sizes[f'{one}-like']})" for one in TABLE_2 if f"{one}-like" in sizes]
    return filled(
        f"Of the eight matrices of their Table 1, {', '.join(there)} stand for five, nonzeros in "
        "brackets; Cube_Coup_dt6-like (126 M) is generated and has no record on one GPU; poisson1d "
        "runs with 10⁹ rows; heart15 has look-alikes of up to 3.4 M rows (suite `heart`)."
    )


def flan() -> str:
    """Return iterations per second on Flan_1565, theirs and those of the look-alike."""
    counts = (1, 2, 4, 8)
    rows = []
    for who, rates in FLAN:
        rows.append([f"{who}, A100", *(f"{rates[n]:.4g}" if n in rates else "–" for n in counts)])
    mine = {}
    for name, gpus in SAMPLED:
        group = next(g for g in cg.groups(name) if g.case == "Flan_1565-like")
        mine[gpus] = f"{1 / _best(solver_record(name), group):.0f} ({cg.card(name)})"
    rows.append(["cpufree, Flan_1565-like, jittered", *(mine.get(n, "–") for n in counts)])
    return markdown(["solver", *(f"{n} GPU{'s' * (n > 1)}" for n in counts)], rows)


def table_3() -> str:
    """Return bytes per second and GPU of poisson1d, by the count of Trotter et al."""
    run = billion()
    rate = run.by_cg * cg.copy_rate(cg.EIGHT) / 1e12
    return filled(
        f"poisson1d with 10⁹ rows on eight H200: {rate:.2f} TB/s per GPU by the count of Trotter "
        f"et al. for CG (run: `prcg` with Jacobi), {run.by_cg:.2f} of the copy rate measured "
        f"there. Their Table 3 has {PER_GPU_TABLE_3} TB/s of aCG (MPI) per H100 of 16, "
        f"{SHARE_OF_TABLE_3:.2f} of the nominal 2.02 TB/s of its memory; of H200's nominal "
        f"4.8 TB/s ours is {rate / 4.8:.2f}. heart15 (874 M rows) was not generated: its CSR takes "
        "some 93 GB."
    )


def ways_of_sharing() -> str:
    """Return imbalance and halos of equal rows, equal nonzeros, and METIS."""
    imbalance, halos = medians(PARTITIONS, "imbalance"), medians(PARTITIONS, "halo")
    methods: Sequence[str] = ("rows", "contiguous", "metis")
    rows = []
    for case, line in problems(PARTITIONS).items():
        cells = [f"{imbalance[case][m]:.3f}" for m in methods]
        cells += [f"{halos[case][m]:.1%}" for m in methods]
        rows.append([case, cg.millions(int(line["nonzeros"])), *cells])
    worst = max(of["rows"] for of in imbalance.values())
    mean = geometric_mean([of["rows"] / of["contiguous"] for of in imbalance.values()])
    heads = [f"imbalance, `{m}`" for m in methods] + [f"halo, `{m}`" for m in methods]
    return (
        markdown(["matrix", "nonzeros", *heads], rows)
        + "\n"
        + filled(
            f"Equal rows give the fullest of eight PEs {mean:.2f} times the nonzeros that equal "
            f"nonzeros give it in the geometric mean, at most {worst:.2f} times the mean."
        )
    )
