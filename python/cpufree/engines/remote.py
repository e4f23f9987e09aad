"""Libraries of engines with a process for each GPU: where they lie, and whether they load."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cpufree.distributed import Team
from cpufree.engines.placement import Placement
from cpufree.env import nvshmem_memory_grows, preset_remote
from cpufree.errors import CpufreeError, UnsupportedError
from cpufree.extension import load_core

_PROBE_SECONDS = 60.0
_probing = threading.Lock()
_looking: list[threading.Thread] = []  # ahead


@dataclass(frozen=True)
class Library:
    """A library that gives processes memory which their GPUs reach together."""

    engine: str
    name: str
    """As users know it."""
    file: str
    ask: str
    """Python that sets `number`, three parts, from `library`, which ctypes has loaded."""
    least: tuple[int, int]
    """The first version that will do."""

    @property
    def advice(self) -> str:
        """What brings it."""
        return f"pip install nvidia-{self.engine}-cu13"

    def find(self) -> str:
        """Return the path of the library in pip's package, its name where it is not installed."""
        try:
            spec = importlib.util.find_spec(f"nvidia.{self.engine}")
        except ModuleNotFoundError:  # no package of NVIDIA's
            spec = None
        for folder in (spec.submodule_search_locations or []) if spec is not None else []:
            file = Path(folder) / "lib" / self.file
            if file.exists():
                return str(file)
        return self.file

    def find_kernels(self) -> str:
        """Return the path of the kernels for GPUs in several nodes; "" where none were built."""
        return find_kernels(f"_{self.engine}.fatbin")

    def version(self, library: str = "") -> str:
        """Return the version of the library at a path, "" for the one that is found: "3.4.5".

        Raises:
            UnsupportedError: it does not load, ends the process that loads it, or is too old.
        """
        with _probing:  # who comes meanwhile waits, and finds the answer
            return _version(self, library or self.find())


NVSHMEM = Library(
    "nvshmem",
    "NVSHMEM",
    "libnvshmem_host.so.3",
    "number = [ctypes.c_int() for _ in range(3)]\n"
    "library.nvshmemx_vendor_get_version_info(*map(ctypes.byref, number))\n"
    "number = [n.value for n in number]",
    (3, 4),
)
NCCL = Library(
    "nccl",
    "NCCL",
    "libnccl.so.2",
    "code = ctypes.c_int()\n"
    "library.ncclGetVersion(ctypes.byref(code))\n"
    "number = [code.value // 10000, code.value // 100 % 100, code.value % 100]",
    (2, 28),
)
OF_ENGINE = {library.engine: library for library in (NVSHMEM, NCCL)}


def find_kernels(name: str) -> str:
    """Return the path of a file of kernels beside the extension; "" where it was not built."""
    file = Path(load_core().__file__ or "").with_name(name)
    return str(file) if file.exists() else ""


@lru_cache(maxsize=4)
def _version(kind: Library, library: str) -> str:
    # Loads the library and asks for its version, in a process that it may take down.
    probe = f"import ctypes, json, sys\nlibrary = ctypes.CDLL(sys.argv[1])\n{kind.ask}"
    command = [sys.executable, "-I", "-S", "-c", f"{probe}\nprint(json.dumps(number))", library]
    begin = f"engine '{kind.engine}': {library}"
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"{begin} cannot be tried: {error}") from error
    try:
        number: list[int] = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"it ended its process, status {done.returncode}"
        raise UnsupportedError(f"{begin} does not load ({why}); {kind.advice} brings it") from None
    version = ".".join(map(str, number))
    if tuple(number) < kind.least:
        least = ".".join(map(str, kind.least))
        raise UnsupportedError(
            f"{begin} is {kind.name} {version}, which lacks what is needed of {least} and newer: "
            f"{kind.advice} brings one"
        )
    return version


def discover_early(*looks: Callable[[], object]) -> None:
    """Begin what ranks wait for later, such as to find the GPUs, whose driver starts.

    In threads that end by themselves; what they find is found again, at once, by who asks for it.
    """

    def quietly(look: Callable[[], object]) -> None:
        with contextlib.suppress(CpufreeError):  # raised again for who asks
            look()

    for look in looks:
        _looking.append(threading.Thread(target=quietly, args=(look,)))
        _looking[-1].start()


def room_for(rows: int, value_bytes: int, pes: int) -> int:
    """Return bytes of symmetric memory for a system of which little is known yet.

    It has three vectors of a PE's rows and ghosts, and packets for as many values, at most six
    vectors' worth; a PE may have more than its share of the rows.
    """
    return 24 * (rows // pes + 1) * value_bytes


@contextlib.contextmanager
def starting(placement: Placement, room: int) -> Iterator[None]:
    """Have the library start meanwhile, if a placement is on one; all ranks call it together.

    A system that is made meanwhile waits for it. However this ends, so has the start: a process
    must not end in the middle of it. Where symmetric memory cannot grow, the system starts it,
    which knows how much it needs.
    """
    engine = placement.engine
    if engine not in OF_ENGINE or not _memory_grows(engine):
        yield
        return
    (gpu,) = placement.own_devices
    core = load_core()
    try:
        core.start_remote(placement.team, engine, placement.tuning["remote_library"], gpu, room)
        yield
    finally:
        with contextlib.suppress(CpufreeError):  # raised again by the system
            core.await_remote(engine)


def prepare(team: Team, engine: str) -> str:
    """Return the library's path once all ranks have it, and set what it is to read."""
    kind = OF_ENGINE[engine]
    library = kind.find()
    what = f"version of {kind.name}"
    facts = {what: kind.version(library)}
    if engine == "nvshmem":
        facts["NVSHMEM_DISABLE_CUDA_VMM"] = "0" if _memory_grows(engine) else "1"
    team.agree(what, facts)
    while _looking:  # no thread may read the environment while it is changed
        _looking.pop().join()
    preset_remote(engine, one_machine=team.size_here == team.size)
    return library


def _memory_grows(engine: str) -> bool:
    return engine != "nvshmem" or nvshmem_memory_grows()


def choose(team: Team) -> str:
    """Return the engine for ranks that all have GPUs: "nvshmem", or "nccl" where only that loads.

    All ranks call it together.
    """

    def loads(kind: Library) -> bool:
        try:
            kind.version()
        except UnsupportedError:
            return False
        return True

    def in_all(kind: Library) -> bool:
        told = team.tell_all(f"whether {kind.name} is there", {"there": loads(kind)})
        return all(facts["there"] for facts in told)

    return "nvshmem" if in_all(NVSHMEM) or not in_all(NCCL) else "nccl"
