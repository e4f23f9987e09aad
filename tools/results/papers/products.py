"""Where overlapped products turn from messages to computing; Groves et al. 2020, Figure 7."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cpufree.model.samples import PatternSample
from tools.results.papers.messages import samples
from tools.results.records import json_record, markdown

FOLDER = "model-4x-2026-11-26"


def _alone(pattern: str, pes: int, size: int) -> float:
    """Return the seconds of computing of a measured pattern."""

    def fits(one: PatternSample) -> bool:
        return (one.pattern, one.pes, one.bytes) == (pattern, pes, size) and one.engine == "gpus"

    return next(one.alone for one in samples(f"{FOLDER}/samples.jsonl").patterns if fits(one))


def crossing(sizes: Sequence[int], exposed: Sequence[float]) -> float | None:
    """Return the size from which communication that is not hidden takes less than computing.

    `exposed`: the one over the other, by size; between two sizes on a line of the logarithms.
    """
    for k in range(1, len(sizes)):
        low, high = exposed[k - 1], exposed[k]
        if low >= 1.0 > high:
            share = 1.0 if high <= 0 else math.log(low) / math.log(low / high)
            return float(sizes[k - 1] * (sizes[k] / sizes[k - 1]) ** share)
    return None


def transitions() -> str:
    """Return where products of four H200 turn, measured and predicted, by bytes of a message."""
    rows = []
    for found in json_record(f"{FOLDER}/validate.json")["patterns"]:
        pattern, pes = found["pattern"], found["pes"]
        if "overlapped" not in pattern or not found["where"].startswith("GPU"):
            continue
        if set(pes) != {4} or found["where"] != "GPUs":
            continue
        sizes = found["sizes"]
        alone = [_alone(pattern, 4, size) for size in sizes]
        turns = []
        for which in ("measured", "predicted"):
            exposed = [t / a - 1 for t, a in zip(found[which], alone, strict=True)]
            turns.append(crossing(sizes, exposed))
        measured, predicted = turns
        if measured and predicted:
            factor = max(measured / predicted, predicted / measured)
            sizes_of = [f"{measured:,.0f}", f"{predicted:,.0f}", f"{math.sqrt(factor):.1f}"]
            rows.append([pattern, *sizes_of])
    return markdown(["product", "measured, B", "predicted, B", "factor of a tile's side"], rows)
