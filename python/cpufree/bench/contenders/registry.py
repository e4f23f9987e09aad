"""Who can be measured: by name, how each is started, and what is missing where it cannot be."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cpufree.bench.contenders import nvshmem
from cpufree.bench.contenders.extension import load_baselines
from cpufree.bench.contenders.roles import SOLVERS, device_driven
from cpufree.bench.core.entry import BASELINE, OURS, PEER, Entry, parse_peer
from cpufree.bench.core.machine import source_root
from cpufree.bench.core.protocol import Contender
from cpufree.bench.core.work import METHODS
from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.extension import has_part

# Host-driven baselines of the package; what each needs is known to the extension that has them.
BASELINES = (
    "single_gpu",
    "single_gpu_textbook",
    "peer_copy",
    "nccl",
    "nccl_graph",
    "graph_while",
    "nccl_mpi",
    "mpi",
    "nvshmem_on_stream",
)
# Not host-driven: their loops run on the devices.
DEVICE_DRIVEN = device_driven(SOLVERS)
WORKER = ("{python}", "-m", "cpufree.bench.worker")
# Of the extension for processes that mpirun starts; the worker gets its name.
OF_MPI = ("nccl_mpi", "mpi")
# Bound to no core: Open MPI gives each of two processes one, and NCCL puts its threads there. Open
# MPI and MPICH have the same word for it.
MPIRUN = ("mpirun", "--bind-to", "none", "-n", "{pes}")
MPI_WORKER = (*MPIRUN, "{python}", "-m", "cpufree.bench.contenders.mpi_worker")
# What the extensions take, whatever is not between the harness and them alone.
ENGINE_TUNING = (
    *("threads", "halo", "residency", "ring", "lanes_log2", "compress"),
    "node_size",
)
BASELINE_TUNING = (
    *("spmv", "threads", "unroll", "lag", "wait_limit", "gpu_aware"),
    *("nccl_library", "nvshmem_library"),
)
PEERS_FILE = Path("bench/peers/peers.json")


def make(name: str) -> Contender:
    """Return the built-in contender of this name; InvalidInputError where there is none."""
    if name == "cpufree":
        from cpufree.bench.contenders.engine_contender import EngineContender

        return EngineContender()
    if name == "scipy":
        from cpufree.bench.contenders.scipy_contender import ScipyContender

        return ScipyContender()
    if name == "nvshmem_on_stream":
        from cpufree.bench.contenders.nvshmem_contender import NvshmemContender

        return NvshmemContender()
    if name in BASELINES:
        from cpufree.bench.contenders.baseline_contender import BaselineContender

        return BaselineContender(name)
    known = ", ".join(("cpufree", "scipy", *BASELINES))
    raise InvalidInputError(f"there is no built-in contender {name!r}; there are {known}")


def find(peers: Sequence[str] = (), peers_file: Path | None = None) -> dict[str, Entry]:
    """Return all contenders by name: built in, of the checkout's peers.json, and given as commands.

    Parameters: `peers` are texts NAME=COMMAND; `peers_file` names another file than the checkout's.
    Raises InvalidInputError for a text that is none, and for a damaged peers.json.
    """
    entries = [
        Entry("cpufree", OURS, (*WORKER, "cpufree"), tuning=ENGINE_TUNING),
        *_baselines(),
        Entry("scipy", PEER, (*WORKER, "scipy"), ("cg",), cpu_only=True, tuning=()),
        *_peers_of(peers_file or _checkout_peers()),
        *map(parse_peer, peers),
    ]
    return {entry.name: entry for entry in entries}


def _baselines() -> Iterable[Entry]:
    try:
        kinds = {str(kind["name"]): kind for kind in load_baselines().kinds()}
        missing = "this build does not have it"
    except UnsupportedError as error:
        kinds, missing = {}, str(error)
    for name in (*BASELINES, *(name for name in kinds if name not in BASELINES)):
        command: tuple[str, ...] = (*WORKER, name)
        methods, why = METHODS, missing
        if name in OF_MPI:
            of_nccl = str(kinds["nccl"]["why_not"]) if name != "mpi" and "nccl" in kinds else ""
            why = _mpi_problem() or of_nccl
            command = (*MPI_WORKER, name)
        elif name in kinds:
            kind = kinds[name]
            why = "" if kind["available"] else str(kind["why_not"]) or "not available"
            if name == "nvshmem_on_stream" and not why:
                why = nvshmem.problem()
            methods = tuple(kind["methods"])
        yield Entry(name, BASELINE, command, methods, why, tuning=BASELINE_TUNING)


def _mpi_problem() -> str:
    """Return why the baselines over MPI cannot be started, "" where they can."""
    if not has_part("_baselines_mpi"):
        return "this build has no baselines over MPI; they need CUDA and MPI: make gpu"
    return "" if shutil.which("mpirun") else "mpirun was not found"


def _checkout_peers() -> Path | None:
    root = source_root()
    file = root / PEERS_FILE if root else None
    return file if file and file.exists() else None


def _peers_of(file: Path | None) -> Iterable[Entry]:
    """Return the peers of a file, which run in the folder that bench/peers/ is in."""
    if file is None:
        return
    try:
        listed: dict[str, Any] = json.loads(file.read_text())
        for name, peer in listed.items():
            command, methods = tuple(map(str, peer["command"])), tuple(peer.get("methods", METHODS))
            lacks = _lacking(command, peer.get("modules", ()))
            why = f"{lacks}; it needs {peer.get('needs', 'that')}" if lacks else ""
            cpu_only, folder = peer.get("device") == "cpu", file.resolve().parents[2]
            yield Entry(name, PEER, command, methods, why, cpu_only, folder)
    except (ValueError, TypeError, LookupError, AttributeError, StopIteration) as error:
        raise InvalidInputError(
            f"{file}: no list of peers, {{name: {{command: [...]}}}} ({error!r})"
        ) from None


def _lacking(command: Sequence[str], modules: Sequence[str]) -> str:
    """Return what a peer lacks here, its program or modules of Python; "" where all is there."""
    # "env NAME=VALUE ... PROGRAM": the first word that is neither.
    program = next(word for word in command if word != "env" and "=" not in word)
    if shutil.which(program.replace("{python}", sys.executable)) is None:
        return f"'{program}' was not found"
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    return f"{' and '.join(absent)} not installed" if absent else ""
