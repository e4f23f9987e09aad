"""Puts of strided halos by one thread, a warp, a block, all blocks, and as the compiler chooses.

Usage: python bench/dace_puts.py CASES [--out FILE.jsonl]; CASES has halo_columns-2-*.json of
bench/dace_cases.py. Two ranks exchange columns, whose points lie a row apart, on two GPUs, twice in
a step; nothing is computed. All in one process, one after the other; times as bench/gpu_dace.py's.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import gpu_dace
from dace_cases_files import points_of
from dace_grids import halo_columns_of

import cpufree
from cpufree import env
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.ranks import routes
from cpufree.compiler.ranks.layout import PUTS
from cpufree.compiler.ranks.on_gpu import gpu_runner_of_ranks
from cpufree.engines import gpus
from cpufree.engines.watch import Watch
from cpufree.laps import Laps


def measure(file: Path, devices: list[int], puts: str) -> dict[str, Any]:
    """Return the record of one way."""
    _, ranks, points = points_of(file)
    kernel = gpu_runner_of_ranks(routes.from_json(file.read_text()), devices, puts=puts)
    of = halo_columns_of(points, 2)
    given = [Arguments("halo_columns", of(r, ranks)) for r in range(ranks)]
    watch = Watch(None)

    def seconds(steps: int) -> float:
        with watch:
            ran = kernel.run(given, {}, {"TSTEPS": steps + 1}, gpu_dace.WAIT, watch, Laps())
        return ran.seconds

    us, steps = gpu_dace.step_of(seconds)
    for name in ("lA", "lB"):
        left, right = (a.arrays[name] for a in given)
        np.testing.assert_array_equal(left[1:-1, -1], right[1:-1, 1], err_msg=f"{puts}, {name}")
        np.testing.assert_array_equal(right[1:-1, 0], left[1:-1, -2], err_msg=f"{puts}, {name}")
    return {"kind": "puts", "case": file.stem, "puts": puts, "us": us / 2, "steps": steps}


def main() -> None:
    """Measure all ways for all sizes; write records, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("--out", type=Path, default=Path("gpu-dace-puts.jsonl"))
    options = parser.parse_args()
    env.preset_shared_gpus()
    devices = [g.index for g in gpus.usable(gpus.find())]
    devices = [devices[0], devices[-1 if len(devices) < 2 else 1]]
    ways = PUTS[1:] + PUTS[:1]
    print(f"{'microseconds of an exchange':34}", *(f"{w:>9}" for w in ways))
    with options.out.open("w") as out:
        out.write(json.dumps(gpu_dace.head(devices)) + "\n")
        for file in sorted(options.cases.glob("halo_columns-*.json"), key=gpu_dace.size_of):
            found = []
            for way in ways:
                try:
                    record = measure(file, devices, way)
                except cpufree.CpufreeError as error:
                    record = {"kind": "failure", "case": file.stem, "error": str(error)[:300]}
                out.write(json.dumps(record) + "\n")
                found.append(record.get("us"))
            cells = [f"{us:9.2f}" if us is not None else "        -" for us in found]
            print(f"{file.stem:34}", *cells, flush=True)


if __name__ == "__main__":
    main()
