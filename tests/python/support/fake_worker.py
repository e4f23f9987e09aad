"""A contender for tests that does what its first argument says, with textbook CG for an answer.

    python fake_worker.py KIND [FILE]

KIND: good; crash, hang, garbage, flood (of stderr, in each solve); silent (never answers); wrong
(an x that solves nothing); few (crashes in every method but cg); family (leaves children in a
session and groups of their own, whose numbers go to FILE, and hangs).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def load(folder: Path) -> tuple[Any, Any]:
    """Return A and b."""
    arrays = [np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr")]
    return sp.csr_array(tuple(arrays)), np.load(folder / "b.npy")


def conjugate_gradients(A: Any, b: Any, most: int, tolerance: float) -> tuple[Any, int, float]:
    """Return x, iterations and the norm of the residual."""
    x, r = np.zeros_like(b), b.copy()
    p, rr, k = r.copy(), float(r @ r), 0
    while k < most and rr**0.5 > tolerance:
        s = A @ p
        step = rr / float(p @ s)
        x += step * p
        r -= step * s
        rr, before = float(r @ r), rr
        p = r + rr / before * p
        k += 1
    return x, k, rr**0.5


def solve(system: tuple[Any, Any], request: dict[str, Any], kind: str) -> dict[str, Any]:
    """Answer a request to solve."""
    A, b = system
    exact = request["iterations"]
    tolerance = 0.0 if exact else request["rtol"] * float(np.linalg.norm(b))
    begin = time.perf_counter()
    x, k, norm = conjugate_gradients(A, b, exact or request["max_iterations"], tolerance)
    seconds = time.perf_counter() - begin
    if request["save"]:
        np.save(request["save"], x * (3.0 if kind == "wrong" else 1.0))
    reason = "CONVERGED_ITS" if exact else "CONVERGED_RTOL"
    answer = {"seconds": seconds, "iterations": k, "reason": reason, "residual": norm}
    return {"ok": True, **answer, "split": {"spmv": seconds / 2}}


def misbehave(kind: str, request: dict[str, Any]) -> None:
    """Do what a solve does besides."""
    if kind == "crash" or (kind == "few" and request["method"] != "cg"):
        print("about to fall", file=sys.stderr, flush=True)
        os.abort()
    if kind == "hang":
        time.sleep(600)
    if kind == "garbage":
        print('hello\n[1, 2]\n{"no": "answer"}\n\x00\xff', flush=True)
    if kind == "flood":
        sys.stderr.write("x" * 3_000_000 + "\nthe end of the flood")
        sys.stderr.flush()
    if kind == "family":
        own_group = subprocess.Popen(SLEEPER, preexec_fn=os.setpgrp)
        own_session = subprocess.Popen(SLEEPER, start_new_session=True)
        numbers = [os.getpid(), own_group.pid, own_session.pid]
        Path(sys.argv[2]).write_text(" ".join(map(str, numbers)))
        time.sleep(600)


def main(kind: str) -> None:
    """Answer requests."""
    system: tuple[Any, Any] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {"ok": True, "facts": {"kind": kind}}
        if kind == "silent":
            continue
        if request["do"] == "load":
            system = load(Path(request["folder"]))
        elif request["do"] == "solve":
            assert system is not None
            misbehave(kind, request)
            answer = solve(system, request, kind)
        print(json.dumps(answer), flush=True)
        if request["do"] == "quit":
            return


if __name__ == "__main__":
    main(sys.argv[1])
