"""Lowers the distributed programs of bench/gpu_dace.py, which runs where DaCe is not installed.

Usage: python bench/dace_cases.py FOLDER. Each case becomes a file NAME-RANKS-POINTS.json.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/python/support"))

from dace_grids import CASES, halo_columns_of
from dace_programs import PROGRAMS

import cpufree.dace
from cpufree.compiler.ranks import routes

SIZES: list[tuple[str, int, Any]] = [
    ("jacobi_1d", 1, 1 << 10),
    ("jacobi_1d", 1, 1 << 20),
    ("jacobi_1d", 2, 1 << 10),
    ("jacobi_1d", 2, 1 << 20),
    ("jacobi_2d", 1, (1024, 1024)),
    ("jacobi_2d", 1, (512, 1024)),
    ("jacobi_2d", 1, (1024, 2048)),
    ("jacobi_2d", 2, (512, 1024)),
    ("jacobi_2d", 2, (1024, 2048)),
    ("jacobi_2d", 2, (4096, 8192)),
    ("jacobi_2d_signals", 2, (512, 1024)),
    ("jacobi_2d", 4, (512, 512)),
    ("jacobi_2d", 4, (1024, 1024)),
    ("jacobi_2d", 8, (1024, 1024)),
    ("heat_3d", 2, (64, 128, 128)),
    ("heat_3d", 2, (128, 256, 256)),
    ("heat_3d", 4, (64, 64, 128)),
    *(("halo_columns", 2, (n, 256)) for n in (1, 32, 512, 4096)),
]


def text_of(points: Any) -> str:
    """Return a size as part of a file's name."""
    return "x".join(map(str, points)) if isinstance(points, tuple) else str(points)


def main() -> None:
    """Write the files, and the seconds that lowering took."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    programs = {name: cpufree.dace.compile(p) for name, p in PROGRAMS.items()}
    seconds = {}
    for name, ranks, points in SIZES:
        begin = time.perf_counter()
        of = halo_columns_of if name == "halo_columns" else CASES[name][0]
        made = programs[name].lower_ranks(of(points, 2), ranks)
        key = f"{name}-{ranks}-{text_of(points)}"
        seconds[key] = round(time.perf_counter() - begin, 3)
        (folder / f"{key}.json").write_text(routes.to_json(made))
    (folder / "seconds.txt").write_text(json.dumps(seconds))


if __name__ == "__main__":
    main()
