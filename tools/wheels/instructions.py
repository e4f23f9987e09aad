"""Count the instructions of the CPU engine's kernels for 64-bit Arm, under qemu-user.

    python -m tools.wheels.instructions [--python 3.11] [--out RECORD]

An emulator has no times, but it can count. The wheel is the one that `make try-wheels` has
installed for that version of Python. A figure is that of a row and an iteration: the difference of
two solves with different numbers of iterations, so that neither set-up nor the call is in it. The
counts say what compilers make of loops for each level of kernels, not how long they take.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.wheels.interpreters import ROOTS, from_debian
from tools.wheels.tried import WORK

PLUGIN = Path(__file__).with_name("count_instructions.c")

PROCESSORS = {
    "NEON": ("max,sve-max-vq=1", "neon"),
    "SVE, 128 bits": ("max,sve-max-vq=1", "sve"),
    "SVE, 256 bits": ("max,sve-max-vq=2", "sve"),
}
"""What qemu-user stands in for, and the level of kernels."""

PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, scipy.sparse as sp, cpufree
A = cpufree.generate.poisson2d(nx=100, ny=100)
rows = A.shape[0]
order = np.random.default_rng(3).permutation(rows)
skew = sp.csr_array(0.1j * sp.triu(A, 1))
matrices = {
    "grid": (A, float), "rows in random order": (A[order][:, order].tocsr(), float),
    "grid, float32": (A, np.float32), "grid, complex": ((A + skew - skew.T).tocsr(), complex),
}
for name, (matrix, dtype) in matrices.items():
    b = np.sin(np.arange(float(rows))).astype(dtype)
    plain = name == "grid"
    for method in ("cg", "prcg", "pipecg") if plain else ("cg",):
        for pc in ("jacobi", "none", "amg") if plain and method == "cg" else ("jacobi",):
            given = {"dtype": dtype} if dtype is np.float32 else {}
            with cpufree.Solver(matrix, pes=1, blocks=1, pc=pc, reorder=False, **given) as solver:
                few, many = (2, 6) if pc == "amg" else (5, 25)
                for count in (few, few, many):  # the first one loads what it needs
                    print("of", count, flush=True)
                    os.getppid()
                    solver.solve(b, method=method, rtol=0, maxiter=count)
                    os.getppid()
                print("case", (many - few) * rows, method, pc, name, sep="|", flush=True)
"""


def main() -> int:
    """Count, and print a table; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default="3.11", metavar="VERSION")
    parser.add_argument("--out", type=Path, metavar="RECORD")
    given = parser.parse_args()
    place = WORK / f"{given.python}-aarch64"
    command = from_debian(given.python, "aarch64")
    if command is None or not place.is_dir():
        print(
            f"instructions: error: {place} is missing: make wheel try-wheels "
            f"PYTHONS={given.python} ARCHITECTURES=aarch64",
            file=sys.stderr,
        )
        return 1
    plugin = ROOTS / "count_instructions.so"
    options = ["-shared", "-fPIC", "-O2", "-fvisibility=hidden"]
    subprocess.run(["cc", *options, str(PLUGIN), "-o", str(plugin)], check=True)
    emulator = [command[0], "-plugin", str(plugin), *command[1:]]
    table: dict[str, dict[str, float]] = {}
    for processor in PROCESSORS:
        for case, figure in counted(emulator, place, processor).items():
            table.setdefault(case, {})[processor] = figure
    for case, figures in table.items():
        print(f"{case:38}", *(f"{name} {one:.1f}" for name, one in figures.items()), sep="  ")
    if given.out:
        given.out.write_text(json.dumps(record(table), indent=1) + "\n")
    return 0


def counted(emulator: list[str], place: Path, processor: str) -> dict[str, float]:
    """Return the instructions per row and iteration of each case."""
    cpu, level = PROCESSORS[processor]
    env = {"QEMU_CPU": cpu, "CPUFREE_CPU_LEVEL": level, "CPUFREE_KERNEL_CACHE": "off"}
    words = [*emulator, "-c", PROGRAM, str(place)]
    env |= {"PYTHONHASHSEED": "0", "PATH": os.environ["PATH"]}
    said = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
    figures, counts = {}, list[int]()
    for line in said.splitlines():
        if line.isdigit():
            counts.append(int(line))
        elif line.startswith("case"):
            _, steps, method, pc, name = line.split("|")
            few, many = counts[3] - counts[2], counts[5] - counts[4]
            figures[f"{method}, {pc}, {name}"] = (many - few) / int(steps)
            counts.clear()
    return figures


def record(table: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Return what is written to disk."""
    root = Path(__file__).resolve().parents[2]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    compiler = subprocess.run(
        ["aarch64-linux-gnu-g++", "--version"], capture_output=True, text=True
    ).stdout.splitlines()[0]
    emulator = subprocess.run(["qemu-aarch64", "--version"], capture_output=True, text=True)
    return {
        "what": "instructions per row and iteration, emulated",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(["python -m tools.wheels.instructions", *sys.argv[1:]]),
        "commit": head.stdout.strip(),
        "compiler": compiler,
        "emulator": emulator.stdout.splitlines()[0],
        "matrix": "poisson2d 100 x 100, one PE, one block",
        "instructions": table,
    }


if __name__ == "__main__":
    sys.exit(main())
