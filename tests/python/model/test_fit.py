"""Fits of samples: which parameters they identify, and why not the others."""

from __future__ import annotations

import dataclasses

import pytest
from synthetic_samples import LOGGOP, MODES, SIZES, rows_of, samples_of

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import WayRecord
from cpufree.machine.files import Quantity
from cpufree.model import extras
from cpufree.model.fit import fit, medians
from cpufree.model.loggop import Payload, Verb, linear
from cpufree.model.samples import Kind, Sample
from cpufree.model.use import parameters

pytestmark = pytest.mark.usefixtures("few_replicates")
TRUE = {"L": 2e-6, "o_send": 1e-6, "o_recv": 0.5e-6, "O": 0.2e-9, "g": 0.8e-6, "G": 0.5e-9}


def way_of(rows: list[Sample], way: str = "w") -> WayRecord:
    """Return a way of a fit to rows."""
    return fit(samples_of(rows)).ways[way]


def inside(quantity: Quantity, value: float, factor: float = 1.0) -> bool:
    """Return whether a value is in an interval, widened by a factor."""
    assert quantity.low is not None and quantity.high is not None
    widened = factor * (quantity.high - quantity.low) / 2 + 1e-6 * value
    return abs(value - (quantity.low + quantity.high) / 2) <= widened


@pytest.mark.parametrize(("noise", "seed"), [(0.0, 0), (0.02, 1), (0.02, 2), (0.1, 3), (0.1, 4)])
@pytest.mark.few(1)
def test_parameters_are_recovered_within_their_intervals(
    noise: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "REPLICATES", 200)
    found = way_of(rows_of(LOGGOP, noise=noise, seed=seed))
    assert set(found.parameters) == set(TRUE)
    held = [inside(found.parameters[name], value) for name, value in TRUE.items()]
    assert sum(held) >= len(TRUE) - 1  # each holds in 95 of 100 cases
    assert all(inside(found.parameters[name], value, 2.0) for name, value in TRUE.items())


@pytest.mark.parametrize("payload", ["once", "twice"])
@pytest.mark.few(1)
def test_data_say_how_often_the_payload_counts(payload: Payload) -> None:
    found = way_of(rows_of(LOGGOP, noise=0.02, seed=5, payload=payload))
    assert found.payload == payload


def test_payload_that_follows_no_gap_is_not_identifiable() -> None:
    windows = dataclasses.replace(LOGGOP, G=linear(0.02e-9))
    rows = rows_of(LOGGOP, modes=("single",)) + rows_of(windows, modes=("window",))
    rows = [
        dataclasses.replace(row, seconds=tuple(t * 0.05 for t in row.seconds))
        if row.mode == "window"
        else row
        for row in rows
    ]
    found = way_of(rows)
    assert found.payload is None
    assert "neither way" in found.unknown["payload"]


@pytest.mark.parametrize(
    ("modes", "known", "reasons"),
    [
        (
            ("single",),
            set(),
            {"L": "o_send, o_recv would have to be known", "o_send": "mode send", "g": "windows"},
        ),
        (("single", "window"), {"g", "G"}, {"L": "1 L + 1", "O": "mode send"}),
        (("single", "send"), {"o_send", "O"}, {"L": "o_recv would", "G": "windows"}),
        (("single", "send", "receive"), {"o_send", "o_recv", "O", "L"}, {"payload": "windows"}),
    ],
)
@pytest.mark.few(1)
def test_what_samples_cannot_tell_is_not_identifiable(
    modes: tuple[str, ...], known: set[str], reasons: dict[str, str]
) -> None:
    found = way_of(rows_of(LOGGOP, modes=modes))
    assert set(found.parameters) == known
    assert set(found.parameters) | set(found.unknown) >= {*TRUE, "S"}
    for name, reason in reasons.items():
        assert reason in found.unknown[name]


def test_overheads_longer_than_a_message_leave_no_latency() -> None:
    busy = dataclasses.replace(LOGGOP, o_send=20e-6)
    rows = rows_of(LOGGOP, modes=("single", "receive")) + rows_of(busy, modes=("send",))
    assert "as long as a whole message" in way_of(rows).unknown["L"]


def test_windows_no_longer_than_a_message_leave_no_gap() -> None:
    rows = [
        dataclasses.replace(row, seconds=tuple(t / 30 for t in row.seconds))
        if row.mode == "window"
        else row
        for row in rows_of(LOGGOP)
    ]
    assert "measure longer windows" in way_of(rows).unknown["g"]


def test_a_fence_inside_the_call_counts_once() -> None:
    # The call that sends takes 5 us, 4 of them for the fence.
    true = dataclasses.replace(LOGGOP, o_send=1e-6, S=4e-6)
    called = dataclasses.replace(LOGGOP, o_send=5e-6)
    kind = Kind("device", "device", "device", "message")
    rows = rows_of(true, kind=kind, modes=("single", "window", "receive"), sizes=SIZES[::2])
    rows += rows_of(called, kind=kind, modes=("send",), sizes=SIZES[::2])
    rows.append(Sample("w", kind, "fence", 1, 8, (4e-6,) * 5))
    found = parameters(way_of(rows))
    assert found is not None
    assert (found.o_send, found.S) == pytest.approx((1e-6, 4e-6), rel=1e-3)
    assert float(found.time("message", 8, "once")) == pytest.approx(
        float(true.time("message", 8, "once")), rel=1e-3
    )


def test_a_fence_takes_no_longer_than_the_call_that_has_it_inside() -> None:
    kind = Kind("device", "device", "device", "message")
    rows = [*rows_of(LOGGOP, kind=kind, sizes=SIZES[::2])]
    rows.append(Sample("w", kind, "fence", 1, 8, (9e-6,) * 5))
    found = way_of(rows).parameters
    assert found["S"].value == pytest.approx(LOGGOP.o_send, rel=1e-3)
    assert found["o_send"].value == 0.0


def test_synchronization_that_leaves_no_latency_is_inside_the_calls() -> None:
    device = dataclasses.replace(LOGGOP, o_send=4e-6)
    kinds = [Kind(who, "host", who, "message") for who in ("host", "device")]
    host = dataclasses.replace(LOGGOP, L=0.1e-6, o_send=0.1e-6)
    rows = rows_of(host, "host-a", kind=kinds[0], sizes=SIZES[::2])
    rows += rows_of(device, "device-a", kind=kinds[1], sizes=SIZES[::2])
    found = fit(samples_of(rows)).ways["device-a"]
    assert "inside" in found.unknown["S"] and "L" not in found.unknown
    assert found.parameters["L"].value == pytest.approx(LOGGOP.L, rel=1e-3)


@pytest.mark.parametrize("verb", ["put", "get"])
def test_synchronization_is_what_the_device_takes_longer(verb: Verb) -> None:
    device = dataclasses.replace(LOGGOP, S=4e-6)
    kinds = [Kind(who, "host", who, verb) for who in ("host", "device")]
    rows = rows_of(LOGGOP, f"host-{verb}", kind=kinds[0], sizes=SIZES[::2])
    rows += rows_of(device, f"device-{verb}", kind=kinds[1], sizes=SIZES[::2])
    found = fit(samples_of(rows)).ways
    assert found[f"device-{verb}"].parameters["S"].value == pytest.approx(4e-6, rel=1e-3)
    assert found[f"device-{verb}"].parameters["L"].value == pytest.approx(2e-6, rel=1e-3)
    assert "only messages that a device initiates" in found[f"host-{verb}"].unknown["S"]
    assert found[f"host-{verb}"].parameters["L"].value == pytest.approx(2e-6, rel=1e-3)


def test_synchronization_needs_the_host_beside_the_device() -> None:
    kind = Kind("device", "host", "device", "put")
    found = way_of(rows_of(LOGGOP, "device-put", kind=kind), "device-put")
    assert "the same verb initiated by the host" in found.unknown["S"]


def test_sizes_held_out_do_not_change_a_fit() -> None:
    rows = rows_of(LOGGOP, modes=("single",))
    spoilt = [
        row if row.bytes in SIZES else dataclasses.replace(row, seconds=(1.0,) * 5) for row in rows
    ]
    assert any(a != b for a, b in zip(rows, spoilt, strict=True))
    assert way_of(rows) == way_of(spoilt)


def test_medians_pool_rows_of_the_same_size() -> None:
    rows = rows_of(LOGGOP, modes=("single",), sizes=(8,))
    rows = [dataclasses.replace(rows[0], seconds=seconds) for seconds in ((1.0,) * 3, (9.0,) * 4)]
    found = medians(samples_of(rows), "w", "single")
    assert found is not None and found.seconds.tolist() == [9.0]


def test_a_fit_with_too_few_sizes_is_refused() -> None:
    rows = rows_of(LOGGOP, sizes=SIZES[:4])
    with pytest.raises(InvalidInputError, match=r"way w, mode single: 4 sizes .* needs 5"):
        fit(samples_of(rows))


def test_a_fit_without_single_messages_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="way w: no single messages"):
        fit(samples_of(rows_of(LOGGOP, modes=MODES[1:])))


def test_a_fit_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no way was measured"):
        fit(samples_of([]))
