"""How good choices of "auto" are on records, beside a rule by two sizes: a table of docs/gpus.md.

    python -m tools.results.rule_by_sizes

Choices are made once more with the constants as they are now. Where the CPU was chosen, its time is
that of the choice: a CPU that is asked for brings rows into another order first. The rule by sizes
takes the CPU below one number of nonzeros, twice as many GPUs above another on each, multigrid
above a third: by the sizes that lose least to auto on all records of a kind, found with hindsight.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from cpufree.bench.core.noise import geometric_mean
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import GAIN, Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.system_rule import Forecast, choose_place
from cpufree.machine import of_gpu
from cpufree.model.records import read_record
from cpufree.model.solve import SystemFacts
from cpufree.model.stencils import StencilFacts, stencil_seconds
from cpufree.partition.cost import Spread
from cpufree.solvers.work import iteration_on
from tools.results.page_tables import markdown
from tools.results.records import FOLDER, json_lines, medians, problems

ANSWERS = {
    "paper18 and structured, 2 H100": ("time-2x-2026-11-26-later/suite.jsonl", "NVIDIA H100", 32),
    "the same, 2 of 4 H200": ("time-4x-2026-11-26/suite.jsonl", "NVIDIA H200", 64),
    "paper18-small and structured-small, 2 H100": (
        *("time-2x-2026-11-26/suite.jsonl", "NVIDIA H100", 32),
    ),
}
ITERATIONS = (
    *("cg-1x-2026-11-24", "cg-2x-sorted-2026-11-23", "cg-4x-2026-11-26", "cg-8x-2026-11-22"),
)
GRIDS = (
    *("stencil-baselines-1x-2026-11-23", "stencil-baselines-2x-2026-11-23"),
    *("stencil-baselines-8x-2026-11-22", "stencil-constants-2x-2026-11-26"),
)
MULTIGRID = "amg-cpu-2026-11-29-later.jsonl"
PLACES = {"1 PEs": 1, "2 PEs": 2, "CPU": 0}


@dataclass(frozen=True)
class Case:
    """Seconds by choice, the choice of auto, and the nonzeros that the rule by sizes knows."""

    nnz: int
    took: Mapping[int, float]
    auto: int

    def over(self, choice: int) -> float:
        """Return a choice's time over that of the best; one that is not there: the next one."""
        there = choice if choice in self.took else min(self.took, key=lambda k: abs(k - choice))
        return self.took[there] / min(self.took.values())


def answers(record: str, gpu: str, cores: int, latest: Mapping[str, float]) -> Iterator[Case]:
    """Yield systems that were set up and solved on the CPU and GPUs, CUDA running."""
    known, lines = of_gpu(gpu), defaultdict(list)
    for line in json_lines(record):
        if line["kind"] == "choice" and line.get("round"):  # the first one warms up
            lines[line["case"]].append(line)
    for case, of in lines.items():
        took = defaultdict(list)
        by_cpu = [x["seconds"] for x in of if x["choice"] == "auto" and x["engine"] != "cuda_p2p"]
        for line in of:
            if line["choice"] in PLACES:
                took[PLACES[line["choice"]]].append(line["seconds"])
        took |= {0: by_cpu} if by_cpu else {}
        if len(took) < 2:
            continue  # it did not converge
        size = Size(of[0]["rows"], of[0]["nnz"], 8)
        told = expected_of(of) or float(of[0]["iterations"])
        forecast = Forecast(
            Expected(latest.get(case, told)), Spread(size.rows, 0.0, 0.0, 0.0), gain_on("cuda_p2p")
        )
        blocks = cores if 0 in took else None
        iteration = partial(iteration_on, size=size, known=known)
        chosen = choose_place(size, [True] * max(took), blocks, forecast, known, iteration).gpus
        yield Case(size.nnz, {k: statistics.median(v) for k, v in took.items()}, chosen)


def expected_of(lines: Sequence[Mapping[str, str]]) -> float:
    """Return the iterations that auto expected in a run; 0: it says none."""
    told = [re.search(r"([\d ]+) iterations? of", x["why"]) for x in lines if x["choice"] == "auto"]
    found = [float(one[1].replace(" ", "")) for one in told if one]
    return found[-1] if found else 0.0


def latest_expected() -> dict[str, float]:
    """Return what the latest run expected: iterations are the matrix's, not the machine's."""
    lines = defaultdict(list)
    for line in json_lines(next(iter(ANSWERS.values()))[0]):
        if line["kind"] == "choice" and "why" in line:
            lines[line["case"]].append(line)
    return {case: found for case, of in lines.items() if (found := expected_of(of))}


def fewest(counts: Sequence[int], seconds: Callable[[int], float]) -> int:
    """Return the number of GPUs beyond which more do not shorten an iteration noticeably."""
    for few, more in pairwise(counts):
        if seconds(more) > (1 - GAIN) * seconds(few):
            return few
    return counts[-1]


def iterations() -> Iterator[Case]:
    """Yield systems by the time of an iteration of prcg on 1 to 8 H200."""
    took: dict[tuple[str, int, int], dict[int, float]] = defaultdict(dict)
    for one in (m for record in ITERATIONS for m in read_record(FOLDER / f"{record}.jsonl")):
        if one.method == "prcg" and isinstance(one.facts, SystemFacts):
            took[one.case, one.facts.rows, one.facts.nnz][one.facts.pes] = one.seconds
    for (_, rows, nnz), of in took.items():
        iteration = partial(iteration_on, size=Size(rows, nnz, 8), known=of_gpu("NVIDIA H200"))
        yield Case(nnz, of, fewest(sorted(of), iteration))


def grids() -> Iterator[Case]:
    """Yield grids by the time of a Jacobi iteration on several numbers of GPUs of a kind."""
    took: dict[tuple[str, tuple[int, ...], int], dict[int, float]] = defaultdict(dict)
    told: dict[tuple[str, tuple[int, ...], int], dict[int, float]] = defaultdict(dict)
    for one in (m for record in GRIDS for m in read_record(FOLDER / f"{record}.jsonl")):
        if isinstance(one.facts, StencilFacts):
            key = (one.gpu, one.facts.shape, one.facts.value_bytes)
            took[key][one.facts.pes] = one.seconds
            known = replace(one.facts, on_chip=None, layers=None)  # as before it is laid out
            told[key][one.facts.pes] = stencil_seconds(known, of_gpu(one.gpu)).seconds
    for (gpu, shape, value_bytes), of in took.items():
        if len(of) > 1:
            chosen = fewest(sorted(of), told[gpu, shape, value_bytes].__getitem__)
            yield Case(math.prod(shape), of, chosen)


def multigrid() -> Iterator[Case]:
    """Yield systems with Jacobi (1) and multigrid (2); auto as it was measured, trial included."""
    sizes = problems(MULTIGRID)
    for case, of in medians(MULTIGRID).items():
        took = {1: of["jacobi"], 2: of["amg"], 3: of["auto"]}
        yield Case(sizes[case]["nnz"], took, 3)


def by_sizes(cases: Sequence[Case], least: int, most: int) -> list[float]:
    """Return times over the best, with the CPU below and more GPUs above a number of nonzeros."""
    found = []
    for one in cases:
        gpus = 1
        while gpus < max(k for k in one.took if k != 3) and one.nnz > most * gpus:
            gpus *= 2
        found.append(one.over(0 if one.nnz < least and 0 in one.took else gpus))
    return found


def best_sizes(cases: Sequence[Case]) -> tuple[int, int]:
    """Return the sizes with which the geometric mean of the cases is least."""
    sizes = [0, *sorted(one.nnz + 1 for one in cases)]
    pairs = ((a, b) for a in sizes for b in sizes)
    return min(pairs, key=lambda pair: geometric_mean(by_sizes(cases, *pair)))


def table() -> str:
    """Return how auto and the rule by sizes do on each record."""
    latest = latest_expected()
    answered = {name: [*answers(*of, latest)] for name, of in ANSWERS.items()}
    kinds: dict[str, dict[str, list[Case]]] = {
        "answers": answered,
        "iterations": {"of prcg, 1 to 8 H200": [*iterations()]},
        "iterations on grids": {"1 and 2 H100, 1 to 8 H200": [*grids()]},
        "preconditioners": {"Jacobi or multigrid, 2 cores": [*multigrid()]},
    }
    rows = []
    for kind, groups in kinds.items():
        sizes = best_sizes([one for cases in groups.values() for one in cases])
        for name, cases in groups.items():
            ours, theirs = [one.over(one.auto) for one in cases], by_sizes(cases, *sizes)
            against = [a / b for a, b in zip(theirs, ours, strict=True)]
            told = (f"{geometric_mean(x):.2f}, {max(x):.2f}" for x in (ours, theirs, against))
            rows.append((kind, name, str(len(cases)), *told))
    return markdown(("of", "record", "cases", "`auto`", "by sizes", "by sizes over `auto`"), rows)


if __name__ == "__main__":
    print(table())
