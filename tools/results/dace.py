"""The tables of docs/dace.md, from records of bench/distributed/gpu_dace.py."""

from __future__ import annotations

from collections.abc import Mapping

from tools.results.page_tables import markdown
from tools.results.records import medians, problems

RECORD = "dace-4x-2026-11-26.jsonl"
WAYS = (
    *("ours", "without roles", "by host, copies", "by host, stores", "DaCe's GPU code"),
    *("MPI by hand", "`cpufree.program`", "by host"),
)


def _cell(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{1e6 * seconds:.3g}" if seconds < 1e-3 else f"{1e6 * seconds:.0f}"


def programs(name: str = RECORD) -> str:
    """Return what a step of each program takes, by contender."""
    places = {case: len(set(line["places"])) for case, line in problems(name).items()}
    found = {case: of for case, of in medians(name).items() if not case.startswith("halo")}
    who = [one for one in WAYS if any(one in times for times in found.values())]
    rows = []
    for case in sorted(found):
        program, ranks, points = case.split("-")
        cells = [f"{program}, {points.replace('x', ' × ')} each", f"{ranks} on {places[case]}"]
        rows.append((*cells, *_cells(found[case], who)))
    return markdown(("case", "ranks on GPUs", *who), rows)


def puts(name: str = RECORD) -> str:
    """Return what an exchange of columns takes, by points and by who puts."""
    found = {
        int(case.split("-")[2].split("x")[0]): times
        for case, times in medians(name).items()
        if case.startswith("halo")
    }
    who = list(next(iter(found.values())))
    return markdown(("points", *who), [(str(n), *_cells(found[n], who)) for n in sorted(found)])


def _cells(times: Mapping[str, float], who: list[str]) -> list[str]:
    return [_cell(times.get(one)) for one in who]


def pages() -> dict[object, str]:
    """Return tables by name, and figures by the words before and after them."""
    found = medians(RECORD)

    def less(who: str, cases: tuple[str, str]) -> list[float]:
        return [1 - found[case]["ours"] / found[case][who] for case in cases]

    two = less("DaCe's GPU code", ("jacobi_2d-2-512x1024", "jacobi_2d-2-1024x2048"))
    four = less("MPI by hand", ("jacobi_2d-4-512x512", "jacobi_2d-4-1024x1024"))
    first, second = (1 / (1 - share) for share in two)
    return {
        "programs of ranks": programs(),
        "puts of columns": puts(),
        ("| jacobi_2d against DaCe's own code | 6.1 × | ", " × with 512"): f"{first:.1f}",
        ("points each, ", " × with 1024 × 2048"): f"{second:.1f}",
        ("(on 8 GPUs) | missed: ", " on two; against MPI"): _both(two),
        ("on two; against MPI by hand ", " on four |"): _both(four),
    }


def _both(shares: list[float]) -> str:
    return " and ".join(f"{share:.1%}".replace("%", " %") for share in shares)
