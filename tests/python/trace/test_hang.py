"""Faults of programs and networks, each named rightly by the report of a hang."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree import cpu_kernels
from cpufree.errors import WaitTimeoutError
from cpufree.trace.asked import Recording
from cpufree.trace.hang import HangReport, Verdict, _before_the_end, diagnose, diagnose_error
from cpufree.trace.waits import Cause

HEADER = Path(__file__).parents[1] / "support/faulty_kernel.hpp"
LIMIT = 0.25  # seconds: what is waited for never comes
DEADLINE = 30.0
A = cpufree.generate.poisson2d(24, 24)
CAUSES = {
    "dropped": Cause.LOST,
    "omitted": Cause.NEVER_SENT,
    "swapped": Cause.MISDIRECTED,
    "under-counted": Cause.TOO_LOW,
    "threshold": Cause.THRESHOLD,
    "killed": Cause.LEFT,
    "late": Cause.LATE,
}
LIVE = {"killed": Cause.LEFT, "late": Cause.BUSY}
"""What running kernels show besides who waits for whom."""
MESSAGES = ("dropped", "omitted", "under-counted")


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that has solves run a kernel with a fault."""
    compiled = cpu_kernels.solver_kernel

    def choose(kernel: str, fault: str) -> None:
        def changed(name: str, text: str, *more: Any) -> int:
            call = re.search(r"study_kernel<Study::trace, (.*)>;", text)
            assert call is not None
            inserted = "faulty::ring_kernel" if kernel == "ring" else None
            inserted = inserted or f"faulty::solver_kernel<{call[1]}>"
            text = text.replace(call[0], f"{inserted};")
            text = text.replace("using namespace", f"{HEADER.read_text()}\nusing namespace", 1)
            return compiled(name, text, *more)

        monkeypatch.setattr(cpu_kernels, "solver_kernel", changed)
        monkeypatch.setenv("FAULT", fault)

    return choose


def hang(
    pes: int, blocks: int, method: str = "prcg", **how: Any
) -> tuple[HangReport, list[HangReport]]:
    """Return the report of a traced solve that hangs, and those from while it did.

    On a busy machine the host may not get to look within the limit: then it hangs once more.
    """
    b = np.ones(A.shape[0])
    live: list[HangReport] = []
    recording = Recording(on_wait=live.append, after=0.06, **how)
    with cpufree.Solver(A, engine="cpu_threads", pes=pes, blocks=blocks) as solver:
        for _ in range(5):
            with pytest.raises(WaitTimeoutError) as caught:
                solver.solve(b, method=method, trace=recording, wait_limit=LIMIT)
            if live:
                break
    assert caught.value.raw_trace is not None
    return diagnose_error(caught.value), live


def case(kind: str, channel: str, pe: int, block: int, other: int, epoch: int) -> str:
    seconds = 8 * LIMIT if kind == "late" else 0.0
    return f"{kind} {channel} {pe} {block} {other} {epoch} {seconds}"


def cases() -> list[Any]:
    """Return fault, PEs, blocks, and who is to blame."""
    found = []
    for pes, epoch, blocks in ((3, 2, 1), (3, 5, 2), (4, 4, 1), (5, 3, 2)):
        for pe, step in ((0, 1), (pes - 1, 1), (1, -1)):
            block = blocks - 1
            other = (pe + step) % pes
            for kind, channel in (
                *itertools.product(MESSAGES, ("flag", "sum")),
                ("swapped", "flag"),
                ("threshold", "flag"),
                ("killed", "flag"),
                ("late", "flag"),
            ):
                fault = case(kind, channel, pe, block, other, epoch)
                found.append(pytest.param(fault, kind, pes, blocks, (pe, block), (other, block)))
    return found


def check(hung: tuple[HangReport, list[HangReport]], kind: str, blamed: Any, other: Any) -> None:
    """Assert that the first verdict names the fault and who has it, and who waited, meanwhile."""
    found, live = hung
    assert found.verdicts, found.text
    first = found.verdicts[0]
    assert first.cause is CAUSES[kind], found.text
    if kind == "threshold":
        assert (first.waiter, first.culprit, first.off_by) == (blamed, other, 2), found.text
    else:
        assert first.culprit == blamed, found.text
    if kind in (*MESSAGES, "swapped"):
        assert first.waiter[0] == other[0], found.text
    assert live and all(report.live for report in live)
    waits = {(wait.block, wait.target) for wait in live[-1].waits if wait.waits}
    assert (first.waiter, first.culprit) in waits, live[-1].text
    if kind in LIVE:
        verdicts = {(v.cause, v.culprit) for v in live[-1].verdicts}
        assert (LIVE[kind], blamed) in verdicts, live[-1].text


@pytest.mark.parametrize(("fault", "kind", "pes", "blocks", "blamed", "other"), cases())
def test_a_fault_of_a_ring_is_named(
    faulty: Any, fault: str, kind: str, pes: int, blocks: int, blamed: Any, other: Any
) -> None:
    faulty("ring", fault)
    begin = time.monotonic()
    check(hang(pes, blocks), kind, blamed, other)
    assert time.monotonic() - begin < DEADLINE


@pytest.mark.slow
@pytest.mark.parametrize("method", ["prcg", "cg"])
@pytest.mark.parametrize("kind", [*MESSAGES, "swapped"])
@pytest.mark.parametrize("epoch", [2, 5])
def test_a_fault_of_a_solver_is_named(faulty: Any, method: str, kind: str, epoch: int) -> None:
    faulty("solver", case(kind, "flag", 1, 0, 2, epoch))
    check(hang(3, 1, method), kind, (1, 0), (2, 0))


def test_what_on_wait_raises_ends_the_solve(faulty: Any) -> None:
    faulty("ring", case("dropped", "flag", 0, 0, 1, 3))

    def ends(found: HangReport) -> None:
        raise LookupError(found.text)

    with (
        cpufree.Solver(A, engine="cpu_threads", pes=3, blocks=1) as solver,
        pytest.raises(LookupError, match="of PE 1 waits for PE 0"),
    ):
        recording = Recording(on_wait=ends, after=0.06)
        solver.solve(np.ones(A.shape[0]), trace=recording, wait_limit=60.0)


def test_long_waits_are_said_where_nobody_asks(
    faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    faulty("ring", case("dropped", "flag", 0, 0, 1, 3))
    with (
        caplog.at_level("INFO", "cpufree"),
        cpufree.Solver(A, engine="cpu_threads", pes=3, blocks=1) as solver,
        pytest.raises(WaitTimeoutError),
    ):
        solver.solve(np.ones(A.shape[0]), trace=Recording(after=0.06), wait_limit=4 * LIMIT)
    assert "kernels wait:" in caplog.text and "for PE 0: halo arrival" in caplog.text


def test_of_one_iteration_in_several_messages_are_not_judged(faulty: Any) -> None:
    faulty("solver", case("dropped", "flag", 1, 0, 2, 9))
    found, live = hang(3, 1, every=4)
    assert live
    assert "one iteration in several was recorded" in found.text
    assert not {Cause.LOST, Cause.NEVER_SENT} & {v.cause for v in found.verdicts}


def wait(pe: int, to: int, state: str = "expired", seconds: float = 1.0) -> dict[str, Any]:
    return {
        "pe": pe, "block": 0, "state": state, "channel": "halo arrival", "waits_for_pe": to,
        "waits_for_block": 0, "epoch": 7, "seen": 6, "seconds": seconds,
    }  # fmt: skip


def test_a_cycle_is_named_without_a_trace() -> None:
    found = diagnose([wait(0, 1), wait(1, 2), wait(2, 0)])
    assert [v.cause for v in found.verdicts] == [Cause.CYCLE]
    assert sorted(found.cycle) == [(0, 0), (1, 0), (2, 0)]
    assert "block 0 of PE 0 waits for block 0 of PE 1" in found.text


@pytest.mark.parametrize("state", ["running", "absent"])
def test_a_dead_block_is_named(state: str) -> None:
    found = diagnose([wait(0, 1), wait(1, 0, state)])
    assert found.verdicts[0].cause is Cause.DEAD
    assert found.verdicts[0].culprit == (1, 0)


def test_what_a_late_block_waits_for_after_the_end_is_no_cause() -> None:
    late = Verdict(Cause.LATE, (1, 0), (0, 0), "reduction", "block 0 of PE 0 is late")
    own = Verdict(Cause.THRESHOLD, (0, 0), (0, 3), "local arrival", "an epoch not due")
    other = Verdict(Cause.THRESHOLD, (2, 0), (0, 3), "local arrival", "an epoch not due")
    assert _before_the_end([own, late, other]) == [late, other]


def test_a_late_block_whose_partner_has_died_is_not_the_cause() -> None:
    late, dead = wait(0, 1, seconds=60.0), wait(1, 2, seconds=20.0)
    found = diagnose([late, dead, wait(2, 0, "running")])
    assert found.verdicts[0].cause is Cause.DEAD
    assert Cause.LATE in {v.cause for v in found.verdicts}


def test_blocks_that_wait_for_the_same_are_one_line() -> None:
    blocks = [{**wait(1, 0), "block": k} for k in range(132)]
    found = diagnose([*blocks, wait(0, 1, "finished")])
    assert "132 blocks of PE 1 wait for PE 0: halo arrival, epoch 7, last seen 6" in found.text


def test_a_hang_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    diagnose([wait(0, 1), wait(1, 2), wait(2, 0)]).save(str(tmp_path / "hang.svg"))
    assert "</svg>" in (tmp_path / "hang.svg").read_text()


def test_the_message_of_a_traced_hang_has_the_report(faulty: Any) -> None:
    faulty("ring", case("dropped", "flag", 0, 0, 1, 3))
    with (
        cpufree.Solver(A, engine="cpu_threads", pes=3, blocks=1) as solver,
        pytest.raises(WaitTimeoutError, match="the message is lost"),
    ):
        solver.solve(np.ones(A.shape[0]), method="prcg", trace=True, wait_limit=LIMIT)
