"""What `cpufree doctor --distributed` looks at: ranks, their GPUs, an engine across them."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import scipy.sparse

from cpufree import distributed
from cpufree.cli.doctor import Finding, Section, Status
from cpufree.distributed import Team
from cpufree.env import RankEnv
from cpufree.errors import CpufreeError, UnsupportedError

_ROUNDS = 20
_SLOW_SECONDS = 0.05  # of a round: networks take a millisecond or less


def examine() -> list[Section]:
    """Look at what ranks need; in a team, all of them call it, and rank 0 gets all findings."""
    env = RankEnv.read()
    team = distributed.current()
    if team is None or env is None:
        hint = "cpufree run -n 2 doctor --distributed, or the same under mpirun, srun or torchrun"
        alone = Finding("launcher", Status.NOTE, "none: this process was started alone", hint)
        return [Section("Ranks", [alone, nvshmem_finding()])]
    there = facts_of_this_rank()
    all_facts = team.tell_all("the doctor's look at ranks", there)
    findings = [Finding("launcher", Status.OK, f"{env.launcher}, {team.size} ranks")]
    for rank, (member, facts) in enumerate(zip(team.members, all_facts, strict=True)):
        where = f"{member['host']}, process {member['pid']}, {facts['gpu']}"
        findings.append(Finding(f"rank {rank}", Status.OK, f"{where}, {facts['nvshmem']}"))
    findings.append(round_finding(team))
    return [Section("Ranks", findings), Section("Engine across ranks", [engine_finding(team)])]


def facts_of_this_rank() -> dict[str, Any]:
    """Return in words which GPUs this rank sees, and its NVSHMEM."""
    from cpufree.engines import gpus

    seen = gpus.usable(gpus.find())
    return {
        "gpu": ", ".join(f"{gpu.name} {gpu.uuid[:8]}" for gpu in seen) or "no GPU",
        "gpus": len(seen),
        "nvshmem": nvshmem_finding().detail,
    }


def nvshmem_finding() -> Finding:
    """Report the library of NVSHMEM, which only GPUs of several processes need."""
    from cpufree.engines import nvshmem

    try:
        kernels = "with" if nvshmem.find_kernels() else "without"
        version = nvshmem.version(nvshmem.find())
        return Finding(
            "NVSHMEM", Status.OK, f"NVSHMEM {version}, {kernels} kernels for several nodes"
        )
    except UnsupportedError:
        use = "no NVSHMEM: the engine nvshmem, one process for each GPU"
        return Finding("NVSHMEM", Status.OPTIONAL, use, "pip install nvidia-nvshmem-cu13")


def round_finding(team: Team) -> Finding:
    """Report how long all ranks take to meet."""
    times = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        team.barrier("the doctor's rounds")
        times.append(time.perf_counter() - begin)
    middle = statistics.median(times)
    status = Status.OK if middle < _SLOW_SECONDS else Status.NOTE
    hint = "" if status is Status.OK else "Set-up and the end of solves will be slow."
    return Finding("a round of all ranks", status, f"{1e3 * middle:.2f} ms", hint)


def engine_finding(team: Team) -> Finding:
    """Report what a small system finds that all ranks solve together."""
    from cpufree.cli.rank_commands import choose_engine
    from cpufree.solvers.once import solve

    n = 200 * team.size
    ones = np.ones(n - 1)
    matrix = scipy.sparse.diags([-ones, np.full(n, 2.5), -ones], [-1, 0, 1], format="csr")
    solution = np.sin(np.arange(n, dtype=np.float64))
    engine = choose_engine(team)
    try:
        result = solve(matrix, matrix @ solution, rtol=1e-12, engine=engine)
    except CpufreeError as error:
        return Finding(engine, Status.FAILED, str(error), "NVSHMEM_DEBUG=WARN may print more.")
    difference = np.abs(result.x - solution)
    if team.rank != 0:  # which has all of x; the rows of others are NaN here
        difference = difference[np.isfinite(difference)]
    wrong = float(difference.max(initial=0.0))
    wrong = wrong if np.isfinite(wrong) else np.inf
    worst = max(facts["error"] for facts in team.tell_all("the doctor's errors", {"error": wrong}))
    detail = f"{n} rows on {team.size} ranks, {result.iterations} iterations, error {worst:.0e}"
    if not result.converged or worst > 1e-8:
        return Finding(engine, Status.FAILED, f"{result.reason.value}: {detail}")
    return Finding(engine, Status.OK, f"works: {detail}")
