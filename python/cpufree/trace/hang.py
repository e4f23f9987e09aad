"""Who waited for whom when a kernel was given up, and who is to blame.

What blocks waited for is always known (WaitTimeoutError.blocks): it gives the wait-for graph, its
cycles, and blocks that are waited for and do not wait themselves. Why a message is missing only a
trace can tell: whether it was sent, to whom, and with which epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpufree.errors import WaitTimeoutError
from cpufree.text import counted, time_text
from cpufree.trace.issued import Issued
from cpufree.trace.records import Kind, Trace
from cpufree.trace.waits import Block, Cause, Wait


@dataclass(frozen=True)
class Verdict:
    """Why one block waited in vain for another one."""

    cause: Cause
    waiter: Block
    culprit: Block
    channel: str
    words: str
    off_by: int = 0
    """Epochs between what was waited for and what was seen, or is due."""


@dataclass(frozen=True)
class HangReport:
    """The wait-for graph of a kernel that was given up, and what it says."""

    waits: tuple[Wait, ...]
    verdicts: tuple[Verdict, ...]
    """The causes, the likeliest first."""
    cycle: tuple[Block, ...] = ()
    """Blocks each of which waits for the next one, and the last one for the first."""
    traced: bool = False
    sampled: bool = False
    """Whether a part of the iterations was recorded: then nothing is known of single messages."""

    @property
    def live(self) -> bool:
        """Whether kernels still ran."""
        return any(wait.state == "waiting" for wait in self.waits)

    @property
    def text(self) -> str:
        """The report in words: causes, blocks grouped by what they wait for, the cycle."""
        lines = [verdict.words for verdict in self.verdicts]
        lines += groups(self.waits)
        if self.cycle:
            names = [name(block) for block in (*self.cycle, self.cycle[0])]
            lines.append("cycle: " + " waits for ".join(names))
        unknown = "whether messages were sent is not known"
        if self.live:
            lines.append(f"{unknown} before the wait is given up")
        elif not self.traced:
            lines.append(f"{unknown}: trace the call (trace=True)")
        elif self.sampled:
            lines.append(f"{unknown}: one iteration in several was recorded")
        return "\n".join(lines)

    def save(self, path: str) -> None:
        """Draw the PEs and who waits for whom, the cycle in red: .png, .svg or .pdf.

        Raises UnsupportedError where Matplotlib is not installed.
        """
        from cpufree.trace.picture import save_hang  # a heavy import

        save_hang(edges(self), [block[0] for block in self.cycle], path)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "verdicts": [{**vars(v), "cause": v.cause.value} for v in self.verdicts],
            "waits": [vars(wait) for wait in self.waits],
            "cycle": [list(block) for block in self.cycle],
            "traced": self.traced,
            "live": self.live,
        }


def name(block: Block) -> str:
    """Return a block in words."""
    return f"block {block[1]} of PE {block[0]}"


def diagnose(blocks: Sequence[Mapping[str, Any]], trace: Trace | None = None) -> HangReport:
    """Return what kept a kernel from going on.

    Parameters
    ----------
    blocks
        As WaitTimeoutError.blocks has them: what each block did when all was given up. Or as
        running kernels publish it (Recording.on_wait).
    trace
        WaitTimeoutError.trace, where the call was traced: why messages are missing.

    Returns
    -------
    HangReport
        Causes, the wait-for graph, and a cycle, if there is one.

    Examples
    --------
    >>> waits = {"channel": "halo arrival", "epoch": 5, "seen": 4, "seconds": 60.0}
    >>> one = {"pe": 0, "block": 0, "state": "expired", "waits_for_pe": 1, "waits_for_block": 0}
    >>> two = {"pe": 1, "block": 0, "state": "finished", "waits_for_pe": -1, "waits_for_block": -1}
    >>> found = cpufree.trace.diagnose([{**one, **waits}, {**two, **waits}])
    >>> found.verdicts[0].cause.value
    'left its kernel'
    """
    waits = tuple(Wait.of(raw) for raw in blocks)
    known = {wait.block: wait for wait in waits}
    sampled = trace is not None and bool(len(trace.select(Kind.LEFT_OUT)))
    issued = None if trace is None or sampled else Issued(trace)
    judged = (_judge(wait, known, issued) for wait in waits if wait.waits)
    verdicts = _before_the_end([verdict for verdict in judged if verdict is not None])
    verdicts.sort(key=lambda v: _RANK.index(v.cause))
    cycle = find_cycle(known)
    if cycle and all(v.cause is Cause.BUSY for v in verdicts):
        first = known[cycle[0]]
        words = f"{counted(len(cycle), 'block')} wait for one another"
        verdicts.insert(0, Verdict(Cause.CYCLE, first.block, first.target, first.channel, words))
    return HangReport(waits, tuple(_each_once(verdicts)), cycle, trace is not None, sampled)


def diagnose_error(error: WaitTimeoutError) -> HangReport:
    """Return what kept a kernel from going on that ended with this error.

    Parameters
    ----------
    error
        Where its call was traced, the report tells which messages were sent.

    Returns
    -------
    HangReport
        `text` has it in words.
    """
    raw = error.raw_trace
    return diagnose(error.blocks, None if raw is None else Trace.of_core(raw, {"one_clock": True}))


# Of causes that are found together the first explains the others.
_RANK = (
    *(Cause.DEAD, Cause.STOPPED, Cause.LEFT, Cause.MISDIRECTED, Cause.LOST, Cause.TOO_LOW),
    *(Cause.THRESHOLD, Cause.LATE, Cause.NEVER_SENT, Cause.BUSY, Cause.CYCLE),
)


# What giving up explains: messages that others would have sent later.
_DUE_LATER = (Cause.THRESHOLD, Cause.NEVER_SENT)


def _before_the_end(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Leave out what late blocks waited for, where others, who had given up, owed it later."""
    late = {v.culprit for v in verdicts if v.cause is Cause.LATE and v.culprit != v.waiter}
    return [v for v in verdicts if v.cause not in _DUE_LATER or v.waiter not in late]


def _judge(wait: Wait, known: Mapping[Block, Wait], issued: Issued | None) -> Verdict | None:
    """Return why a wait was in vain; None where that is not due to whom it waits for."""
    target = known.get(wait.target)

    def verdict(cause: Cause, words: str, off_by: int = 0) -> Verdict:
        return Verdict(cause, wait.block, wait.target, wait.channel, words, off_by)

    what = _awaited(wait)
    whom = name(wait.target)
    if wait.state == "waiting":
        return _judge_live(wait, target, verdict)
    if target is None or target.state == "absent":
        return verdict(Cause.DEAD, f"{whom} never started, or its process has died ({what})")
    if target.state == "running":
        return verdict(Cause.DEAD, f"{whom} has died, or hangs in its own work ({what})")
    found = None if issued is None else issued.explain(wait)
    gone = target.state == "finished" and found is not None and found[0] == Cause.NEVER_SENT.value
    if found is not None and not gone:
        cause, words, off_by = found
        return verdict(Cause(cause), f"{words} ({what})", off_by)
    if target.state == "finished":
        words = f"{whom} has left its kernel, and {name(wait.block)} still waits for it ({what})"
        return verdict(Cause.LEFT, words)
    if 2.0 * target.seconds < wait.seconds:
        words = f"{whom} is late: it has waited for {time_text(target.seconds)} only"
        return verdict(Cause.LATE, f"{words}; it was slow, or stopped for a while ({what})")
    return None


def _awaited(wait: Wait) -> str:
    what = f"{wait.channel}, epoch {wait.epoch}"
    if wait.state == "waiting":
        return f"{what}, for {time_text(wait.seconds)} so far"
    return f"{what}, last seen {wait.seen}"


def _judge_live(
    wait: Wait, target: Wait | None, verdict: Callable[[Cause, str], Verdict]
) -> Verdict | None:
    """Return what keeps a wait of a running kernel from ending; None where that is not seen."""
    if target is None:  # of a process whose blocks are not seen from here
        return None
    whom, what = name(target.block), _awaited(wait)
    if target.state == "stopped":
        silent = time_text(target.seconds)
        words = f"the process of PE {target.block[0]} has given no sign of life for {silent}"
        return verdict(Cause.STOPPED, f"{words}: it is stopped, or was killed ({what})")
    if target.state == "finished":
        return verdict(Cause.LEFT, f"{whom} has left its kernel ({what})")
    if target.state == "absent":
        return verdict(Cause.DEAD, f"{whom} has not started ({what})")
    if target.state == "running":
        return verdict(Cause.BUSY, f"{whom} waits for nobody: it computes, or hangs ({what})")
    return None


def _each_once(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return verdicts without those that say the same of the same pair."""
    found: dict[tuple[Cause, Block, Block, str], Verdict] = {}
    for verdict in verdicts:
        key = (verdict.cause, verdict.waiter, verdict.culprit, verdict.channel)
        found.setdefault(key, verdict)
    return [*found.values()]


def find_cycle(known: Mapping[Block, Wait]) -> tuple[Block, ...]:
    """Return a cycle of the wait-for graph, () where there is none: a block waits for one other."""
    done: set[Block] = set()
    for first in known:
        path: dict[Block, int] = {}
        block = first
        while block in known and known[block].waits and block not in done:
            if block in path:
                return tuple([*path][path[block] :])
            path[block] = len(path)
            block = known[block].target
        done.update(path)
    return ()


def groups(waits: Sequence[Wait]) -> list[str]:
    """Return one line for all blocks of a PE that wait for the same."""
    found: dict[tuple[Any, ...], list[Wait]] = {}
    for wait in waits:
        if wait.waits:
            seen = None if wait.state == "waiting" else wait.seen
            key = (wait.block[0], wait.target[0], wait.channel, wait.epoch, seen)
            found.setdefault(key, []).append(wait)
    lines = []
    for same in sorted(found.values(), key=len, reverse=True):
        verb = "waits" if len(same) == 1 else "wait"
        longest = max(same, key=lambda wait: wait.seconds)
        lines.append(
            f"{counted(len(same), 'block')} of PE {longest.block[0]} {verb} for PE "
            f"{longest.target[0]}: {_awaited(longest)}"
        )
    others = Counter(wait.state for wait in waits if not wait.waits)
    return [*lines, *(f"{counted(n, 'block')}: {state}" for state, n in others.items())]


def edges(report: HangReport) -> np.ndarray:
    """Return how many blocks of each PE (row) wait for each other one: for pictures."""
    pes = 1 + max((max(w.block[0], w.target[0]) for w in report.waits), default=0)
    found = np.zeros((pes, pes), np.int64)
    for wait in report.waits:
        if wait.waits:
            found[wait.block[0], wait.target[0]] += 1
    return found
