"""Programs from a matrix to its answer. Each runs in a process of its own, as a user would run it.

A program prints its phases as JSON in its last line: names and seconds, in order. What its process
takes besides, before its first line and after its last, is seen from outside. "parts" are those of
a phase, where they are known.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

from cpufree.engines import gpus

KINDS = ("command", "script", "repeat")
"""A command of the shell, a script that solves once, and one that solves often on one set-up."""
CONTENDERS = ("cpufree", "scipy", "cupy")

_HEAD = """
import time
begin = time.perf_counter()
phases, parts = {}, {}
def lap(name):
    global begin
    phases[name] = time.perf_counter() - begin
    begin = time.perf_counter()
import json, sys
import numpy as np
matrix, rtol, maxiter, solves = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
"""
# Matrices are made by cpufree's generators for all: these belong to no solver.
_READ = """
if matrix.startswith("gen:"):
    from cpufree.generate import from_spec
    A = from_spec(matrix[4:])
else:
    import scipy.io
    A = scipy.sparse.csr_array(scipy.io.mmread(matrix))
lap("matrix")
b = np.ones(A.shape[0])
"""
_TAIL = """
error = float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))
lap("check")
told = {"phases": phases, "iterations": int(iterations), "error": error, "parts": parts}
print(json.dumps(told))
"""
_CPUFREE = (
    _HEAD
    + """
import cpufree
import cpufree.solvers.solver
lap("imports")
# Matrices are read, or made, beside the start of CUDA.
solver = cpufree.Solver(matrix, engine=sys.argv[5])
b = np.ones(solver.shape[0])
lap("set-up")
for number in range(solves):
    result = solver.solve(b, rtol=rtol, maxiter=maxiter)
    lap(f"solve {number + 1}")
x, iterations = result.x, result.iterations
parts = {name: seconds for name, seconds in result.timings.items() if name.startswith("setup")}
A = cpufree.load_matrix(matrix)  # to check x
"""
    + _TAIL
)
_SCIPY = (
    _HEAD
    + """
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, cg
lap("imports")
"""
    + _READ
    + """
inverse = 1.0 / A.diagonal()
M = LinearOperator(A.shape, matvec=lambda r: inverse * r, dtype=np.float64)
lap("set-up")
for number in range(solves):
    iterations = 0
    def count(_):
        global iterations
        iterations += 1
    x, _ = cg(A, b, rtol=rtol, maxiter=maxiter, M=M, callback=count)
    lap(f"solve {number + 1}")
"""
    + _TAIL
)
# The Laplacian on a grid as who has CuPy would make it: diagonals, on the GPU. Others are brought.
_CUPY = (
    _HEAD
    + """
import scipy.sparse
import cupy
import cupyx.scipy.sparse
from cupyx.scipy.sparse.linalg import LinearOperator, cg
import inspect
bound = {"rtol" if "rtol" in inspect.signature(cg).parameters else "tol": rtol}
lap("imports")
def laplacian(nx, ny, nz):
    i = cupy.arange(nx * ny * nz)
    diagonals, offsets = [cupy.full(i.size, 6.0)], [0]
    axes = (1, i % nx, nx), (nx, i // nx % ny, ny), (nx * ny, i // (nx * ny), nz)
    for step, along, length in axes:
        # Entry j of the diagonal at offset d is in column j.
        diagonals += [cupy.where(along > 0, -1.0, 0.0), cupy.where(along < length - 1, -1.0, 0.0)]
        offsets += [step, -step]
    entries = (cupy.stack(diagonals), np.array(offsets))
    made = cupyx.scipy.sparse.dia_matrix(entries, (i.size, i.size)).tocsr()
    return made
grid = dict(word.split("=") for word in matrix.partition("?")[2].split(",") if "=" in word)
there = matrix.startswith("gen:poisson3d?") and set(grid) == {"nx", "ny", "nz"}
if there:
    device = laplacian(*(int(grid[name]) for name in ("nx", "ny", "nz")))
    lap("matrix")
    right = cupy.ones(device.shape[0])
else:
"""
    + "\n".join("    " + line for line in _READ.strip().splitlines())
    + """
    csr = tuple(map(cupy.asarray, (A.data, A.indices, A.indptr.astype(np.int32))))
    device = cupyx.scipy.sparse.csr_matrix(csr, shape=A.shape)
    right = cupy.asarray(b)
inverse = 1.0 / device.diagonal()
M = LinearOperator(device.shape, matvec=lambda r: inverse * r, dtype=np.float64)
cupy.cuda.Device().synchronize()
lap("set-up")
for number in range(solves):
    iterations = 0
    def count(_):
        global iterations
        iterations += 1
    solution, _ = cg(device, right, **bound, maxiter=maxiter, M=M, callback=count)
    x = solution.get()
    lap(f"solve {number + 1}")
if there:
    A, b = device.get(), right.get()  # to check x
"""
    + _TAIL
)
_TEXTS = {"cpufree": _CPUFREE, "scipy": _SCIPY, "cupy": _CUPY}


def why_not(contender: str) -> str:
    """Return why a contender cannot be measured here, "" where it can."""
    if contender != "cupy":
        return ""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    return gpus.absence(gpus.find())


def program(
    contender: str, kind: str, matrix: str, rtol: float, maxiter: int, solves: int, engine: str
) -> list[str] | None:
    """Return the words of a program; None: a contender has none of this kind.

    "cpufree on 2" is the command of cpufree with two PEs, which it would choose by itself else.
    """
    contender, _, pes = contender.partition(" on ")
    if kind == "command":
        if contender != "cpufree":
            return None
        limits = ["--rtol", repr(rtol), "--maxiter", str(maxiter)]
        where = ["--engine", engine, *(["--pes", pes] if pes else [])]
        words = ["solve", matrix, *limits, *where, "--json", "-", "-q"]
        return [sys.executable, "-m", "cpufree", *words]
    if pes:
        return None
    count = solves if kind == "repeat" else 1
    numbers: Sequence[object] = (repr(rtol), maxiter, count, engine)
    return [sys.executable, "-c", _TEXTS[contender], matrix, *map(str, numbers)]
