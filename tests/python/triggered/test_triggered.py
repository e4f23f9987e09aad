"""Triggered operations from Python: small programs on CPU threads, reports and errors."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from cpufree import triggered
from cpufree.errors import InvalidInputError, TriggerError, UnsupportedError, WaitTimeoutError

BACK_ENDS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name in triggered.missing_back_ends(),
            reason=triggered.missing_back_ends().get(name, ""),
        ),
    )
    for name in triggered.BACK_ENDS
]


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_put_of_two_blocks_arrives_before_the_kernel_ends(back_end: str) -> None:
    with triggered.Domain(pes=2, blocks=2, back_end=back_end) as domain:
        source, target = domain.buffer("source", 8), domain.buffer("target", 8)
        result = domain.buffer("result", 8)
        domain.put(7, source, target, pe=0, to=1, threshold=2, signal=3)
        program = domain.program()
        for block in range(2):
            program.block(0, block).store(source.at(4 * block, 4), 1.0 + block).trigger(7)
        program.block(1).wait_signal(3, origin=0).copy(target, result)
        domain.run(program)
        assert result.on(1).tolist() == [1.0] * 4 + [2.0] * 4


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_get_brings_values_of_another_pe(back_end: str) -> None:
    with triggered.Domain(pes=2, back_end=back_end) as domain:
        source, target = domain.buffer("source", 4), domain.buffer("target", 4)
        source.on(1)[:] = [1.0, 2.0, 3.0, 4.0]
        domain.get(0, source.at(1, 2), target.at(0, 2), pe=0, origin=1)
        program = domain.program()
        program.block(0).trigger(0).wait_done(0)
        domain.run(program)
        assert target.on(0).tolist() == [2.0, 3.0, 0.0, 0.0]


def test_triggers_may_come_before_the_post() -> None:
    with triggered.Domain(pes=2) as domain:
        source, target = domain.buffer("source", 1), domain.buffer("target", 1)
        early = domain.program()
        early.block(0).store(source, 5.0).trigger(0)
        domain.run(early)
        domain.put(0, source, target, pe=0, to=1, signal=0)
        late = domain.program()
        late.block(1).wait_signal(0)
        domain.run(late)
        assert target.on(1).tolist() == [5.0]


def test_epochs_take_turns_with_two_buffers() -> None:
    with triggered.Domain(pes=2) as domain:
        source, target = domain.buffer("source", 2), domain.buffer("target", 2)
        seen = domain.buffer("seen", 6)
        domain.put(0, source.at(0, 1), target.at(0, 1), pe=0, to=1, epochs=6, slots=2, signal=0)
        domain.put(1, source.at(0, 0), target.at(0, 0), pe=1, to=0, epochs=6, signal=0)
        program = domain.program()
        for epoch in range(6):
            sender, receiver = program.block(0), program.block(1)
            if epoch >= 2:
                sender.wait_done(0, epoch - 2).wait_signal(0, epoch - 2, origin=1)
            sender.store(source.at(epoch % 2, 1), float(epoch)).trigger(0, epoch)
            receiver.wait_signal(0, epoch, origin=0)
            receiver.copy(target.at(epoch % 2, 1), seen.at(epoch, 1)).trigger(1, epoch)
        domain.run(program)
        assert seen.on(1).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_dynamic_trigger_supplies_target_and_pe() -> None:
    with triggered.Domain(pes=3) as domain:
        source, target = domain.buffer("source", 1), domain.buffer("target", 4)
        domain.put(0, source, target.at(0, 1), pe=0, signal=0, open=["target", "pe"])
        program = domain.program()
        program.block(0).store(source, 9.0).trigger(0, target=target.at(2, 1), pe=2)
        program.block(2).wait_signal(0)
        domain.run(program)
        assert target.on(2).tolist() == [0.0, 0.0, 9.0, 0.0]


def test_send_and_receive_meet_whoever_comes_first() -> None:
    with triggered.Domain(pes=2) as domain:
        source, target = domain.buffer("source", 1), domain.buffer("target", 2)
        domain.put(0, source, target.at(0, 1), pe=0, to=1, threshold=2, signal=0, open=["target"])
        program = domain.program()
        program.block(0).store(source, 3.0).trigger(0)
        program.block(1).trigger(0, nic=0, target=target.at(1, 1)).wait_signal(0)
        domain.run(program)
        assert target.on(1).tolist() == [0.0, 3.0]


def test_queue_names_what_has_arrived_across_launches() -> None:
    with triggered.Domain(pes=2) as domain:
        source, target = domain.buffer("source", 2), domain.buffer("target", 2)
        for tag in (4, 2, 9):
            domain.put(tag, source.at(0, 1), target.at(0, 1), pe=0, to=1, reports=True)
        first, second = domain.program(), domain.program()
        first.block(0).trigger(4).trigger(2)
        first.block(1).next_arrival(0).next_arrival(0)
        second.block(0).trigger(9)
        second.block(1).next_arrival(0)
        assert domain.run(first).arrivals == [[], [(4, 0), (2, 0)]]
        assert domain.run(second).arrivals == [[], [(9, 0)]]


def test_hang_is_an_error_that_names_tag_epoch_and_counts() -> None:
    with pytest.raises(WaitTimeoutError) as raised, triggered.Domain(2, wait_limit=0.3) as domain:
        source, target = domain.buffer("source", 1), domain.buffer("target", 1)
        domain.put(7, source, target, pe=0, to=1, threshold=4, epochs=9, signal=5)
        program = domain.program()
        for trigger in range(15):
            program.block(0).trigger(7, trigger // 4)
        program.block(1).wait_signal(5, 3, origin=0)
        domain.run(program)
    text = str(raised.value)
    assert "tag 7, epoch 3: 3 of 4 triggers seen, operation posted" in text
    assert "block 0 of PE 1 waited for: signal of a triggered operation, signal 5, PE 0" in text
    assert raised.value.waits[0]["seen"] == 3


def test_stray_trigger_is_an_error_when_the_domain_ends() -> None:
    message = "tag 3, epoch 0: 1 trigger more than the threshold"
    with pytest.raises(TriggerError, match=message) as raised, triggered.Domain(pes=1) as domain:
        domain.put(3, domain.buffer("a", 1), domain.buffer("b", 1), pe=0)
        program = domain.program()
        program.block(0).trigger(3).trigger(3)
        domain.run(program)
    assert raised.value.faults[0]["tag"] == 3


def test_operations_that_never_fired_are_in_the_report() -> None:
    domain = triggered.Domain(pes=1)
    domain.put(3, domain.buffer("a", 1), domain.buffer("b", 1), pe=0, threshold=2)
    program = domain.program()
    program.block(0).trigger(3).trigger(5)
    domain.run(program)
    report = domain.close()
    assert report.waiting == [
        triggered.WaitingTag(0, 3, 0, 1, 2),
        triggered.WaitingTag(0, 5, 0, 1, None),
    ]
    assert "tag 5, epoch 0: 1 trigger seen, operation not posted" in str(report)


def test_mistakes_are_told_and_lose_nothing() -> None:
    with triggered.Domain(pes=2) as domain:
        a, b = domain.buffer("a", 4), domain.buffer("b", 4)
        cases = {
            "threshold 2147483648 is too large": {"threshold": 1 << 31},
            "there is no PE 2": {"to": 2},
            "there is no signal 64": {"signal": 64},
            "the next epoch to post is 0": {"epoch": 1},
            "none of source, target, pe": {"open": ["length"]},
        }
        for message, options in cases.items():
            with pytest.raises(InvalidInputError, match=message):
                domain.put(0, a, b, pe=0, **options)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="source and target overlap on PE 1"):
            domain.put(0, a.at(0, 2), a.at(1, 2), pe=1, to=1)
        with pytest.raises(InvalidInputError, match="source has 4 values and target 2"):
            domain.put(0, a, b.at(0, 2), pe=0)
        domain.put(0, a, b, pe=0, to=1, threshold=0, signal=0)  # fires at once
        with pytest.raises(InvalidInputError, match="has been posted already"):
            domain.put(0, a, b, pe=0, to=1)
        program = domain.program()
        program.block(1).wait_signal(0)
        domain.run(program)


def test_freed_buffers_are_refused() -> None:
    with triggered.Domain(pes=1) as domain:
        a, b = domain.buffer("a", 4), domain.buffer("b", 4)
        domain.put(0, a, b, pe=0)
        with pytest.raises(InvalidInputError, match="cannot be freed: tag 0, epoch 0 names it"):
            a.free()
        program = domain.program()
        program.block(0).trigger(0).wait_done(0)
        domain.run(program)
        a.free()
        with pytest.raises(InvalidInputError, match="buffer 'a' has been freed"):
            domain.put(1, a, b, pe=0)


def test_buffer_that_does_not_fit_is_refused() -> None:
    with triggered.Domain(pes=1, memory=64) as domain:
        with pytest.raises(InvalidInputError, match="does not fit: 64 of 64 bytes are left"):
            domain.buffer("large", 9)
        assert domain.buffer("small", 8).on(0).tolist() == [0.0] * 8


def test_unknown_back_end_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="choose from thread, libfabric"):
        triggered.Domain(pes=1, back_end="pigeon")


def test_missing_back_end_says_why() -> None:
    for name, reason in triggered.missing_back_ends().items():
        with pytest.raises(UnsupportedError, match="libfabric"):
            triggered.Domain(pes=1, back_end=name)
        assert "install libfabric-dev" in reason
    assert "thread" not in triggered.missing_back_ends()


def test_views_outlive_the_domain() -> None:
    with triggered.Domain(pes=1) as domain:
        values = domain.buffer("a", 3).on(0)
        values[:] = 7.0
    del domain
    assert np.all(values == 7.0)


def test_ctrl_c_ends_a_program_that_waits() -> None:
    code = """
        import cpufree
        cpufree.triggered.missing_back_ends()  # loads what changes signals, where it is there
        domain = cpufree.triggered.Domain(pes=2, wait_limit=1000.0)
        program = domain.program()
        program.block(1).wait_signal(0)
        try:
            print("waiting", flush=True)
            domain.run(program)
        except KeyboardInterrupt:
            print(domain.close())
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=120)[0] == "all operations have fired\n"
