"""Where the processes of a team meet, and the secret by which they know one another.

Both are in a file that the user alone may read, which rank 0 writes: in a folder of this machine
where the launcher says that all ranks are here, else in the user's home, which machines share, or
where CPUFREE_RENDEZVOUS says. It may name an address instead, and CPUFREE_SECRET the secret; with
both there is no file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import ipaddress
import json
import os
import secrets
import socket
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cpufree.env import RankEnv, home
from cpufree.errors import InvalidInputError, RankFailedError

# What a file at which ranks meet is called: on any machine that sees it, or on this one alone.
_SHARED, LOCAL = "file:", "local:"
_LOOPBACK = "127.0.0.1"
_EVERYWHERE = ""  # all addresses of this machine
_MOST_BYTES = 4096  # of the file


class NotAnnounced(OSError):
    """Rank 0 has not said yet where it is, or what says so cannot be trusted."""


@dataclass(frozen=True)
class Place:
    """Where rank 0 is, and the secret of its job."""

    host: str
    port: int
    secret: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def meeting_file(env: RankEnv) -> Path | None:
    """Return the file at which the ranks meet; None: they need none."""
    for scheme in (_SHARED, LOCAL):
        if env.rendezvous.startswith(scheme):
            return Path(env.rendezvous.removeprefix(scheme))
    host = address_of(env)[0] if env.rendezvous else env.host
    if env.rendezvous and env.secret:
        return None
    if not env.rendezvous and not env.job:  # all runs without a name would meet at the same place
        raise InvalidInputError(
            f"the launcher ({env.launcher}) gives this run no name: set CPUFREE_JOB to one that "
            "its ranks have in common, and no others, or CPUFREE_RENDEZVOUS to file:PATH of a file "
            "that all machines share"
        )
    folder = home() / ".cache" / "cpufree"
    if _is_loopback(host):
        folder = Path(tempfile.gettempdir()) / f"cpufree-{os.geteuid()}"
    name = hashlib.sha256(json.dumps([env.job, env.host, env.rendezvous]).encode()).hexdigest()
    return folder / f"meet-{name[:32]}"


def address_of(env: RankEnv) -> tuple[str, int]:
    """Return host and port that CPUFREE_RENDEZVOUS names."""
    host, _, port = env.rendezvous.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise InvalidInputError(
            f"environment variable CPUFREE_RENDEZVOUS={env.rendezvous!r} is not valid; it takes "
            "HOST:PORT of rank 0, or file:PATH of a file that all machines share"
        )
    return host, int(port)


def machine_id() -> str:
    """Return what processes of one machine have in common, and no others: its last start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


# -- rank 0 --


def listen(env: RankEnv) -> tuple[socket.socket, bytes]:
    """Return a socket where the others find it, at the fewest addresses, and the job's secret."""
    secret = env.secret or secrets.token_hex(32)
    file = meeting_file(env)
    host, port = _own_address(env)
    try:
        listener = _bind(host, port)
    except OSError as error:
        raise RankFailedError(
            f"rank 0 cannot listen at {host or 'this machine'}:{port} ({error}); "
            "CPUFREE_RENDEZVOUS=HOST:PORT or file:PATH names another place",
            0,
        ) from error
    if file is not None:
        try:
            _announce(env, file, listener, secret)
        except OSError as error:
            listener.close()
            raise RankFailedError(
                f"rank 0 cannot write the file at which ranks meet ({error}); CPUFREE_RENDEZVOUS="
                "file:PATH names another one, on a file system that all machines share",
                0,
            ) from error
    return listener, secret.encode()


def forget(env: RankEnv) -> None:
    """Remove the file at which the ranks have met."""
    file = meeting_file(env)
    if file is not None:
        with contextlib.suppress(OSError):
            file.unlink()


def _own_address(env: RankEnv) -> tuple[str, int]:
    """Return where rank 0 listens: at one address of this machine, if one serves all ranks."""
    if env.rendezvous.startswith(LOCAL) or (not env.rendezvous and _is_loopback(env.host)):
        return _LOOPBACK, 0
    if env.rendezvous.startswith(_SHARED) or not env.rendezvous:
        return _outward_address(), 0
    host, port = address_of(env)
    with contextlib.suppress(OSError):
        found = socket.gethostbyname(host)
        # A machine's own name may stand for its loopback in its own table of names alone.
        if _is_loopback(found) == _is_loopback(host):
            return found, port
    return _EVERYWHERE, port


def _outward_address() -> str:
    """Return the address at which other machines know this one; all where that is not clear."""
    with contextlib.suppress(OSError):
        found = socket.gethostbyname(socket.gethostname())
        if not _is_loopback(found):
            return found
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: it asks the table of routes
        return str(probe.getsockname()[0])
    return _EVERYWHERE


def _bind(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            listener.bind((_EVERYWHERE, port))  # the name is that of something in front
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def _announce(env: RankEnv, file: Path, listener: socket.socket, secret: str) -> None:
    """Write the file in one step."""
    if not env.rendezvous.startswith((_SHARED, LOCAL)):
        _make_private(file.parent)
    address, port = listener.getsockname()[:2]
    everywhere = address == "0.0.0.0"
    content = {"machine": machine_id(), "port": port}
    content["host"] = socket.gethostname() if everywhere else address
    content["here"] = _LOOPBACK if everywhere else address
    if not env.secret:
        content["secret"] = secret
    handle, draft = tempfile.mkstemp(dir=file.parent, prefix=file.name)  # with mode 0600
    try:
        with os.fdopen(handle, "w") as out:
            json.dump(content, out)
        os.replace(draft, file)
    except OSError:
        os.unlink(draft)
        raise


def _make_private(folder: Path) -> None:
    """Make a folder of which others can neither see nor change anything."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_owner(folder, os.lstat(folder), stat.S_ISDIR)


# -- the others --


def look(env: RankEnv) -> Place:
    """Return where rank 0 is; NotAnnounced while nothing that can be trusted says so."""
    file = meeting_file(env)
    if file is None:
        host, port = address_of(env)
        return Place(host, port, env.secret.encode())
    content = _read(file, trusted=bool(env.secret))
    try:
        secret = env.secret or str(content["secret"])
        if env.rendezvous.startswith((_SHARED, LOCAL)) or not env.rendezvous:
            here = content["machine"] == machine_id()
            host, port = str(content["here" if here else "host"]), int(content["port"])
        else:
            host, port = address_of(env)
    except (KeyError, ValueError, TypeError):
        raise NotAnnounced(f"{file} does not say where rank 0 is") from None
    return Place(host, port, secret.encode())


def _read(file: Path, trusted: bool) -> dict[str, Any]:
    """Return what rank 0 has written; `trusted`: another writer is found out later."""
    with contextlib.suppress(OSError):
        os.listdir(file.parent)  # so that file systems over a network look for what is new
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotAnnounced(f"{file} is not there, which rank 0 writes") from None
    with os.fdopen(handle, "rb") as opened:
        if not trusted:
            _check_owner(file, os.fstat(handle), stat.S_ISREG)
        text = opened.read(_MOST_BYTES)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise NotAnnounced(f"{file} is no file of rank 0")
    return content


def _check_owner(path: Path, found: os.stat_result, is_kind: Any) -> None:
    """Raise NotAnnounced unless this user alone can read and change a file or folder."""
    others = stat.S_IMODE(found.st_mode) & 0o077
    if is_kind(found.st_mode) and found.st_uid == os.geteuid() and not others:
        return
    raise NotAnnounced(
        f"{path} is not this user's alone (owner {found.st_uid}, mode "
        f"{stat.S_IMODE(found.st_mode):04o}): another user may have made it; remove it, or set "
        "CPUFREE_SECRET to a random text in all ranks, and CPUFREE_RENDEZVOUS to where they meet"
    )


def _is_loopback(host: str) -> bool:
    """Return whether a host is this machine for each machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
