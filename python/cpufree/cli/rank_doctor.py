"""What `cpufree doctor --distributed` looks at: ranks, their GPUs, an engine across them."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from cpufree import distributed, options
from cpufree.cli.doctor import Finding, Section, Status
from cpufree.distributed import Team
from cpufree.env import Env, RankEnv
from cpufree.errors import CpufreeError, UnsupportedError
from cpufree.extension import load_for

if TYPE_CHECKING:
    from cpufree.engines.remote import Library

_ROUNDS = 20
_SLOW_SECONDS = 0.05  # of a round: networks take a millisecond or less


def examine() -> list[Section]:
    """Look at what ranks need; in a team, all of them call it, and rank 0 gets all findings."""
    env = RankEnv.read()
    team = distributed.current()
    if team is None or env is None:
        hint = "cpufree run -n 2 doctor --distributed, or the same under mpirun, srun or torchrun"
        alone = Finding("launcher", Status.NOTE, "none: this process was started alone", hint)
        return [Section("Ranks", [alone, *library_findings()])]
    there = facts_of_this_rank()
    all_facts = team.tell_all("the doctor's look at ranks", there)
    findings = [Finding("launcher", Status.OK, f"{env.launcher}, {team.size} ranks")]
    for rank, (member, facts) in enumerate(zip(team.members, all_facts, strict=True)):
        where = f"{member['host']}, process {member['pid']}, {facts['gpu']}"
        findings.append(Finding(f"rank {rank}", Status.OK, f"{where}, {facts['libraries']}"))
    findings.append(round_finding(team))
    across = [engine_finding(team), litmus_finding(team)]
    return [Section("Ranks", findings), Section("Engine across ranks", across)]


def facts_of_this_rank() -> dict[str, Any]:
    """Return in words which GPUs this rank sees, and its libraries."""
    from cpufree.engines import gpus

    seen = gpus.usable(gpus.find())
    return {
        "gpu": ", ".join(f"{gpu.name} {gpu.uuid[:8]}" for gpu in seen) or "no GPU",
        "gpus": len(seen),
        "libraries": ", ".join(found.detail for found in library_findings()),
    }


def library_findings() -> list[Finding]:
    """Report NVSHMEM and NCCL, of which GPUs of several processes need one."""
    from cpufree.engines import remote

    return [_library_finding(kind) for kind in remote.OF_ENGINE.values()]


def _library_finding(kind: Library) -> Finding:
    try:
        version = kind.version()
    except UnsupportedError:
        use = f"no {kind.name}: the engine {kind.engine}, one process for each GPU"
        return Finding(kind.name, Status.OPTIONAL, use, kind.advice)
    kernels = "with" if kind.find_kernels() else "without"
    said = f"{kind.name} {version}, {kernels} kernels for several nodes"
    return Finding(kind.name, Status.OK, said)


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


def _engine(team: Team) -> str:
    from cpufree.cli.rank_commands import choose_engine

    named = Env.read().engine
    return named if named in options.DISTRIBUTED else choose_engine(team)


def engine_finding(team: Team) -> Finding:
    """Report what a small system finds that all ranks solve together."""
    from cpufree.solvers.once import solve

    n = 200 * team.size
    ones = np.ones(n - 1)
    matrix = scipy.sparse.diags([-ones, np.full(n, 2.5), -ones], [-1, 0, 1], format="csr")
    solution = np.sin(np.arange(n, dtype=np.float64))
    engine = _engine(team)
    try:
        result = solve(matrix, matrix @ solution, rtol=1e-12, engine=engine)
    except CpufreeError as error:
        return Finding(
            engine,
            Status.FAILED,
            str(error),
            "NVSHMEM_DEBUG=WARN or NCCL_DEBUG=WARN may print more.",
        )
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


def litmus_finding(team: Team) -> Finding:
    """Report whether values that go between nodes are there when their flag is.

    Networks, their cards and the bus behind them may break that, and no wait can make up for it.
    """
    from cpufree.engines import in_processes, remote
    from cpufree.engines.asked import Asked

    name, not_run = "flags and values between nodes", Status.NOTE
    env, engine = Env.read(), _engine(team)
    if engine not in remote.OF_ENGINE:
        return Finding(name, not_run, "not tried: no GPUs, between which a network would be")
    size = env.node_size or 0
    if not size and team.size_here == team.size:
        here = "not tried: all ranks are on one machine, with no network between them"
        return Finding(
            name, not_run, here, "CPUFREE_NODE_SIZE=1 imitates nodes, without a network."
        )
    kernels = remote.OF_ENGINE[engine].find_kernels()
    found = team.tell_all("kernels for several nodes", {"there": bool(kernels)})
    if not all(facts["there"] for facts in found):
        return Finding(name, not_run, f"not tried: kernels of engine {engine} were not built")
    try:
        gpu, _ = in_processes.choose_gpu(team, engine, Asked(), env)
        library = remote.prepare(team, engine)
        seen = load_for(engine).litmus(team, engine, library, kernels, gpu.index, size)
    except CpufreeError as error:
        return Finding(name, Status.FAILED, str(error))
    if seen["nodes"] == 1:
        return Finding(name, not_run, "not tried: all GPUs reach one another by loads and stores")
    way = "imitated nodes, without a network" if size else "nodes"
    messages = f"{seen['messages']} messages between {seen['nodes']} {way}"
    if seen["wrong"]:
        stale = f"{seen['wrong']} values were not there when their flag was: {messages}"
        hint = "Results between these machines are not to be trusted; try another transport."
        return Finding(name, Status.FAILED, stale, hint)
    return Finding(name, Status.OK, f"in order: {messages}")
