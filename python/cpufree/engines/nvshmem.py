"""NVSHMEM's host library: where it lies, and whether it loads."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from cpufree.distributed import Team
from cpufree.engines import gpus
from cpufree.engines.placement import Placement
from cpufree.env import nvshmem_memory_grows, preset_nvshmem
from cpufree.errors import CpufreeError, UnsupportedError
from cpufree.extension import load_core

NAME = "libnvshmem_host.so.3"
KERNELS = "_nvshmem.fatbin"
_PROBE_SECONDS = 60.0
_probing = threading.Lock()
_looking: list[threading.Thread] = []  # ahead
# Loads the library and asks for its version, in a process that it may take down.
_PROBE = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
number = [ctypes.c_int() for _ in range(3)]
library.nvshmemx_vendor_get_version_info(*map(ctypes.byref, number))
print(json.dumps([n.value for n in number]))
"""


def find() -> str:
    """Return the path of the library in pip's package, its name where that is not installed."""
    try:
        spec = importlib.util.find_spec("nvidia.nvshmem")
    except ModuleNotFoundError:  # no package of NVIDIA's
        spec = None
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        file = Path(folder) / "lib" / NAME
        if file.exists():
            return str(file)
    return NAME


def find_kernels(name: str = KERNELS) -> str:
    """Return the path of the kernels for GPUs in several nodes; "" where they were not built."""
    file = Path(load_core().__file__ or "").with_name(name)
    return str(file) if file.exists() else ""


def version(library: str) -> str:
    """Return the library's version, such as "3.4.5".

    Raises:
        UnsupportedError: it does not load, or ends the process that loads it.
    """
    with _probing:  # who comes meanwhile waits, and finds the answer
        return _version(library)


@lru_cache(maxsize=4)
def _version(library: str) -> str:
    command = [sys.executable, "-I", "-S", "-c", _PROBE, library]
    advice = "pip install nvidia-nvshmem-cu13 brings it"
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(f"engine 'nvshmem': {library} cannot be tried: {error}") from error
    try:
        number: list[int] = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"it ended its process, status {done.returncode}"
        raise UnsupportedError(
            f"engine 'nvshmem': {library} does not load ({why}); {advice}"
        ) from None
    return ".".join(map(str, number))


def discover_early(*looks: Callable[[], object]) -> None:
    """Begin what ranks wait for later: to find the GPUs, whose driver starts, and the library.

    In threads that end by themselves; what they find is found again, at once, by who asks for it.
    `looks`: other things to look for instead.
    """

    def quietly(look: Callable[[], object]) -> None:
        with contextlib.suppress(CpufreeError):  # raised again for who asks
            look()

    for look in looks or (gpus.find, find_version):
        _looking.append(threading.Thread(target=quietly, args=(look,)))
        _looking[-1].start()


def find_version() -> str:
    """Return the version of the library that is found."""
    return version(find())


def room_for(rows: int, value_bytes: int, pes: int) -> int:
    """Return bytes of symmetric memory for a system of which little is known yet.

    It has three vectors of a PE's rows and ghosts, and packets for as many values, at most six
    vectors' worth; a PE may have more than its share of the rows.
    """
    return 24 * (rows // pes + 1) * value_bytes


@contextlib.contextmanager
def starting(placement: Placement, room: int) -> Iterator[None]:
    """Have NVSHMEM start meanwhile, if a placement is on it; all ranks call it together.

    A system that is made meanwhile waits for it. However this ends, so has the start: a process
    must not end in the middle of it. Where symmetric memory cannot grow, the system starts it,
    which knows how much it needs.
    """
    if placement.engine != "nvshmem" or not nvshmem_memory_grows():
        yield
        return
    (gpu,) = placement.own_devices
    core = load_core()
    try:
        core.start_nvshmem(placement.team, placement.tuning["nvshmem_library"], gpu, room)
        yield
    finally:
        with contextlib.suppress(CpufreeError):  # raised again by the system
            core.await_nvshmem()


def prepare(team: Team) -> str:
    """Return the library's path once all ranks have it, and set what it is to read."""
    library = find()
    grows = nvshmem_memory_grows()
    facts = {"version of NVSHMEM": version(library)}
    team.agree("version of NVSHMEM", {**facts, "NVSHMEM_DISABLE_CUDA_VMM": "0" if grows else "1"})
    while _looking:  # no thread may read the environment while it is changed
        _looking.pop().join()
    preset_nvshmem(one_machine=team.size_here == team.size)
    return library
