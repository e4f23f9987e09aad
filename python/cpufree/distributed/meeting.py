"""Where the processes of a team meet, and the team that this process is in."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib
import json
import os
import socket
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

from cpufree.distributed import ends, wire
from cpufree.distributed.hub import Hub
from cpufree.distributed.team import Team
from cpufree.env import RankEnv
from cpufree.errors import CpufreeError, InvalidInputError, RankFailedError, UnsupportedError

# Ports at which rank 0 may be found, where nobody says which: below those that systems hand out,
# above those of well-known services.
_FIRST_PORT, _PORTS, _TRIED = 20000, 12000, 8
# What a file at which ranks meet is called: on any machine that sees it, or on this one alone.
_SHARED, _LOCAL = "file:", "local:"
_NAP = 0.05
_KNOCK_SECONDS = 2.0  # for a connection to be made, and for the hub's welcome
_LATEST = 5.0  # what members grant beyond the limit, so that the hub's verdict reaches them

_team: Team | None = None


def is_rank() -> RankEnv | None:
    """Return what the launcher says, where this process is one of several."""
    found = RankEnv.read()
    return found if found is not None and found.ranks > 1 else None


def current() -> Team | None:
    """Return the team that this process has joined, None before."""
    return _team


def join() -> Team:
    """Become a member of the team that the launcher has started; again: return it.

    Raises:
        UnsupportedError: this process was not started as one of several.
        RankFailedError: a rank has not come, or does not fit.
    """
    global _team
    if _team is not None:
        return _team
    env = RankEnv.read()
    if env is None:
        raise UnsupportedError(
            "engines 'nvshmem' and 'cpu_processes' work in several processes, one for each PE, "
            "but this one was started alone: start it by 'cpufree run -n N ...', mpirun, srun or "
            "torchrun"
        )
    _team = connect(env, _version())
    atexit.register(leave)
    _team.begin(env.join_limit + _LATEST)
    if env.rank == 0 and _by_file(env):
        with contextlib.suppress(OSError):
            _file(env).unlink()
    return _team


def leave() -> None:
    """Leave the team, if there is one."""
    global _team
    team, _team = _team, None
    if team is not None:
        team.leave()


def settle(error: Exception, message: str, code: int) -> tuple[int, str | None]:
    """Return the exit code for an error, and what this process is to tell; None: another rank does.

    The whole team ends with it.
    """
    try:
        env = is_rank()
    except CpufreeError:
        env = None
    if _team is not None:
        about = error.rank if isinstance(error, RankFailedError) else None
        verdict = _team.fail(message, code, about)
        return verdict.code, verdict.message if verdict.teller == _team.rank else None
    if env is None:
        return code, message
    failed = error.rank if isinstance(error, RankFailedError) else -1
    teller = 1 if failed == 0 and env.rank != 0 else 0
    return code, message if env.rank == teller else None


def connect(env: RankEnv, version: str) -> Team:
    """Meet the others; rank 0 brings the hub along."""
    hub = None
    hello = _hello(env, version)
    if env.rank == 0:
        listener = _listen(env)
        hub = Hub(listener, env.ranks, _secret(env), version, env.join_limit, lambda: _ended(env))
        connection = _enter_own(_own_address(listener), hello, env.join_limit)
    else:
        connection = _find(env, hello)
    return Team(connection, env.rank, env.ranks, hub)


def _hello(env: RankEnv, version: str) -> dict[str, Any]:
    return {
        "rank": env.rank,
        "ranks": env.ranks,
        "job": _secret(env),
        "version": version,
        "host": socket.gethostname(),
        "machine": machine_id(),
        "local_rank": env.local_rank,
        "pid": os.getpid(),
    }


def machine_id() -> str:
    """Return what processes of one machine have in common, and no others: its last start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cpufree")
    except PackageNotFoundError:
        return "unknown"


def _secret(env: RankEnv) -> str:
    return hashlib.sha256(f"cpufree {env.job} {env.rendezvous}".encode()).hexdigest()


# -- rank 0: where to be found --


def _listen(env: RankEnv) -> socket.socket:
    """Return a socket at one of the places where the others look, which are informed of it."""
    if _by_file(env):
        listener = _bind("127.0.0.1" if env.rendezvous.startswith(_LOCAL) else "", 0)
        _announce(env, listener)
        return listener
    problem: OSError | None = None
    for host, port in _places(env):
        try:
            return _bind("127.0.0.1" if host in ("127.0.0.1", "localhost") else "", port)
        except OSError as error:
            problem = error
    raise RankFailedError(
        f"rank 0 cannot listen at {_spell(_places(env))} ({problem}); CPUFREE_RENDEZVOUS=HOST:PORT "
        "or file:PATH names another place",
        0,
    )


def _bind(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def _own_address(listener: socket.socket) -> tuple[str, int]:
    host, port = listener.getsockname()[:2]
    return ("127.0.0.1" if host == "0.0.0.0" else host), port


def _announce(env: RankEnv, listener: socket.socket) -> None:
    """Write into the shared file where rank 0 is, in one step."""
    name = socket.gethostname()
    if not env.rendezvous.startswith(_LOCAL):  # there it is not used, and may take long
        with contextlib.suppress(OSError):
            name = socket.gethostbyname(name)
    content = {"machine": machine_id(), "host": name, "port": listener.getsockname()[1]}
    file = _file(env)
    try:
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=file.name)
        with os.fdopen(handle, "w") as out:
            json.dump({**content, "job": _secret(env)}, out)
        Path(draft).replace(file)
    except OSError as error:
        listener.close()
        raise RankFailedError(
            f"rank 0 cannot write the file at which ranks meet ({error}); CPUFREE_RENDEZVOUS "
            "names another one, on a file system that all machines share",
            0,
        ) from error


def _enter_own(place: tuple[str, int], hello: dict[str, Any], seconds: float) -> socket.socket:
    """Return a connection to the hub of this process, which may be slow, but is there."""
    try:
        return _enter(place, hello, seconds)
    except OSError as error:
        raise RankFailedError(
            f"rank 0 cannot reach itself at {_spell([place])} "
            f"({' '.join(str(error).split()) or type(error).__name__})",
            0,
        ) from error


# -- the others: where to look --


def _find(env: RankEnv, hello: dict[str, Any]) -> socket.socket:
    """Return a connection to the hub of this job."""
    end = time.monotonic() + env.join_limit
    last = ""
    while True:
        for place in _places(env):
            try:
                return _enter(place, hello)
            except OSError as error:
                last = f" (last: {' '.join(str(error).split()) or type(error).__name__})"
            if time.monotonic() > end:
                break
        if 0 in (ended := _ended(env)):  # it will not come, perhaps because of another one
            rank, how = next(iter(ended.items()))
            raise RankFailedError(f"rank {rank} {ends.too_early(how)}", rank)
        if time.monotonic() > end:
            raise RankFailedError(
                f"rank 0 was not found at {_spell(_places(env)) or env.rendezvous} within "
                f"{env.join_limit:g} s{last}; was it started, is that where it runs, and have all "
                "ranks the same CPUFREE_JOB, where that is set? CPUFREE_RENDEZVOUS=HOST:PORT or "
                "file:PATH names another place",
                0,
            )
        time.sleep(_NAP)


def _enter(
    place: tuple[str, int], hello: dict[str, Any], seconds: float = _KNOCK_SECONDS
) -> socket.socket:
    """Return a connection to the hub; OSError where that is another's, or somebody else's port."""
    connection = socket.create_connection(place, timeout=seconds)
    try:
        wire.prepare(connection)
        wire.send(connection, hello)
        if wire.receive_first(connection, seconds).get("do") != "welcome":
            raise wire.Damaged("not a hub of cpufree")
        wire.send(connection, {"do": "come"})
    except OSError:
        connection.close()
        raise
    return connection


def _places(env: RankEnv) -> list[tuple[str, int]]:
    """Return hosts and ports at which rank 0 may be."""
    if _by_file(env):
        return _announced(env)
    if env.rendezvous:
        host, _, port = env.rendezvous.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise InvalidInputError(
                f"environment variable CPUFREE_RENDEZVOUS={env.rendezvous!r} is not valid; it "
                "takes HOST:PORT of rank 0, or file:PATH of a file that all machines share"
            )
        return [(host, int(port))]
    if not env.job:  # all runs without a name would meet at the same places
        raise InvalidInputError(
            f"the launcher ({env.launcher}) gives this run no name: set CPUFREE_JOB to one that "
            "its ranks have in common, and no others, or CPUFREE_RENDEZVOUS to HOST:PORT of rank "
            "0, or file:PATH of a file that all machines share"
        )
    host = env.host or _host_from_mpi()
    first = zlib.crc32(env.job.encode())
    return [(host, _FIRST_PORT + (first + k * 997) % _PORTS) for k in range(_TRIED)]


def _announced(env: RankEnv) -> list[tuple[str, int]]:
    """Return what rank 0 has written into the file, nothing while it has not."""
    try:
        content: dict[str, Any] = json.loads(_file(env).read_text())
        if content["job"] != _secret(env):
            return []  # left over from another run
        host = "127.0.0.1" if content["machine"] == machine_id() else str(content["host"])
        return [(host, int(content["port"]))]
    except (OSError, ValueError, KeyError):
        return []


def _ended(env: RankEnv) -> dict[int, str]:
    """Return which ranks have ended, and how, where the launcher tells that: our own does."""
    return ends.read(_file(env)) if env.rendezvous.startswith(_LOCAL) else {}


def _by_file(env: RankEnv) -> bool:
    return env.rendezvous.startswith((_SHARED, _LOCAL))


def _file(env: RankEnv) -> Path:
    return Path(env.rendezvous.removeprefix(_SHARED).removeprefix(_LOCAL))


@functools.lru_cache(maxsize=1)  # all ranks ask together, once
def _host_from_mpi() -> str:
    """Return the name of rank 0's machine as mpi4py tells it, where that is installed."""
    try:
        mpi = importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise UnsupportedError(
            "the launcher does not say where rank 0 runs: give CPUFREE_RENDEZVOUS, HOST:PORT of "
            "rank 0, or file:PATH on a file system that all machines share; or install mpi4py"
        ) from error
    return str(mpi.COMM_WORLD.bcast(socket.gethostname(), root=0))


def _spell(places: list[tuple[str, int]]) -> str:
    return ", ".join(f"{host}:{port}" for host, port in places)
