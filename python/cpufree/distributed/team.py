"""A team of processes as seen by one of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.distributed import facts as known
from cpufree.distributed import wire
from cpufree.distributed.facts import FAILED, INTERRUPTED
from cpufree.distributed.hub import CALL_LIMIT, ENDED, Hub, unanswered
from cpufree.distributed.pulse import Pulse, watched_by
from cpufree.errors import RankFailedError, WaitTimeoutError

# Seconds that a call which cannot be interrupted, of a library that waits for a rank that has
# failed, gets to end; then the process does.
GRACE = 5.0
_VERDICT_SECONDS = 3.0
_LEAVING_SECONDS = 5.0

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Verdict:
    """Why a team has ended: the same for all of its members."""

    rank: int
    message: str
    code: int
    teller: int
    """The rank that tells the user."""


class Team:
    """The members do the same, in the same order; calls return once all have made them.

    Calls raise RankFailedError in all members where one has failed, or its process has ended.
    """

    def __init__(self, connection: socket.socket, rank: int, ranks: int, hub: Hub | None) -> None:
        self.rank, self.size = rank, ranks
        self.members: list[dict[str, Any]] = []
        """What each member has said of itself, by rank."""
        self._connection, self._hub = connection, hub
        self._answers: queue.SimpleQueue[tuple[list[int], bytes] | None] = queue.SimpleQueue()
        self._verdict: Verdict | None = None
        self._judged = threading.Event()
        self._begun = threading.Event()
        self._sending, self._calling = threading.Lock(), threading.Lock()
        self._busy = 0
        self._code_of: Callable[[Exception], int] | None = None
        self._leaving = False
        self._pulse: Pulse | None = None
        self.asked_to_stop = False
        """Whether a member has asked to stop what all work at."""
        threading.Thread(target=self._listen, name="cpufree team", daemon=True).start()

    # -- what all members call together --

    def begin(self, seconds: float) -> None:
        """Wait until all have come."""
        if not self._begun.wait(seconds) or self._verdict is not None:
            if self._verdict is None:
                message = f"rank 0 has not said within {seconds:g} s that all ranks have come"
                self._verdict = Verdict(0, message, FAILED, self.rank)
            raise self.failure()
        watched = watched_by(self.rank, self.members)
        self._pulse = Pulse(watched, self._may_wait, self._note_stopped)

    def all_gather(self, what: str, data: bytes, limit: float = CALL_LIMIT) -> list[bytes]:
        """Return what all give, by rank. `what` names the call, for messages.

        Who comes `limit` seconds later than another is taken for lost.
        """
        return self._call(what, "all", [data], limit)

    def gather(self, what: str, data: bytes) -> list[bytes]:
        """Return what all give at rank 0, an empty list elsewhere."""
        return self._call(what, "first", [data])

    def exchange(self, what: str, parts: Sequence[bytes]) -> list[bytes]:
        """Return what all have sent to this one, by rank; `parts` goes to one rank each."""
        return self._call(what, "each", parts)

    def barrier(self, what: str) -> None:
        """Return once all have come."""
        self._call(what, "first", [b""])

    def from_first(self, what: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the arrays that rank 0 makes, in all members."""
        mine = _pack(make()) if self.rank == 0 else b""
        return _unpack(self.all_gather(what, mine)[0])

    def tell_all(self, what: str, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the facts of all members, by rank; what JSON can hold."""
        return [json.loads(text) for text in self.all_gather(what, json.dumps(facts).encode())]

    def agree(self, what: str, facts: Mapping[str, Any]) -> None:
        """Raise RankFailedError in all members unless all give the same facts."""
        all_facts = self.tell_all(what, facts)
        for rank, theirs in enumerate(all_facts):
            for name, value in all_facts[0].items():
                if theirs.get(name) != value:
                    raise RankFailedError(
                        f"rank {rank} has another {name} than rank 0, {theirs.get(name)!r} instead "
                        f"of {value!r}: all ranks must be given the same",
                        rank,
                    )

    # -- who they are --

    @property
    def size_here(self) -> int:
        """How many members are on this machine."""
        return len(self.ranks_here())

    @property
    def local_rank(self) -> int:
        """Which of the members on this machine this one is."""
        said = self.members[self.rank].get("local_rank")
        return self.ranks_here().index(self.rank) if said is None else int(said)

    def ranks_here(self) -> list[int]:
        """Return the ranks on this machine."""
        mine = self.members[self.rank]["machine"]
        return [rank for rank, member in enumerate(self.members) if member["machine"] == mine]

    # -- the end --

    def check(self) -> None:
        """Raise RankFailedError where the team has failed."""
        if self._verdict is not None:
            raise self.failure()

    def failure(self) -> RankFailedError:
        """Return the error for the verdict."""
        assert self._verdict is not None
        return RankFailedError(self._verdict.message, self._verdict.rank)

    def fail(
        self, message: str, code: int = FAILED, about: int | None = None, silent: bool = False
    ) -> Verdict:
        """Say that this member has failed, and return what became of that.

        With `about`, it is that rank which has failed, and the message begins with it; `silent`: it
        can neither tell of that nor leave.
        """
        if about is None:
            about, message = self.rank, f"rank {self.rank}: {message}"
        if self._verdict is None:
            facts = {"do": "fail", "about": about, "message": message, "code": code}
            with contextlib.suppress(OSError), self._sending:
                wire.send(self._connection, facts | {"silent": silent})
            self._judged.wait(_VERDICT_SECONDS)
        if self._verdict is None:
            self._verdict = Verdict(about, message, code, self.rank)
        return self._verdict

    @contextlib.contextmanager
    def working(self, code_of: Callable[[Exception], int] | None = None) -> Iterator[None]:
        """Mark work that waits for others, in which an error of one member ends that of all.

        `code_of` gives the exit code for an error, here and in the work within.
        """
        self.check()
        self._busy += 1
        before = self._code_of
        self._code_of = code_of or before
        try:
            yield
        except RankFailedError as error:
            if self._verdict is None:  # all have found the same, and say so together
                self.fail(str(error), about=error.rank)
            raise
        except BaseException as error:
            code = FAILED
            if self._code_of is not None and isinstance(error, Exception):
                code = self._code_of(error)
            if isinstance(error, WaitTimeoutError):  # in all members, about one of them
                late = late_rank(error.waits, self.rank)
                self.fail(f"rank {late} was waited for: {error}", code, about=late)
            elif isinstance(error, KeyboardInterrupt):
                self.fail("interrupted", INTERRUPTED)
            else:
                self.fail(" ".join(str(error).split()) or type(error).__name__, code)
            raise
        finally:
            self._code_of = before
            self._busy -= 1

    def ask_to_stop(self) -> None:
        """Have rank 0 end what all work at, and keep what there is."""
        with contextlib.suppress(OSError), self._sending:
            wire.send(self._connection, {"do": "stop"})

    @contextlib.contextmanager
    def limited(self, seconds: float, patience: float) -> Iterator[None]:
        """Mark work in which, after N seconds, no stopped member is waited for; 0: ever.

        `patience`: seconds for which members wait for one another, stopped or not.
        """
        if self._pulse is not None:
            self._pulse.patience = patience
            if seconds > 0.0:
                self._pulse.latest = time.monotonic() + seconds
        try:
            yield
        finally:
            if self._pulse is not None:
                self._pulse.latest = self._pulse.patience = float("inf")

    def leave(self) -> None:
        """End this member's part, once and for all."""
        if self._leaving:
            return
        self._leaving = True
        if self._pulse is not None:
            self._pulse.end()
        with contextlib.suppress(OSError), self._sending:
            wire.send(self._connection, {"do": "leave"})
        if self._hub is not None:
            self._hub.wait(_LEAVING_SECONDS)
        wire.hang_up(self._connection)

    # -- within --

    def _call(
        self, what: str, to: str, data: Sequence[bytes], limit: float = CALL_LIMIT
    ) -> list[bytes]:
        limit = min(limit, CALL_LIMIT)
        with self._calling:
            self.check()
            with self._sending:
                sizes = [len(part) for part in data]
                asked = {"do": "call", "what": what, "to": to, "sizes": sizes, "limit": limit}
                try:
                    wire.send(self._connection, asked, b"".join(data))
                except OSError:
                    self._judged.wait(_VERDICT_SECONDS)
                    self.check()
            try:
                answer = self._answers.get(timeout=limit + GRACE)
            except queue.Empty:
                answer = None
        if answer is None:
            if self._verdict is None:
                message = f"rank 0 {unanswered(self._name_of(0), limit + GRACE, [])}"
                self._lose_hub(message, min(1, self.size - 1))
            raise self.failure()
        sizes, together = answer
        parts, begin = [], 0
        for size in sizes:
            parts.append(together[begin : begin + size])
            begin += size
        return parts

    def _may_wait(self) -> bool:
        """Return whether this member may be waiting for others."""
        return self._busy > 0 or self._calling.locked()

    def _note_stopped(self, rank: int, how: str) -> None:
        """Note that a member on this machine is stopped; of rank 0, all here find the same."""
        if self._verdict is not None:
            return
        message = f"rank {rank} ({self._name_of(rank)}) {how}"
        if rank == 0:
            self._lose_hub(message, min(k for k in self.ranks_here() if k != 0))
        else:
            self.fail(message, about=rank, silent=True)

    def _lose_hub(self, message: str, teller: int) -> None:
        """Note that rank 0 does not answer; the others find the same, and one of them tells."""
        facts = {"do": "fail", "about": 0, "message": message, "code": FAILED}
        with contextlib.suppress(OSError), self._sending:
            wire.send(self._connection, facts)  # for when it goes on
        self._judge(Verdict(0, message, FAILED, teller))

    def _name_of(self, rank: int) -> str:
        return f"{self.members[rank]['host']}, process {self.members[rank]['pid']}"

    def _listen(self) -> None:
        """Take what the hub sends, until the end."""
        try:
            while True:
                facts, data = wire.receive(self._connection)
                if facts["do"] == "answer":
                    self._answers.put((known.sizes(facts["sizes"], data), data))
                elif facts["do"] == "begin":
                    self.members = known.members(facts["members"], self.size)
                    self._begun.set()
                elif facts["do"] == "stop":
                    self.asked_to_stop = True
                elif facts["do"] == "end":
                    self._judge(_verdict_of(facts, self.size))
                    return
        except (OSError, KeyError, ValueError):
            if not self._leaving:
                who = f" ({self.members[0]['host']})" if self.members else ""
                self._judge(Verdict(0, f"rank 0{who} {ENDED}", FAILED, min(1, self.size - 1)))

    def _judge(self, verdict: Verdict) -> None:
        """Note the end; wake who waits, and end the process if it does not."""
        self._verdict = self._verdict or verdict
        self._judged.set()
        self._begun.set()
        self._answers.put(None)
        if not self._leaving:
            timer = threading.Timer(GRACE, self._give_up)
            timer.daemon = True
            timer.start()

    def _give_up(self) -> None:
        """End the process if it still works for a team that has failed: it would wait forever."""
        if self._busy == 0 or self._verdict is None:
            return
        if self._verdict.teller == self.rank:
            print(f"cpufree: error: {self._verdict.message}", file=sys.__stderr__, flush=True)
        os._exit(self._verdict.code)


def _verdict_of(facts: Mapping[str, Any], ranks: int) -> Verdict:
    """Return what the hub says about the end."""
    rank, teller = (known.rank_in(ranks, facts[name], -1) for name in ("rank", "teller"))
    return Verdict(rank, known.clean(facts["message"]), known.exit_code(facts["code"]), teller)


def late_rank(waits: Sequence[Mapping[str, Any]], missing: int) -> int:
    """Return which rank kept the others waiting, from who waited for whom; `missing`: no rank did.

    That is one which did not wait itself, or less than half as long as others for it; else the one
    that was waited for longest.
    """
    longest: dict[int, float] = {}
    for wait in waits:
        longest[wait["pe"]] = max(longest.get(wait["pe"], 0.0), wait["seconds"])
    ordered = sorted(waits, key=lambda wait: -wait["seconds"])
    for wait in ordered:
        if 2.0 * longest.get(wait["waits_for_pe"], 0.0) < wait["seconds"]:
            return int(wait["waits_for_pe"])
    return int(ordered[0]["waits_for_pe"]) if ordered else missing


def _pack(arrays: Arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _unpack(data: bytes) -> Arrays:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
