"""One choice of the papers changed at a time: tables of the records of bench/ablations."""

from __future__ import annotations

import re

from cpufree.text import counted
from tools.results.records import markdown, medians

CG = (
    "cg-ablations-1x-2026-11-30.jsonl",
    "cg-ablations-bmwcra-1x-2026-11-30.jsonl",
    "cg-ablations-2x-2026-11-30.jsonl",
)
JACOBI = "jacobi-ablations-1x-2026-11-30.jsonl"
LAUNCHES = "launches-1x-2026-11-30.jsonl"
SUMS = "nvshmem-sums-2x-2026-11-30.jsonl"
# Contenders of the records, and what pages call them.
OF_CG = {
    "cg flags": "`cg`: lanes of a row, halos pushed, sums by packets of all blocks",
    "cg grid_sync": "sums by the barrier of the grid",
    "cg gets": "halos by blocking gets",
    "cg merge": "products by merge paths",
    "cg managed": "managed memory",
    "pipecg flags": "`pipecg`, likewise",
    "pipecg one block": "sums by one block, which has no rows",
    "pipecg no sums": "no sums, so that the answer is another",
    "cpufree cg": "`cg` of cpufree",
    "cpufree pipecg": "`pipecg` of cpufree",
}
OF_SUMS = {
    "packets": "ours: packets of each GPU to all",
    "thread": "NVSHMEM's, called by a thread",
    "warp": "by a warp",
    "block": "by a block",
    "barrier": "NVSHMEM's barrier, no sum",
    "sync": "NVSHMEM's `sync`, no sum",
}
OF_JACOBI = {
    "kept 0": "rows streamed",
    "kept 3": "three rows of each block kept on chip",
    "kept 4": "four rows",
    "kept 7": "seven rows",
    "kept 9": "nine rows",
    "kept 18": "eighteen rows",
    "two kernels": "two kernels at once",
    "flags, as cluster 4": "as many blocks, no clusters, edges through memory",
    "cluster 4": "clusters of four, edges through their shared memory",
    "cpufree": "`jacobi` of cpufree, steps of a pass together",
}


def _cell(found: dict[str, float], one: str, base: str) -> str:
    if one not in found or base not in found:
        return "–"
    ratio = "" if one == base else f" ({found[one] / found[base]:.2f}×)"
    return f"{1e6 * found[one]:.3g}{ratio}"


def _short(case: str) -> str:
    return case.split(":")[1].partition("?")[0].removeprefix("paper18/")


def _gpus(name: str) -> str:
    found = re.search(r"-(\d+)x-", name)
    assert found, name
    return counted(int(found[1]), "GPU")


def cg() -> str:
    """Return microseconds of an iteration of CG, and over the plain variant of the method."""
    cases = {
        f"{_short(case)}, {_gpus(name)}": found
        for name in CG
        for case, found in medians(name).items()
    }

    def base(one: str) -> str:
        return "pipecg flags" if "pipecg" in one else "cg flags"

    rows = [
        [what, *(_cell(v, one, base(one)) for v in cases.values())] for one, what in OF_CG.items()
    ]
    return markdown(["variant", *(f"{name}, µs" for name in cases)], rows)


def sums() -> str:
    """Return microseconds of a sum of one value on two GPUs, by who adds."""
    (found,) = medians(SUMS).values()
    rows = [[what, _cell(found, one, "packets")] for one, what in OF_SUMS.items()]
    return markdown(["sum of one double", "µs"], rows)


def jacobi() -> str:
    """Return microseconds of a step of Jacobi in two dimensions, over streamed rows."""
    cases = {n: v for n, v in medians(JACOBI).items() if "kept 0" in v}
    rows = [[w, *(_cell(v, one, "kept 0") for v in cases.values())] for one, w in OF_JACOBI.items()]
    return markdown(["variant", *(f"{name.removeprefix('side ')}², µs" for name in cases)], rows)


def launches() -> str:
    """Return microseconds of n empty kernels, by how they are launched."""
    ways = ("stream", "programmatic", "graph")
    cases = {n: v for n, v in medians(LAUNCHES).items() if set(ways) <= set(v)}
    rows = [
        [n.removeprefix("kernels "), *(f"{1e6 * v[w]:.3g}" for w in ways)] for n, v in cases.items()
    ]
    return markdown(["kernels", "stream, µs", "programmatic, µs", "graph, µs"], rows)
