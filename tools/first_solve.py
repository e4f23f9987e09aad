"""Times of the first solve and of later ones, in processes of their own.

    python tools/first_solve.py [--engine E] [--pes N] [--nx N] [--out FILE]

What a first solve takes longer are kernels that are compiled when they are first used. Processes
are: one that finds no kernels on disk, one that finds those of the first, and one that keeps none.
Prints a line for each solve, and writes the same as JSON lines to FILE.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

LIMIT = 240.0  # seconds of a process


def timed(what: str, call: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """Return a line about a call, and what it returned."""
    begin = time.perf_counter()
    outcome = call()
    return {"what": what, "seconds": time.perf_counter() - begin}, outcome


def child(given: argparse.Namespace) -> int:
    """Solve in this process; print a JSON line for each thing timed."""
    import numpy as np

    import cpufree

    A = cpufree.generate.poisson3d(nx=given.nx, ny=given.nx, nz=given.nx)
    exact = np.sin(np.arange(A.shape[0]))
    b = A @ exact
    where = {"engine": given.engine, "pes": given.pes}
    wrong = 0
    made, solver = timed("set-up", lambda: cpufree.Solver(A, pc="jacobi", **where))
    print(json.dumps(made))
    with solver:
        for method in ("prcg", "cg"):
            for turn in ("first", "second", "third"):
                line, result = timed(
                    f"{method}, {turn} solve",
                    partial(solver.solve, b, rtol=1e-10, method=method),
                )
                error = float(np.abs(result.x - exact).max())
                line |= {"kernel_seconds": result.timings["solve"], "iterations": result.iterations}
                line |= {"error": error, "bits": zlib.crc32(result.x)}
                wrong += not result.converged or error > 1e-6
                print(json.dumps(line))
    u = np.random.default_rng(1).random((256, 256))
    for turn in ("first", "second"):
        line, outcome = timed(f"grid, {turn} run", lambda: cpufree.stencil.jacobi(u, 100, **where))
        line |= {"kernel_seconds": outcome.seconds, "bits": zlib.crc32(outcome.u)}
        print(json.dumps(line))
    return 1 if wrong else 0


def processes(given: argparse.Namespace, folder: str) -> list[dict[str, Any]]:
    """Run the processes; return their lines, with the status of each that failed."""
    lines = []
    for kernels, cache in (("none on disk", folder), ("on disk", folder), ("not kept", "off")):
        environment = {**os.environ, "CPUFREE_KERNEL_CACHE": cache}
        command = [sys.executable, __file__, "--child", "--engine", given.engine]
        command += ["--pes", str(given.pes), "--nx", str(given.nx)]
        begin = time.perf_counter()
        try:
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, text=True, timeout=LIMIT
            )
            said, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as error:
            said, status = (error.stdout or b"").decode(), -1
        found = [json.loads(line) for line in said.splitlines()]
        found.append({"what": "process", "seconds": time.perf_counter() - begin, "status": status})
        lines += [{"kernels": kernels, **line} for line in found]
    return lines


def main() -> int:
    """Return the exit status: 1 where a process failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="cuda_p2p")
    parser.add_argument("--pes", type=int, default=1)
    parser.add_argument("--nx", type=int, default=64, help="rows along each axis of poisson3d")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given)
    with tempfile.TemporaryDirectory() as folder:
        lines = processes(given, folder)
        files = [file.stat().st_size for file in Path(folder).glob("*.kernel")]
    for line in lines:
        kernel = f"  kernel {line['kernel_seconds']:.6f} s" if "kernel_seconds" in line else ""
        print(f"{line['kernels']:<13} {line['what']:<20} {line['seconds']:9.4f} s{kernel}")
    if given.out:
        given.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    failed = sum(line.get("status", 0) != 0 for line in lines)
    bits: dict[str, set[int]] = {}
    for line in lines:
        if "bits" in line:
            bits.setdefault(line["what"], set()).add(line["bits"])
    different = sorted(what for what, found in bits.items() if len(found) > 1)
    print(
        f"{len(files)} kernels on disk, {sum(files) / 2**20:.1f} MiB; {failed} processes failed; "
        f"other bits in another process: {', '.join(different) or 'none'}"
    )
    return 1 if failed or different else 0


if __name__ == "__main__":
    sys.exit(main())
