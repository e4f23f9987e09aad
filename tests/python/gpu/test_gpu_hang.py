"""Faults on GPUs, each named rightly by the report of a hang."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from gpus_here import NUMBERS, needs_gpu
from programs.faulty_on_gpu import Fault

import cpufree
from cpufree.compiler.emit.grid import GridText
from cpufree.errors import WaitTimeoutError
from cpufree.trace.hang import HangReport, diagnose_error
from cpufree.trace.waits import Cause

pytestmark = needs_gpu
LIMIT = 0.25  # seconds: what is waited for never comes
DEADLINE = 60.0  # compiling included
CAUSES = {
    "dropped": Cause.LOST,
    "under-counted": Cause.TOO_LOW,
    "late": Cause.LATE,
}


def relax(u, v, turns):  # type: ignore[no-untyped-def]
    largest = 0.0
    for _ in range(turns):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[1:-1, 1:-1] = 0.25 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:])
        largest = np.max(u)
    return largest


@pytest.mark.parametrize("kind", CAUSES)
@pytest.mark.parametrize(("block", "epoch"), [(0, 4), (7, 5)])
def test_a_fault_of_a_block_is_named(
    monkeypatch: pytest.MonkeyPatch, kind: str, block: int, epoch: int
) -> None:
    fault = Fault(kind, 0, block, epoch, 8 * LIMIT if kind == "late" else 0.0)
    as_it_is = GridText.on_gpu

    def on_gpu(self: GridText, traced: bool = False) -> str:
        return fault.put_into(as_it_is(self, traced))

    monkeypatch.setattr(GridText, "on_gpu", on_gpu)
    program: Any = cpufree.program(relax)
    u = np.random.default_rng(0).standard_normal((3000, 3000))  # in memory: packets are sums
    live: list[HangReport] = []
    recording = cpufree.trace.Recording(on_wait=live.append, after=0.06)
    begin = time.monotonic()
    with pytest.raises(WaitTimeoutError) as caught:
        program.run(
            (u, u.copy(), 20),
            engine="cuda_p2p",
            gpus=NUMBERS[:1],
            trace=recording,
            wait_limit=LIMIT,
        )
    found = diagnose_error(caught.value)
    assert time.monotonic() - begin < DEADLINE
    assert found.verdicts, found.text
    first = found.verdicts[0]
    assert (first.cause, first.culprit) == (CAUSES[kind], (0, block)), found.text
    assert live and live[-1].live  # told by the running kernel
    assert (0, block) in {wait.target for wait in live[-1].waits if wait.waits}, live[-1].text
