"""Lowers the distributed programs of gpu_dace.py, which runs where DaCe is not installed.

Usage: python bench/distributed/dace_distributed.py FOLDER

Each case becomes a file NAME-RANKS-POINTS.json.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/python/support/dace"))

NAMES = (
    *("jacobi_1d-1-1024", "jacobi_2d-1-512x1024", "jacobi_2d-1-1024x1024", "jacobi_1d-2-1024"),
    *("jacobi_1d-1-1048576", "jacobi_2d-2-512x1024", "jacobi_2d_signals-2-512x1024"),
    *("jacobi_2d-4-512x512", "jacobi_1d-2-1048576", "jacobi_2d-1-1024x2048"),
    *("heat_3d-2-64x128x128", "heat_3d-4-64x64x128", "jacobi_2d-2-1024x2048"),
    *("jacobi_2d-4-1024x1024", "jacobi_2d-8-1024x1024", "heat_3d-2-128x256x256"),
    "jacobi_2d-2-4096x8192",
    *(f"halo_columns-2-{n}x256" for n in (1, 32, 512, 4096)),
)


def points_of(case: str) -> tuple[str, int, Any]:
    """Return the program, the ranks and the points of each that a case's name says."""
    name, ranks, text = case.split("-")
    points = tuple(map(int, text.split("x")))
    return name, int(ranks), points if len(points) > 1 else points[0]


def main() -> None:
    """Write the files, and the seconds that lowering took."""
    from dace_grids import CASES, halo_columns_of
    from dace_programs import PROGRAMS

    import cpufree.dace
    from cpufree.compiler.ranks import routes

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    programs = {name: cpufree.dace.compile(p) for name, p in PROGRAMS.items()}
    seconds = {}
    for case in NAMES:
        name, ranks, points = points_of(case)
        begin = time.perf_counter()
        of = halo_columns_of if name == "halo_columns" else CASES[name][0]
        made = programs[name].lower_ranks(of(points, 2), ranks)
        seconds[case] = round(time.perf_counter() - begin, 3)
        (folder / f"{case}.json").write_text(routes.to_json(made))
    (folder / "seconds.txt").write_text(json.dumps(seconds))


if __name__ == "__main__":
    main()
