"""Places of triggered operations: each is checked against its buffer, where it becomes known."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from cpufree import triggered
from cpufree.errors import CpufreeWarning, InvalidInputError, TriggerError


def test_target_that_a_trigger_supplies_too_near_the_end_of_its_buffer_is_refused() -> None:
    with triggered.Domain(pes=2) as domain:
        source, x, other = (domain.buffer(name, 64) for name in ("source", "x", "other"))
        domain.put(4, source, x, pe=0, to=1, open=["target"], signal=0)
        program = domain.program()
        program.block(0).store(source, 7.0).trigger(4, target=x.at(60, 1))
        with pytest.raises(
            InvalidInputError,
            match="tag 4, epoch 0: a trigger names as its target bytes 480 to 488 of buffer 'x', "
            "which has 512, and the operation moves 512",
        ):
            domain.run(program)
        right = domain.program()
        right.block(0).store(source, 7.0).trigger(4, target=x)
        right.block(1).wait_signal(0)
        domain.run(right)
        assert np.all(x.on(1) == 7.0)
        assert np.all(other.on(1) == 0.0)


def test_post_that_does_not_fit_an_earlier_trigger_is_refused() -> None:
    domain = triggered.Domain(pes=1)
    source, x = domain.buffer("source", 64), domain.buffer("x", 64)
    program = domain.program()
    program.block(0).trigger(4, target=x.at(60, 1))
    domain.run(program)
    with pytest.raises(InvalidInputError, match="tag 4, epoch 0: a trigger names as its target"):
        domain.put(4, source, x, pe=0, open=["target"])
    domain.close()


def test_field_that_the_operation_does_not_leave_open_is_refused() -> None:
    with triggered.Domain(pes=1) as domain:
        a, b = domain.buffer("a", 4), domain.buffer("b", 4)
        domain.put(0, a, b, pe=0, threshold=0)
        domain.put(0, a, b, pe=0, epoch=1, threshold=0)
        program = domain.program()
        program.block(0).trigger(0, 1, source=b.at(0, 4))
        with pytest.raises(InvalidInputError, match="tag 0, epoch 1: a trigger supplies 'source'"):
            domain.run(program)


def test_target_of_a_trigger_that_overlaps_the_source_is_refused() -> None:
    with triggered.Domain(pes=2) as domain:
        a = domain.buffer("a", 8)
        domain.put(2, a.at(0, 4), a.at(4, 4), pe=1, to=1, open=["target"], threshold=1, signal=0)
        program = domain.program()
        program.block(1).trigger(2, target=a.at(2, 4))
        with pytest.raises(InvalidInputError, match="tag 2, epoch 0: source and target overlap"):
            domain.run(program)
        right = domain.program()
        right.block(1).trigger(2, target=a.at(4, 4)).wait_done(2)
        domain.run(right)


def test_overlap_that_only_the_nic_can_see_is_an_error_when_the_domain_ends() -> None:
    message = "tag 2, epoch 0: not carried out: source and target overlap: .* of buffer 'a'"
    with pytest.raises(TriggerError, match=message), triggered.Domain(pes=2) as domain:
        a = domain.buffer("a", 8)
        domain.put(2, a.at(0, 4), a.at(4, 4), pe=0, open=["target", "pe"], threshold=2)
        program = domain.program()
        program.block(0).trigger(2, target=a.at(2, 4)).trigger(2, pe=0)
        domain.run(program)


def test_buffer_of_another_domain_is_refused_where_it_is_named() -> None:
    with triggered.Domain(pes=2) as domain, triggered.Domain(pes=2) as other:
        mine, foreign = domain.buffer("mine", 4), other.buffer("foreign", 4)
        message = "buffer 'foreign' belongs to another domain"
        with pytest.raises(InvalidInputError, match=f"tag 3, target: {message}"):
            domain.put(3, mine, foreign, pe=0)
        steps = domain.program().block(1)
        with pytest.raises(InvalidInputError, match=f"block 0 of PE 1, store: {message}"):
            steps.store(foreign, 1.0)
        with pytest.raises(InvalidInputError, match=f"tag 3, epoch 0, target: {message}"):
            steps.trigger(3, target=foreign.at(0, 4))
        with pytest.raises(InvalidInputError, match="made by another domain"):
            domain.run(other.program())


def test_buffer_that_is_freed_before_the_run_is_refused() -> None:
    with triggered.Domain(pes=1) as domain:
        a = domain.buffer("a", 4)
        program = domain.program()
        program.block(0).store(a, 1.0)
        a.free()
        domain.buffer("b", 4)  # lies where it lay
        with pytest.raises(InvalidInputError, match="PE 0, store: buffer 'a' has been freed"):
            domain.run(program)


def test_buffer_that_an_early_trigger_names_cannot_be_freed() -> None:
    domain = triggered.Domain(pes=1)
    a = domain.buffer("a", 4)
    program = domain.program()
    program.block(0).trigger(5, target=a.at(0, 2))
    domain.run(program)
    with pytest.raises(InvalidInputError, match="'a' cannot be freed: a trigger of tag 5, epoch 0"):
        a.free()
    domain.close()


def test_free_gives_memory_back_and_a_new_buffer_has_zeros() -> None:
    with triggered.Domain(pes=2, memory=512) as domain:
        for _ in range(100):
            a, b = domain.buffer("a", 32), domain.buffer("b", 32)
            assert not np.any(a.on(1)) and not np.any(b.on(1))
            a.fill(1, 3.0)
            b.fill(1, 4.0)
            a.free()
            b.free()
        domain.buffer("c", 64)


def test_memory_in_pieces_is_told_with_the_largest() -> None:
    with triggered.Domain(pes=1, memory=1024) as domain:
        buffers = [domain.buffer(str(k), 32) for k in range(4)]
        buffers[0].free()
        buffers[2].free()
        with pytest.raises(InvalidInputError, match="512 of 1024 bytes are left, at most 256"):
            domain.buffer("large", 64)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda steps, a: steps.trigger(0, pe=2), "there is no PE 2; there are 2"),
        (lambda steps, a: steps.trigger(0, pe=-1), "there is no PE -1"),
        (lambda steps, a: steps.trigger(0, nic=2), "there is no PE 2"),
        (lambda steps, a: steps.wait_signal(0, origin=7), "wait_signal: there is no PE 7"),
        (lambda steps, a: steps.next_arrival(-1), "next_arrival: there is no PE -1"),
        (lambda steps, a: steps.copy(a.at(0, 4), a.at(2, 4)), "copy: the source, values 0 to 4 of"),
        (lambda steps, a: steps.add(a.at(4, 4), a.at(1, 4)), "add: the source, values 4 to 8 of"),
        (lambda steps, a: triggered.Place(a, 6, 4), "values 6 to 10 lie outside of buffer 'a'"),
        (lambda steps, a: a.at(1.5, 1), "start is 1.5; places are given in whole numbers"),
    ],
)
def test_wrong_step_is_refused_where_it_is_made(step, message: str) -> None:  # type: ignore[no-untyped-def]
    with triggered.Domain(pes=2) as domain:
        steps = domain.program().block(0)
        with pytest.raises(InvalidInputError, match=message):
            step(steps, domain.buffer("a", 8))


@pytest.mark.parametrize(("pes", "blocks"), [(10000, 1), (2, 1 << 30), ((1 << 31) - 1, 1)])
def test_more_pes_than_the_cores_can_serve_are_refused(pes: int, blocks: int) -> None:
    with pytest.raises(InvalidInputError, match=r"too large for the \d+ cores of this machine"):
        triggered.Domain(pes=pes, blocks=blocks)


def test_domain_warns_of_operations_that_never_fired() -> None:
    with (
        pytest.warns(
            CpufreeWarning, match="tag 3, epoch 0: 0 of 2 triggers seen, operation posted"
        ),
        triggered.Domain(pes=1) as domain,
    ):
        domain.put(3, domain.buffer("a", 1), domain.buffer("b", 1), pe=0, threshold=2)


def test_domain_that_was_closed_by_hand_does_not_warn_again() -> None:
    with warnings.catch_warnings(), triggered.Domain(pes=1) as domain:
        warnings.simplefilter("error")
        domain.put(3, domain.buffer("a", 1), domain.buffer("b", 1), pe=0, threshold=2)
        assert len(domain.close().waiting) == 1
