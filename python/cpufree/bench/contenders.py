"""Who can be measured: by name, how each is started, and what is missing where it cannot be."""

from __future__ import annotations

import importlib
import importlib.util
import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InvalidInputError, UnsupportedError
from . import nvshmem
from .machine import source_root
from .work import METHODS
from .worker import Contender

OURS, BASELINE, PEER = "cpufree", "baseline", "peer"
# Host-driven baselines of the package; what each needs is told by the extension that has them.
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
DEVICE_DRIVEN = ("graph_while", "jax")
WORKER = ("{python}", "-m", "cpufree.bench.worker")
# Of the extension for processes that mpirun starts; the worker is told which one it is.
OF_MPI = ("nccl_mpi", "mpi")
# Bound to no core: Open MPI gives each of two processes one, and NCCL puts its threads there. Open
# MPI and MPICH have the same word for it.
MPIRUN = ("mpirun", "--bind-to", "none", "-n", "{pes}")
MPI_WORKER = (*MPIRUN, "{python}", "-m", "cpufree.bench.mpi_worker")
# What the extensions take, whatever is not between the harness and them alone.
ENGINE_TUNING = (
    *("threads", "halo", "residency", "ring", "keep", "spread", "compress", "cut"),
    *("boundary_blocks", "launchers", "node_size", "reduce"),
)
BASELINE_TUNING = (
    *("spmv", "threads", "unroll", "lag", "wait_limit", "gpu_aware"),
    *("nccl_library", "nvshmem_library"),
)
PEERS_FILE = Path("bench/peers/peers.json")


@dataclass(frozen=True)
class Entry:
    """A contender as the harness knows it."""

    name: str
    family: str
    """OURS, BASELINE or PEER."""
    command: tuple[str, ...]
    """{pes} and {python} are replaced."""
    methods: tuple[str, ...] = METHODS
    why_not: str = ""
    """Why it cannot be started here; "" where it can be tried."""
    cpu_only: bool = False
    """It does not use GPUs."""
    folder: Path | None = None
    """Where the command is run; None: in the working directory."""
    tuning: tuple[str, ...] | None = None
    """What it can be told by --tuning; None: only itself knows."""

    @property
    def by_pes(self) -> bool:
        """Whether its process is made for a number of PEs."""
        return any("{pes}" in word for word in self.command)

    def command_for(self, pes: int) -> list[str]:
        """Return the command for so many PEs."""
        changes = {"{pes}": str(pes), "{python}": sys.executable}
        words = list(self.command)
        for mark, text in changes.items():
            words = [word.replace(mark, text) for word in words]
        return words


def make(name: str) -> Contender:
    """Return the built-in contender of this name; InvalidInputError where there is none."""
    if name == "cpufree":
        from .engine_contender import EngineContender

        return EngineContender()
    if name == "scipy":
        from .scipy_contender import ScipyContender

        return ScipyContender()
    if name == "nvshmem_on_stream":
        from .nvshmem_contender import NvshmemContender

        return NvshmemContender()
    if name in BASELINES:
        from .baseline_contender import BaselineContender

        return BaselineContender(name)
    known = ", ".join(("cpufree", "scipy", *BASELINES))
    raise InvalidInputError(f"there is no built-in contender {name!r}; there are {known}")


def load_baselines() -> ModuleType:
    """Return the extension with the baselines; UnsupportedError where it does not load."""
    try:
        return importlib.import_module("cpufree._baselines")
    except ImportError as error:
        why = "" if isinstance(error, ModuleNotFoundError) else f" that loads ({error})"
        raise UnsupportedError(
            f"this build has no host-driven baselines{why}; they need CUDA: make gpu"
        ) from None


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
    if importlib.util.find_spec("cpufree._baselines_mpi") is None:
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
            # "env NAME=VALUE ... PROGRAM": the first word that is neither.
            program = next(word for word in command if word != "env" and "=" not in word)
            missing = shutil.which(program.replace("{python}", sys.executable)) is None
            needs = peer.get("needs", program)
            why = f"'{program}' was not found; it needs {needs}" if missing else ""
            cpu_only, folder = peer.get("device") == "cpu", file.resolve().parents[2]
            yield Entry(name, PEER, command, methods, why, cpu_only, folder)
    except (ValueError, TypeError, LookupError, AttributeError, StopIteration) as error:
        raise InvalidInputError(
            f"{file}: no list of peers, {{name: {{command: [...]}}}} ({error!r})"
        ) from None


def parse_peer(text: str) -> Entry:
    """Return the peer of a text NAME=COMMAND; InvalidInputError where it is none."""
    name, equals, command = text.partition("=")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise InvalidInputError(f"--peer {text!r}: {error}") from None
    if not equals or not name.strip().isidentifier() or not words:
        raise InvalidInputError(
            f"--peer {text!r}: give NAME=COMMAND, such as "
            '"petsc=mpirun -n {pes} {python} bench/peers/petsc_worker.py"'
        )
    return Entry(name.strip(), PEER, words)


def choose(there: dict[str, Entry], wanted: Sequence[str], on_gpus: bool) -> list[Entry]:
    """Return the contenders of these names, "all" being those that can be started here.

    Who uses no GPU is not among all where GPUs are measured, and baselines, which need them, are
    not where the CPU is.

    Raises InvalidInputError for a name that is not known, UnsupportedError for one asked for by
    name that cannot be started.
    """
    chosen: dict[str, Entry] = {}
    for name in wanted:
        if name == "all":
            chosen |= {
                key: entry
                for key, entry in there.items()
                if not entry.why_not
                and not (entry.cpu_only if on_gpus else entry.family == BASELINE)
            }
        elif name not in there:
            raise InvalidInputError(f"there is no contender {name!r}; there are {', '.join(there)}")
        elif there[name].why_not:
            raise UnsupportedError(f"contender '{name}' is not available: {there[name].why_not}")
        else:
            chosen[name] = there[name]
    return list(chosen.values())
