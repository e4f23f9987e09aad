"""How the processes of a team meet, and the team that this process is in."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import time
from pathlib import Path
from typing import Any

from cpufree.distributed import ends, handshake, places, wire
from cpufree.distributed.hub import Hub
from cpufree.distributed.team import Team
from cpufree.env import RankEnv
from cpufree.errors import CpufreeError, RankFailedError, UnsupportedError

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
            "engines 'nvshmem', 'nccl' and 'cpu_processes' work in several processes, one for each "
            "PE, but this one was started alone: start it by 'cpufree run -n N ...', mpirun, srun "
            "or torchrun"
        )
    with contextlib.ExitStack() as once_met:
        _team = connect(env, _version(), once_met)
        atexit.register(leave)
        _team.begin(env.join_limit + _LATEST)
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


def connect(env: RankEnv, version: str, once_met: contextlib.ExitStack) -> Team:
    """Meet the others; rank 0 brings the hub along. `once_met`: what to do when all are here."""
    hub = None
    hello = _hello(env, version)
    if env.rank == 0:
        listener, secret = places.listen(env)
        once_met.callback(places.forget, env)
        key = handshake.key_for(secret, env.job)
        hub = Hub(listener, env.ranks, key, version, env.join_limit, lambda: _ended(env))
        connection = _enter_own(listener, key, hello, env.join_limit)
    else:
        connection = _find(env, hello)
    return Team(connection, env.rank, env.ranks, hub)


def _hello(env: RankEnv, version: str) -> dict[str, Any]:
    processes = ""
    with contextlib.suppress(OSError):
        processes = os.readlink("/proc/self/ns/pid")
    return {
        "rank": env.rank,
        "ranks": env.ranks,
        "version": version,
        "host": socket.gethostname(),
        "machine": places.machine_id(),
        "processes": processes,  # among which the number of this one means this one
        "local_rank": env.local_rank,
        "pid": os.getpid(),
    }


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cpufree")
    except PackageNotFoundError:
        return "unknown"


def _enter_own(
    listener: socket.socket, key: bytes, hello: dict[str, Any], seconds: float
) -> socket.socket:
    """Return a connection to the hub of this process, which may be slow, but is there."""
    host, port = listener.getsockname()[:2]
    try:
        return _enter("127.0.0.1" if host == "0.0.0.0" else host, port, key, hello, seconds)
    except OSError as error:
        raise RankFailedError(
            f"rank 0 cannot reach itself at {host}:{port} ({_why(error)})", 0
        ) from error


def _find(env: RankEnv, hello: dict[str, Any]) -> socket.socket:
    """Return a connection to the hub of this job."""
    end = time.monotonic() + env.join_limit
    where = env.rendezvous
    while True:
        try:
            place = places.look(env)
            where = str(place)
            key = handshake.key_for(place.secret, env.job)
            return _enter(place.host, place.port, key, hello)
        except OSError as error:
            last = _why(error)
        if 0 in (ended := _ended(env)):  # it will not come, perhaps because of another one
            rank, how = next(iter(ended.items()))
            raise RankFailedError(f"rank {rank} {ends.too_early(how)}", rank)
        if time.monotonic() > end:
            raise RankFailedError(_not_found(env, where, last), 0)
        time.sleep(_NAP)


def _not_found(env: RankEnv, where: str, last: str) -> str:
    """Return what is said where rank 0 was looked for in vain."""
    at = f" at {where}" if where else ""
    return (
        f"rank 0 was not found{at} within {env.join_limit:g} s (last: {last}); was it started, and "
        "do all ranks see the file at which they meet? CPUFREE_RENDEZVOUS=file:PATH names one on "
        "a file system that all machines share; without such, set CPUFREE_RENDEZVOUS=HOST:PORT and "
        "CPUFREE_SECRET, a random text, the same in all ranks, as CPUFREE_JOB is where it is set"
    )


def _why(error: OSError) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _enter(
    host: str, port: int, key: bytes, hello: dict[str, Any], seconds: float = _KNOCK_SECONDS
) -> socket.socket:
    """Return a connection to the hub; OSError where the port belongs to another program."""
    connection = socket.create_connection((host, port), timeout=seconds)
    try:
        wire.prepare(connection)
        handshake.enter(connection, key, hello, seconds)
    except OSError:
        connection.close()
        raise
    return connection


def _ended(env: RankEnv) -> dict[int, str]:
    """Return which ranks have ended, and how, where the launcher tells that: our own does."""
    if not env.rendezvous.startswith(places.LOCAL):
        return {}
    return ends.read(Path(env.rendezvous.removeprefix(places.LOCAL)))
