"""Times two builds of cpufree against each other, matrix by matrix, alternately on one machine.

    python bench/compare_builds.py BASE NEW OUT.jsonl [--suite paper18] [--engine cuda_p2p]

BASE and NEW are folders for PYTHONPATH, such as build/gpu/python of two trees. Each build solves in
a process of its own; both hold the same matrix and take turns. An iteration's time is the slope
between two numbers of iterations of the kernel's time, minimum over rounds, so that launch and
start drop out. A line of OUT is one matrix and method: both times in microseconds, their ratio, and
whether the solutions have the same bits. `--columns 2,4,8` adds solves of so many right-hand sides
together, by cg.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

METHODS = ("prcg", "cg", "pipecg")
ITERATIONS = (50, 250)
TURNS, ROUNDS = 3, 2
PARTS = ("data", "indices", "indptr")


def work(folder: Path, engine: str) -> None:
    """Serve the orders on standard input: {"load": name} and {"method", "pc"}."""
    import scipy.sparse as sp

    import cpufree

    solver, b = None, np.empty(0)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if "load" in order:
                parts = [np.load(folder / f"{order['load']}.{part}.npy") for part in PARTS]
                n = len(parts[2]) - 1
                b = np.random.default_rng(1).standard_normal((n, 8))
                if solver is not None:
                    solver.close()
                solver = cpufree.Solver(
                    sp.csr_array(tuple(parts), shape=(n, n)), engine=engine, pes=1, check=False
                )
                answer: dict[str, Any] = {}
            else:
                answer = measure(solver, b, order)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def measure(solver: Any, b: np.ndarray, order: dict[str, Any]) -> dict[str, Any]:
    """Return microseconds of an iteration, and a digest of the solution."""
    import hashlib

    few, many = ITERATIONS
    columns = order.pop("columns")
    b = np.ascontiguousarray(b[:, 0] if columns == 1 else b[:, :columns])
    if columns > 1:
        order["columns"] = "together"
    best: dict[int, float] = {}
    for most in ITERATIONS * ROUNDS:
        result = solver.solve(b, maxiter=most, rtol=0.0, **order)
        seconds = result.timings["kernel"]
        best[most] = min(seconds, best.get(most, seconds))
    done = [one.iterations for one in result.columns] if columns > 1 else [result.iterations]
    if min(done) < many:  # rounding errors ended it
        return {"us": None, "bits": ""}
    return {
        "us": 1e6 * (best[many] - best[few]) / (many - few),
        "bits": hashlib.sha256(np.ascontiguousarray(result.x).tobytes()).hexdigest()[:12],
    }


class Build:
    """A build under measurement, in a process of its own."""

    def __init__(self, path: str, folder: Path, engine: str) -> None:
        environment = {**os.environ, "PYTHONPATH": path, "CUDA_MODULE_LOADING": "EAGER"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work", str(folder), engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        """Return the answer to an order; a RuntimeError where there is none."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or '{"error": "ended"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def compare(
    builds: dict[str, Build], name: str, method: str, pc: str, columns: int
) -> dict[str, Any] | None:
    """Return a line of the record, None where rounding errors end the solve before.

    Both builds take turns, the first one changing.
    """
    times: dict[str, list[float]] = {which: [] for which in builds}
    bits: dict[str, set[str]] = {which: set() for which in builds}
    for turn in range(TURNS):
        for which in list(builds)[:: -1 if turn % 2 else 1]:
            answer = builds[which].ask(method=method, pc=pc, columns=columns)
            if answer["us"] is None:
                return None
            times[which].append(answer["us"])
            bits[which].add(answer["bits"])
    base, new = statistics.median(times["base"]), statistics.median(times["new"])
    line = {"matrix": name, "method": method, "pc": pc, "columns": columns}
    line |= {"base": base, "new": new}
    line |= {"ratio": new / base, "same": len(bits["base"] | bits["new"]) == 1, "all": times}
    return line | {"repeatable": all(len(found) == 1 for found in bits.values())}


def header(given: argparse.Namespace) -> dict[str, Any]:
    """Return what was measured, where and how."""
    from cpufree.bench.core.machine import describe_machine

    smi = shutil.which("nvidia-smi")
    query = [smi, "--query-gpu=name,driver_version", "--format=csv,noheader"] if smi else ["true"]
    gpus = subprocess.run(query, capture_output=True, text=True, check=False).stdout.splitlines()
    return {
        "date": date.today().isoformat(),
        "command": " ".join(["python", *sys.argv]),
        "machine": describe_machine(),
        "gpus": gpus,
        "base": given.base,
        "new": given.new,
        "iterations": ITERATIONS,
        "unit": "microseconds per iteration",
    }


def cases(columns: str) -> list[tuple[str, int]]:
    """Return methods and numbers of right-hand sides."""
    together = [("cg", int(count)) for count in columns.split(",") if count]
    return [*((method, 1) for method in METHODS), *together]


def main() -> None:
    """Compare, and write the record as it grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base")
    parser.add_argument("new")
    parser.add_argument("out", type=Path)
    parser.add_argument("--suite", default="paper18")
    parser.add_argument("--engine", default="cuda_p2p")
    parser.add_argument("--pc", default="none", choices=["none", "jacobi"])
    parser.add_argument("--columns", default="", help="such as 2,4,8")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which it ends")
    given = parser.parse_args()
    from cpufree.generate.suites import suite

    end = time.monotonic() + given.budget
    with tempfile.TemporaryDirectory() as place, given.out.open("w") as out:
        folder = Path(place)
        builds = {"base": Build(given.base, folder, given.engine)}
        builds["new"] = Build(given.new, folder, given.engine)
        print(json.dumps(header(given)), file=out, flush=True)
        for entry in sorted(suite(given.suite), key=lambda entry: entry.nnz):
            if time.monotonic() > end:
                break
            A = entry.generate()
            for part in PARTS:
                np.save(folder / f"{entry.name}.{part}.npy", getattr(A, part))
            for build in builds.values():
                build.ask(load=entry.name)
            for method, columns in cases(given.columns):
                line = compare(builds, entry.name, method, given.pc, columns)
                what = f"{entry.name:18} {method:6} {columns}"
                if line is None:
                    print(f"{what} ends too soon", flush=True)
                    continue
                print(json.dumps(line), file=out, flush=True)
                print(
                    f"{what} {line['base']:9.2f} {line['new']:9.2f} us "
                    f"{line['ratio']:6.3f} {'same bits' if line['same'] else 'OTHER BITS'}",
                    flush=True,
                )
            for part in PARTS:
                (folder / f"{entry.name}.{part}.npy").unlink()
        for build in builds.values():
            build.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
