"""Environment variables: the only file of the Python package that reads them."""

from __future__ import annotations

import difflib
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cpufree import launchers, options
from cpufree.errors import CpufreeWarning, InvalidInputError
from cpufree.options import variables

VARIABLES = {variable.name: variable.takes for variable in variables.VARIABLES}
# Known, but no business of the package: the tests find their matrices through it.
_NOT_OURS = {"CPUFREE_DATA"}
_LARGEST_DEVICE = options.MOST_PES - 1
# Seconds that processes wait for one another to come, once the first is there: with the time that
# programs take to start, all end within 10 s where one never comes. `cpufree run` tells at once of
# one that has ended, so that those which merely start slowly have more time.
JOIN_LIMIT = 8.0
_LAUNCHED_JOIN_LIMIT = 60.0
_SHORTEST_SECRET = 16


@dataclass(frozen=True)
class Env:
    """What the environment asks for. Arguments of a call win over these, these over defaults."""

    engine: str = "auto"
    """CPUFREE_ENGINE: auto, cpu_threads, cuda_p2p, cpu_processes, nvshmem or nccl."""
    pes: int | None = None
    """CPUFREE_PES: number of PEs; None (auto, unset): chosen by the solver."""
    blocks: int | None = None
    """CPUFREE_BLOCKS: blocks per PE; None (auto, unset): chosen by the solver."""
    wait_limit: float | None = None
    """CPUFREE_WAIT_LIMIT: bound of every wait between PEs in seconds; None: the engine's own."""
    log: str = "warning"
    """CPUFREE_LOG: debug, info, warning or error; debug shows tracebacks on the command line."""
    gpus: str | tuple[int, ...] = "auto"
    """CPUFREE_GPUS: auto (unset), all, or the device numbers."""
    node_size: int | None = None
    """CPUFREE_NODE_SIZE: PEs that are treated as one machine; None (auto, unset): as it is."""

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> Env:
        """Return the validated settings of `environ` (None: of the process).

        An empty value counts as unset. Unknown CPUFREE_* names give a CpufreeWarning.

        Raises:
            InvalidInputError: a value is not what its variable takes.
        """
        values = os.environ if environ is None else environ
        _warn_of_unknown_names(values)
        wait_limit = values.get("CPUFREE_WAIT_LIMIT", "").strip()
        return cls(
            engine=_choice(values, "CPUFREE_ENGINE", options.ENGINES, default="auto"),
            pes=_count(values, "CPUFREE_PES"),
            blocks=_count(values, "CPUFREE_BLOCKS"),
            wait_limit=_seconds("CPUFREE_WAIT_LIMIT", wait_limit) if wait_limit else None,
            log=_choice(values, "CPUFREE_LOG", variables.LOG_LEVELS, default="warning"),
            gpus=_gpus(values),
            node_size=_count(values, "CPUFREE_NODE_SIZE"),
        )


@dataclass(frozen=True)
class RankEnv(launchers.Launched):
    """Which of several processes this one is, and what is known of where they meet."""

    rendezvous: str = ""
    """CPUFREE_RENDEZVOUS: HOST:PORT, file:PATH or local:PATH; "": not given."""
    join_limit: float = JOIN_LIMIT
    """CPUFREE_JOIN_LIMIT: seconds that processes wait for one another to come."""
    secret: str = field(default="", repr=False)
    """CPUFREE_SECRET: what only processes of this run know; "": rank 0 makes one."""

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> RankEnv | None:
        """Return what the launcher of this process says in `environ`, None if there was none.

        Raises:
            InvalidInputError: a variable is no number, or the variables do not fit together.
        """
        values = os.environ if environ is None else environ
        found = launchers.find(values)
        if found is None:
            return None
        limit = values.get("CPUFREE_JOIN_LIMIT", "").strip()
        return cls(
            rank=found.rank,
            ranks=found.ranks,
            local_rank=found.local_rank,
            launcher=found.launcher,
            job=values.get("CPUFREE_JOB", "").strip() or found.job,
            host=found.host,
            rendezvous=values.get("CPUFREE_RENDEZVOUS", "").strip(),
            join_limit=_seconds("CPUFREE_JOIN_LIMIT", limit) if limit else JOIN_LIMIT,
            secret=_secret(values),
        )


@dataclass(frozen=True)
class BuildEnv:
    """How kernels for the CPU are compiled."""

    compiler: tuple[str, ...]
    """CPUFREE_CXX, else CXX, else c++; with options."""

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None) -> BuildEnv:
        """Return the settings of `environ` (None: of the process)."""
        values = os.environ if environ is None else environ
        words = values.get("CPUFREE_CXX", "").split() or values.get("CXX", "").split()
        return cls(tuple(words) or ("c++",))


def in_force(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of the package that are set, of `environ` (None: of the process).

    The secret of a job is not among them: reports show them.
    """
    values = os.environ if environ is None else environ
    shown = [name for name in VARIABLES if name != "CPUFREE_SECRET"]
    return {name: values[name] for name in shown if values.get(name, "").strip()}


def _secret(values: Mapping[str, str]) -> str:
    secret = values.get("CPUFREE_SECRET", "").strip()
    if secret and len(secret) < _SHORTEST_SECRET:
        raise InvalidInputError(
            f"environment variable CPUFREE_SECRET has {len(secret)} characters, which can be "
            f"guessed; it takes {VARIABLES['CPUFREE_SECRET']}, such as openssl rand -hex 32 prints"
        )
    return secret


def home() -> Path:
    """Return the user's home."""
    return Path(os.environ.get("HOME") or Path.home())


def machine_file(environ: Mapping[str, str] | None = None) -> str:
    """Return the machine or the file that CPUFREE_MACHINE names, "" where it is not set."""
    return (os.environ if environ is None else environ).get("CPUFREE_MACHINE", "").strip()


def machine_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return where the user's own machine files are kept (XDG Base Directory Specification 0.8)."""
    said = (os.environ if environ is None else environ).get("XDG_CONFIG_HOME", "").strip()
    return (Path(said) if os.path.isabs(said) else home() / ".config") / "cpufree" / "machines"


@dataclass(frozen=True)
class KernelCache:
    """Where kernels that were compiled on this machine are to be kept."""

    kept: bool
    """False: CPUFREE_KERNEL_CACHE=off."""
    folder: str = ""
    """The one that CPUFREE_KERNEL_CACHE names, or cpufree/kernels in the user's folder for caches
    (XDG Base Directory Specification 0.8)."""
    why_none: str = ""
    """Why there is no such folder, "" where there is one."""


def kernel_cache(environ: Mapping[str, str] | None = None) -> KernelCache:
    """Return where `environ` (None: of the process) says that compiled kernels are to be kept."""
    values = os.environ if environ is None else environ
    said = values.get("CPUFREE_KERNEL_CACHE", "").strip()
    if said.lower() == "off":
        return KernelCache(False)
    try:
        if said:
            return KernelCache(True, str(Path(said).expanduser().absolute()))
        caches = values.get("XDG_CACHE_HOME", "").strip()
        folder = Path(caches) if os.path.isabs(caches) else home() / ".cache"
    except (RuntimeError, OSError) as error:  # no password entry, no working directory
        return KernelCache(True, why_none=str(error))
    return KernelCache(True, str(folder / "cpufree" / "kernels"))


def for_rank(rank: int, ranks: int, rendezvous: str, job: str, secret: str) -> dict[str, str]:
    """Return the environment for a process that `cpufree run` starts on this machine."""
    mine = {
        "CPUFREE_RANK": str(rank),
        "CPUFREE_RANKS": str(ranks),
        "CPUFREE_LOCAL_RANK": str(rank),
        "CPUFREE_RENDEZVOUS": rendezvous,
        "CPUFREE_JOB": job,
        "CPUFREE_SECRET": secret,
    }
    if not os.environ.get("CPUFREE_JOIN_LIMIT", "").strip():
        mine["CPUFREE_JOIN_LIMIT"] = f"{_LAUNCHED_JOIN_LIMIT:g}"
    return {**os.environ, **mine}


def preset_remote(engine: str, one_machine: bool) -> None:
    """Set what the library of an engine is to read, where the environment says nothing else.

    Reductions are ours: NVSHMEM looks for no NCCL. Multicast stays off. On one machine no network
    is looked for, either.
    """
    presets, always, near = {
        "nvshmem": (
            {"NVSHMEM_DISABLE_NCCL": "1", "CUDA_MODULE_LOADING": "EAGER"},
            {"NVSHMEM_DISABLE_NVLS": "1"},
            {"NVSHMEM_REMOTE_TRANSPORT": "none", "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "lo"},
        ),
        "nccl": (
            {},  # not EAGER: hundreds of kernels
            {"NCCL_NVLS_ENABLE": "0"},
            {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo"},
        ),
    }[engine]
    for name, value in {**presets, **(near if one_machine else {})}.items():
        os.environ.setdefault(name, value)
    os.environ.update(always)


def preset_shared_gpus() -> None:
    """Set what lets more than 8 PEs share a GPU, where the environment says nothing else.

    Their kernels wait for one another, and must not wait in one queue of the hardware. CUDA reads
    it when it starts: to be called before that.
    """
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")


def nvshmem_memory_grows() -> bool:
    """Return whether NVSHMEM takes more symmetric memory when it is asked for more."""
    fixed = os.environ.get("NVSHMEM_DISABLE_CUDA_VMM", "")
    return fixed.lower() in ("", "0", "false", "no", "off", "n", "f")


def source_commit() -> str:
    """Return the commit that CPUFREE_COMMIT says the sources are of, "" where it says nothing."""
    return os.environ.get("CPUFREE_COMMIT", "").strip()


def for_worker() -> dict[str, str]:
    """Return the environment for a benchmark's worker: this process's, and what is preset.

    A kernel that spins must not wait for the loading of another; JAX must leave GPU memory to the
    others; mpirun runs as the user that has started the benchmark.
    """
    presets = {
        "CUDA_MODULE_LOADING": "EAGER",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return {**presets, **os.environ}


def for_nvshmem(heap: int) -> dict[str, str]:
    """Return the environment for a process that is a PE of NVSHMEM, with `heap` bytes of memory.

    All PEs are on this machine: no network is looked for. Reductions are NVSHMEM's own; unless the
    environment says NVSHMEM_DISABLE_NCCL=0: it hands them to NCCL where it finds that. Multicast
    stays off.
    """
    presets = {
        "NVSHMEM_REMOTE_TRANSPORT": "none",
        "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "lo",
        "NVSHMEM_DISABLE_NCCL": "1",
    }
    always = {"NVSHMEM_DISABLE_NVLS": "1", "NVSHMEM_SYMMETRIC_SIZE": str(heap)}
    return {**presets, **for_worker(), **always}


def gpu_numbers(text: str) -> str | tuple[int, ...]:
    """Return "auto", "all", or the device numbers that a text such as "0,2-5" lists.

    Raises:
        ValueError: the text is none of these. Its message says which part of it.
    """
    words = text.strip().lower()
    if words in ("auto", "all"):
        return words
    if not words:
        raise ValueError("no device is named")
    numbers: list[int] = []
    for part in words.split(","):
        ends = [end.strip() for end in part.split("-")]
        # isascii: isdigit alone lets through superscripts, which int() refuses.
        if len(ends) > 2 or not all(end.isascii() and end.isdigit() for end in ends):
            raise ValueError(f"{part.strip()!r} is neither a number nor a range such as 2-5")
        if any(len(end) > 9 or int(end) > _LARGEST_DEVICE for end in ends):
            raise ValueError(f"{part.strip()!r}: devices have numbers up to {_LARGEST_DEVICE}")
        first, last = int(ends[0]), int(ends[-1])
        if first > last:
            raise ValueError(f"the range {part.strip()!r} runs backwards")
        numbers += range(first, last + 1)
    return tuple(numbers)


def _gpus(values: Mapping[str, str]) -> str | tuple[int, ...]:
    text = values.get("CPUFREE_GPUS", "").strip() or "auto"
    try:
        return gpu_numbers(text)
    except ValueError:
        raise _refuse("CPUFREE_GPUS", values["CPUFREE_GPUS"]) from None


def _refuse(name: str, value: str) -> InvalidInputError:
    return InvalidInputError(
        f"environment variable {name}={value!r} is not valid; it takes {VARIABLES[name]}"
    )


def _choice(values: Mapping[str, str], name: str, choices: tuple[str, ...], default: str) -> str:
    value = values.get(name, "").strip().lower() or default
    if value not in choices:
        raise _refuse(name, values[name])
    return value


def _count(values: Mapping[str, str], name: str) -> int | None:
    value = values.get(name, "").strip().lower()
    if value in ("", "auto"):
        return None
    # isascii: isdigit alone lets through superscripts, which int() refuses. Length: int() too.
    if not (value.isascii() and value.isdigit()) or len(value) > 10:
        raise _refuse(name, values[name])
    if not 1 <= int(value) <= options.LARGEST_COUNT:
        raise _refuse(name, values[name])
    return int(value)


def _seconds(name: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        raise _refuse(name, value) from None
    if not (math.isfinite(seconds) and seconds > 0):
        raise _refuse(name, value)
    return seconds


def _warn_of_unknown_names(values: Mapping[str, str]) -> None:
    ours = {name for name in values if name.startswith("CPUFREE_")}
    for name in sorted(ours - VARIABLES.keys() - _NOT_OURS):
        close = difflib.get_close_matches(name, VARIABLES, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        warnings.warn(
            f"environment variable {name} is not known and has no effect; {meant}"
            f"Known are {', '.join(VARIABLES)}.",
            CpufreeWarning,
            stacklevel=3,
        )


def prepare_triggers_on_gpus() -> None:
    """Set what CUDA reads when it starts, unless the user has: before triggers on GPUs.

    Streams that wait for counters need connections of their own, and nothing may be loaded while
    one waits. Without effect once CUDA has started in this process.
    """
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
