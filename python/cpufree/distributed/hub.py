"""The hub of a team, in the process of rank 0: it collects what all give, and says who has failed.

A member is a connection and the thread that reads from it: one that has proved to be of the job,
was welcomed, and has come (who waits too long for the welcome knocks again, by another connection).
At most one call of each member is open at any time, so the calls that are open together are one
round. The first failure decides: all members get the same verdict, and which one of them is to tell
the user.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cpufree.distributed import facts as known
from cpufree.distributed import handshake, wire
from cpufree.distributed.ends import too_early
from cpufree.distributed.facts import FAILED

# Seconds that one member may come later to a round than another: far beyond any difference between
# ranks that do the same, which may read a matrix meanwhile. Members may ask for less.
CALL_LIMIT = 1800.0
_TICK = 0.1
# Seconds that count of a longer pause of the hub: while its process was stopped, or its threads
# were kept waiting, it could not hear from any rank.
_LONGEST_TICK = 1.0
ENDED = "has ended without a word: it was killed, or has crashed"
# Connections that may knock at a time, beyond two of each rank: each has a thread.
_STRANGERS = 64


@dataclass
class _Member:
    connection: socket.socket
    facts: dict[str, Any]
    sending: threading.Lock = field(default_factory=threading.Lock)
    given: list[memoryview] | None = None  # in the open round

    def tell(self, facts: dict[str, Any], data: bytes = b"") -> None:
        """Send; where that fails, the thread that reads notices, too."""
        with self.sending, contextlib.suppress(OSError):
            wire.send(self.connection, facts, data)

    def name(self) -> str:
        return f"{self.facts['host']}, process {self.facts['pid']}"


class Hub:
    """Serves a team; ends once all members have left, or the team has failed."""

    def __init__(
        self,
        listener: socket.socket,
        ranks: int,
        key: bytes,
        version: str,
        join_limit: float,
        ended: Callable[[], Mapping[int, str]] = dict,
    ) -> None:
        """Serve `ranks` members, which know the key; `ended` tells which ended before they came."""
        self._ended_early = ended
        self._listener = listener
        self._ranks, self._key, self._version = ranks, key, version
        self._knocking = threading.BoundedSemaphore(2 * ranks + _STRANGERS)
        self._join_limit = join_limit
        self._latest = time.monotonic() + join_limit
        self._changed = threading.Condition()
        self._members: dict[int, _Member] = {}  # those that are connected
        self._complete = False
        # Rank 0 is this process: it comes in any case, perhaps after a rank that does not fit, and
        # must find the hub there to learn why the team has failed.
        self._first_came = False
        self._left: set[int] = set()
        self._what, self._to = "", "all"  # of the open round
        self._open = False  # a round is
        self._limit = self._patience = CALL_LIMIT  # seconds for it, and those that are left
        self._looked = time.monotonic()  # at the clock
        self._verdict: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._serve, name="cpufree hub", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the hub to end, so long at most."""
        self._thread.join(seconds)

    def _serve(self) -> None:
        self._listener.settimeout(_TICK)
        while not self._ended():
            with contextlib.suppress(TimeoutError, OSError):
                connection, _ = self._listener.accept()
                connection.settimeout(None)
                self._follow(connection)
            with self._changed:
                self._look_at_clock()
        self._listener.close()

    def _follow(self, connection: socket.socket) -> None:
        """Read from a connection, in a thread of its own unless Python ends and starts none."""
        if not self._knocking.acquire(blocking=False):
            wire.hang_up(connection)  # a rank comes again
            return
        reader = threading.Thread(target=self._read, args=(connection,), daemon=True)
        try:
            reader.start()
        except RuntimeError:
            self._read(connection)

    def _ended(self) -> bool:
        with self._changed:
            all_left = len(self._left) == self._ranks
            all_told = self._first_came or time.monotonic() > self._latest
            return all_left or (self._verdict is not None and not self._members and all_told)

    def _look_at_clock(self) -> None:
        """Fail where a member is late; the lock is held."""
        now = time.monotonic()
        if not self._complete and self._verdict is None:
            for rank, how in self._ended_early().items():
                if rank not in self._members:
                    self._fail(rank, too_early(how))
        if not self._complete and self._verdict is None and now > self._latest:
            missing = [rank for rank in range(self._ranks) if rank not in self._members]
            self._fail(
                missing[0],
                f"has not come within {self._join_limit:g} s"
                + (f", nor have ranks {_spell(missing[1:])}" if missing[1:] else "")
                + "; was it started, and does it reach rank 0? CPUFREE_JOIN_LIMIT gives more time",
            )
        self._patience -= min(now - self._looked, _LONGEST_TICK)
        self._looked = now
        if self._open and self._patience < 0.0 and self._verdict is None:
            late = sorted(rank for rank, member in self._members.items() if member.given is None)
            message = unanswered(self._members[late[0]].name(), self._limit, late[1:])
            self._judge(late[0], f"rank {late[0]} {message}", FAILED, late)

    def _read(self, connection: socket.socket) -> None:
        """Follow one connection to its end, whatever comes: the hub must notice that end."""
        rank = -1
        try:
            try:
                wire.prepare(connection)
                said = handshake.welcome(connection, self._key, self._join_limit)
                rank = self._join(connection, said)
            finally:
                self._knocking.release()
            while rank >= 0:
                facts, data = wire.receive(connection)
                with self._changed:
                    if not self._take(rank, facts, data):
                        break
        except Exception:
            pass  # the connection has ended, or speaks of something else
        finally:
            with self._changed:
                for key, member in list(self._members.items()):
                    if member.connection is connection:
                        del self._members[key]
                        self._fail(key, f"({member.name()}) {ENDED}")
            wire.hang_up(connection)

    def _join(self, connection: socket.socket, facts: dict[str, Any]) -> int:
        """Take a member in; return its rank, -1 where it does not fit."""
        rank, ranks = int(facts["rank"]), int(facts["ranks"])
        with self._changed:
            member = _Member(connection, facts)
            awaited = rank == 0 and not self._first_came
            self._first_came = self._first_came or awaited
            if self._verdict is not None:
                teller = self._verdict["teller"] if awaited else -1
                member.tell({"do": "end", **self._verdict, "teller": teller})
                return -1
            problem = ""
            if ranks != self._ranks:
                problem = f"is one of {ranks} ranks, but rank 0 one of {self._ranks}"
            elif facts["version"] != self._version:
                problem = f"has cpufree {facts['version']}, but rank 0 has {self._version}"
            elif rank in self._members:
                problem = f"is there twice: as {self._members[rank].name()}, and {member.name()}"
            if self._complete:  # a latecomer must not end a team that works
                problem = problem or f"has come, but all {self._ranks} ranks were there before"
                hint = "is it of another run? CPUFREE_JOB gives each run a name of its own"
                message = f"rank {rank} {problem}; {hint}"
                failure = {"rank": rank, "message": message, "code": FAILED, "teller": rank}
                member.tell({"do": "end", **failure})
                return -1
            if problem:
                self._members[self._ranks + rank] = member  # to be informed as well
                self._fail(rank, problem + "; start all ranks in the same way")
                return -1
            self._members[rank] = member
            if len(self._members) == self._ranks:
                self._complete = True
                all_facts = [self._members[k].facts for k in range(self._ranks)]
                for one in self._members.values():
                    one.tell({"do": "begin", "members": all_facts})
            return rank

    def _take(self, rank: int, facts: dict[str, Any], data: bytes) -> bool:
        """Act on a message of a member; False once it has left. The lock is held."""
        do = facts["do"]
        if do == "fail":
            about = known.rank_in(self._ranks, facts["about"], rank)
            silent = [about] if facts.get("silent") else []
            self._judge(about, facts["message"], facts["code"], silent)
        elif do == "leave":
            self._left.add(rank)
            self._members.pop(rank, None)
            if not self._complete:
                self._fail(rank, "has left before all ranks had come")
            elif self._open:
                self._fail(rank, f"has left, but others have come to '{self._what}'")
            return False
        elif do == "stop" and 0 in self._members:
            self._members[0].tell({"do": "stop"})
        elif do == "call":
            parts, begin = [], 0
            for size in known.sizes(facts["sizes"], data):
                parts.append(memoryview(data)[begin : begin + size])
                begin += size
            limit = float(facts.get("limit", CALL_LIMIT))
            limit = min(CALL_LIMIT, limit) if math.isfinite(limit) else CALL_LIMIT
            self._call(rank, known.clean(facts["what"]), str(facts["to"]), parts, limit)
        return True

    def _call(
        self, rank: int, what: str, to: str, parts: list[memoryview], limit: float = CALL_LIMIT
    ) -> None:
        if self._verdict is not None:
            return
        if self._left:
            self._fail(min(self._left), f"has left, but rank {rank} has come to '{what}'")
            return
        if not self._open:
            self._what, self._to, self._open = what, to, True
            self._limit = self._patience = CALL_LIMIT
        elif (what, to) != (self._what, self._to):
            self._fail(
                rank,
                f"has come to '{what}', but others to '{self._what}': do all ranks do the same?",
            )
            return
        if len(parts) != (self._ranks if to == "each" else 1):
            self._fail(rank, f"has given {len(parts)} parts to '{what}'")
            return
        self._members[rank].given = parts
        if limit < self._patience:
            self._limit = self._patience = limit
        given = [self._members[k].given for k in sorted(self._members)]
        if len(given) < self._ranks or any(one is None for one in given):
            return
        all_parts = [one for one in given if one is not None]
        for k, member in self._members.items():
            member.given = None
            mine = [one[k if to == "each" else 0] for one in all_parts]
            mine = mine if k == 0 or to != "first" else []
            member.tell({"do": "answer", "sizes": [len(part) for part in mine]}, b"".join(mine))
        self._open = False

    def _fail(self, rank: int, what: str) -> None:
        """Find that a rank has failed; the lock is held."""
        self._judge(rank, f"rank {rank} {what}", FAILED)

    def _judge(self, rank: int, message: object, code: object, silent: Sequence[int] = ()) -> None:
        """Tell all members the verdict, unless there is one; the lock is held."""
        if self._verdict is not None:
            return
        able = self._members.keys() - set(silent)
        teller = min(able, default=-1) if self._first_came else 0
        self._verdict = {"rank": rank, "message": known.clean(message), "teller": teller}
        self._verdict["code"] = known.exit_code(code)
        for member in self._members.values():
            member.tell({"do": "end", **self._verdict})
        for one in silent:  # informed, but not waited for
            self._members.pop(one, None)


def unanswered(name: str, seconds: float, others: list[int]) -> str:
    """Return what is said of a rank, and of others, that a call has waited for in vain."""
    return (
        f"({name}) has not answered for {seconds:g} s"
        + (f", nor have ranks {_spell(others)}" if others else "")
        + ": it may be stopped, or stuck in the driver or the file system"
    )


def _spell(ranks: list[int]) -> str:
    """Return the first few numbers of a list."""
    shown = ", ".join(map(str, ranks[:8]))
    return shown + (" and others" if len(ranks) > 8 else "")
