"""What docs/benchmarking.md says of whole programs, and of what "auto" chooses, from records."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from cpufree.bench.core.noise import geometric_mean
from cpufree.bench.time.tables import collect
from tools.results.page_tables import markdown
from tools.results.records import declared_lines, json_lines, medians

SUITES = "time-2x-2026-11-26-later/suite.jsonl"
TEXT = "time-2x-2026-11-26/text.jsonl"
FOUR = "time-4x-2026-11-26/auto.jsonl"
PLACES = ("1 PEs", "2 PEs", "CPU")
ROWS = {
    "poisson3d-200.cpufree": "| poisson3d 200³, 494 iterations | ",
    "geomodel_hex.cpufree": "| geomodel_hex, 329 M nonzeros, 2 298 iterations | ",
    "flange_hex.cpufree": "| flange_hex, 2 589 iterations | ",
    "delaunay3d.cpufree": "| delaunay3d, 165 iterations | ",
}


def _rows() -> Iterator[tuple[str, str, dict[str, float], float]]:
    """Yield each matrix, what "auto" takes, seconds of all choices, and auto's over the best."""
    takes = {}
    for line in declared_lines(SUITES):
        if line["kind"] == "measurement" and line["contender"] == "auto":
            gpus = f"{line['pes']} GPU{'s' * (line['pes'] > 1)}"
            takes[line["case"]] = gpus if line["engine"] == "cuda_p2p" else "the CPU"
    for case, seconds in sorted(medians(SUITES).items(), key=lambda one: one[0].lower()):
        name = case.removeprefix("paper18-").replace("structured-", "structured, ")
        best = min(value for choice, value in seconds.items() if choice != "auto")
        yield name, takes[case], seconds, seconds["auto"] / best


def table() -> str:
    """Return a row for each matrix."""
    rows = []
    for name, takes, seconds, over in _rows():
        cells = [f"{seconds[one]:.3f}" if one in seconds else "" for one in ("auto", *PLACES)]
        rows.append((name, takes, *cells, f"{over:.2f}"))
    head = ("matrix", "`auto` takes", "seconds", "1 GPU", "2 GPUs", "CPU", "over the best")
    return markdown(head, rows)


def _programs(record: str) -> dict[tuple[str, str], float]:
    """Return the median seconds of whole programs by matrix and contender."""
    return {
        (matrix, contender): median(line["seconds"] for line in lines)
        for (matrix, _, contender), lines in collect(json_lines(record)).items()
    }


def pages() -> dict[object, str]:
    """Return tables by name, and figures by the words before and after them."""
    over = [one for *_, one in _rows()]
    text = {who: seconds for (_, who), seconds in _programs(TEXT).items()}
    ours, theirs = text["cpufree"], text["cupy"]
    found: dict[object, str] = {
        "choices": table(),
        ("The geometric mean is ", " (goals 1.05, 1.2)"): (
            f"{geometric_mean(over):.2f}, the worst {max(over):.2f}"
        ),
        ("behind SciPy's reader for CuPy | ", " | imports"): (
            f"{ours:.2f} | {theirs:.2f} | {theirs / ours:.1f}"
        ),
    }
    four, ratios = _programs(FOUR), []
    for matrix, begin in ROWS.items():
        auto, *each = (four[matrix, f"cpufree{on}"] for on in ("", " on 1", " on 2", " on 4"))
        ratios.append(auto / min(auto, *each))
        cells = [f"{one:.2f}" for one in (auto, *each, ratios[-1])]
        found[begin, " |\n"] = " | ".join(cells)
    mean = ("the geometric mean over the best choice is ", " (goal 1.05)")
    return {**found, mean: f"{geometric_mean(ratios):.2f}"}
