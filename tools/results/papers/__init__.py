"""What the papers behind the project report, beside records of the project."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tools.results.papers import (
    ablations,
    figure_1,
    grids,
    messages,
    products,
    singles,
    solves,
    versions,
)

_MAKERS: dict[str, Callable[[], str]] = {
    "strong scaling": solves.strong_scaling,
    "single GPU beside": solves.single_gpu_beside,
    "over on stream": solves.over_on_stream,
    "minima": solves.by_minima,
    "partitions": solves.ways_of_sharing,
    "table 1": solves.table_1,
    "table 2": solves.table_2,
    "Flan": solves.flan,
    "table 3": solves.table_3,
    "figure 1": figure_1.figure_1,
    "ablations, cg": ablations.cg,
    "ablations, jacobi": ablations.jacobi,
    "ablations, launches": ablations.launches,
    "ablations, sums": ablations.sums,
    "launches": messages.launches,
    "distances": messages.distances,
    "synchronization": messages.synchronization,
    "fences": messages.fences,
    "identified": messages.identified,
    "overheads": messages.overheads,
    "granularity": messages.granularity,
    "varying": messages.varying,
    "transitions": products.transitions,
    "stencils": grids.less_than_baselines,
    "strong 3D": grids.strong_3d,
    "weak 2D": grids.weak_2d,
    "versions": versions.versions,
    **singles.PLACES,
}
PLACES = {name: cache(make) for name, make in _MAKERS.items()}
"""Places in results.md beside this folder, and who fills each; once in a run."""
