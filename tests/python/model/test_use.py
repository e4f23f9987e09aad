"""What a machine file is used for: predictions, projections, advice, validation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from paths import ROOT
from synthetic_samples import LOGGOP, WINDOW, rows_of, samples_of, time_of

from cpufree.errors import InvalidInputError
from cpufree.machine.communication import Communication, load_ways
from cpufree.model.advice import SUMMIT_WAYS, Roles, advise
from cpufree.model.fit import fit
from cpufree.model.loggop import linear
from cpufree.model.samples import Kind, Sample, read_samples
from cpufree.model.use import predict
from cpufree.model.validate import crossing, validate

# Starts 1.5 us sooner and takes 0.6 ns/B more: the two cross at 2500 B.
OTHER = dataclasses.replace(LOGGOP, L=0.5e-6, G=linear(1.1e-9))


def two_ways(noise: float = 0.03, seed: int = 0) -> list[Sample]:
    """Return samples of two ways that cross at 2500 B."""
    return rows_of(LOGGOP, "w", noise=noise, seed=seed) + rows_of(
        OTHER, "other", noise=noise, seed=seed + 100
    )


@pytest.fixture(scope="module")
def machine() -> Communication:
    """Return a machine file of two ways."""
    return fit(samples_of(two_ways()))


@pytest.mark.parametrize("pipelined", [False, True])
def test_predictions_have_the_true_time_in_their_interval(
    machine: Communication, pipelined: bool
) -> None:
    sizes = [100, 5000, 300_000]
    found = predict(machine, "w", sizes, pipelined, same_run=True)
    mode = "window" if pipelined else "single"
    true = np.array([time_of(LOGGOP, mode, size) for size in sizes])
    true /= WINDOW if pipelined else 1
    assert found.low is not None and found.high is not None
    assert np.all(found.low <= true) and np.all(true <= found.high)
    assert np.all(found.high / found.low < 1.2)


def test_times_of_another_run_have_wider_intervals(machine: Communication) -> None:
    same, other = (predict(machine, "w", [8, 4096], same_run=run) for run in (True, False))
    assert same.low is not None and other.low is not None
    assert other.high is not None and same.high is not None
    assert np.all(other.low < 0.8 * same.low) and np.all(other.high > 1.2 * same.high)


def test_intervals_hold_on_another_day_and_host() -> None:
    file = ROOT / "bench/results/model-2x-2026-11-25/samples.jsonl"
    if not file.is_file():
        pytest.skip("the records are in a clone only")
    found = validate(load_ways("h100"), read_samples(file))
    assert found.coverage is not None and 0.92 < found.coverage < 0.98


def test_predictions_by_equations_have_no_interval() -> None:
    found = predict(load_ways("summit-2020"), "host-put", 8)
    assert float(found.seconds) == pytest.approx(1998e-9, abs=0.5e-9)
    assert found.low is None and "no interval" in found.note


def test_intervals_are_wider_beyond_the_sizes_of_the_fit(machine: Communication) -> None:
    found = predict(machine, "w", [2**23, 2**24, 2**26])
    assert found.high is not None
    over = found.high / found.seconds - 1.0
    assert 1.9 * over[0] < over[1] and 1.9 * over[1] < over[2]


def test_predictions_tell_of_samples_of_a_busy_machine() -> None:
    busy = samples_of(rows_of(LOGGOP, "threads-store", modes=("single",)))
    busy = dataclasses.replace(busy, machine={"disturbed": 0.51})
    assert "in 51% of the runs" in predict(fit(busy), "threads-store", 8).note
    quiet = dataclasses.replace(busy, machine={"disturbed": 0.05})
    assert "runs" not in predict(fit(quiet), "threads-store", 8).note


def test_equations_are_checked_beside_the_curves() -> None:
    samples = samples_of(two_ways())
    found = fit(samples)
    assert {name: (sum(of), len(of)) for name, of in validate(found, samples).groups.items()} == {
        **{"curves": (4, 4), "equations": (4, 4), "crossings": (1, 1)},
        **{"pairs that do not cross": (0, 0), "patterns": (0, 0)},
    }
    w = found.ways["w"]
    slower = {**w.parameters, "L": dataclasses.replace(w.parameters["L"], value=4e-6)}
    other = {**found.ways, "w": dataclasses.replace(w, parameters=slower)}
    checked = validate(dataclasses.replace(found, ways=other), samples)
    assert [one.passed for one in checked.equations] == [False, True, True, True]


def test_intervals_hold_for_a_run_like_the_fits_and_not_for_one_twice_as_slow() -> None:
    samples = samples_of(two_ways())
    found = fit(samples)
    coverage = validate(found, samples).coverage
    assert coverage is not None and coverage > 0.9
    assert "95 % intervals have" in validate(found, samples).told
    slow = tuple(
        dataclasses.replace(row, seconds=tuple(2.0 * one for one in row.seconds))
        for row in samples.rows
    )
    assert validate(found, dataclasses.replace(samples, rows=slow)).coverage == 0.0


def test_predictions_beyond_the_sizes_of_the_fit_say_so(machine: Communication) -> None:
    assert "beyond the sizes of the fit, 8 to 8388608 B" in predict(machine, "w", 2**25).note
    assert "beyond" not in predict(machine, "w", 8).note


@pytest.mark.parametrize(
    ("way", "size", "message"),
    [("v", 8, r"no way 'v'.*there are w, other"), ("w", 0, "a message has at least 1")],
)
def test_predictions_of_what_is_not_there_are_refused(
    machine: Communication, way: str, size: int, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        predict(machine, way, size)


def test_predictions_of_messages_nobody_measured_are_refused() -> None:
    found = fit(samples_of(rows_of(LOGGOP, modes=("single",))))
    with pytest.raises(InvalidInputError, match="nothing is known of pipelined messages"):
        predict(found, "w", 8, True)


def test_a_good_fit_is_validated(machine: Communication) -> None:
    found = validate(machine, samples_of(two_ways(seed=7)))
    assert [(one.way, one.kind) for one in found.checks] == [
        ("w", "single"), ("w", "pipelined"), ("other", "single"), ("other", "pipelined"),
    ]  # fmt: skip
    assert all(len(one.sizes) == 10 for one in found.checks)
    assert found.passed and len(found.verdicts) == 9


def test_a_machine_that_has_become_slower_is_not_validated(machine: Communication) -> None:
    slower = [
        dataclasses.replace(row, seconds=tuple(1.3 * t for t in row.seconds)) for row in two_ways()
    ]
    found = validate(machine, samples_of(slower))
    assert not found.passed
    assert all(one.error == pytest.approx(0.23, abs=0.03) for one in found.checks)
    assert found.crossings[0].passed  # both are slower alike


def test_a_curve_of_another_shape_has_a_low_r2(machine: Communication) -> None:
    flat = [dataclasses.replace(row, seconds=(1e-5,) * 5) for row in two_ways()]
    assert all(
        one.r2 < 0.95 and not one.passed for one in validate(machine, samples_of(flat)).checks
    )


def test_crossings_are_predicted_where_they_are_measured(machine: Communication) -> None:
    (found,) = validate(machine, samples_of(two_ways(seed=7))).crossings
    assert found.measured is not None and found.predicted is not None
    assert 1.5**-1 < found.predicted / 2500 < 1.5 and 1.5**-1 < found.measured / 2500 < 1.5
    assert found.passed


def test_a_crossing_that_is_not_there_is_not_passed(machine: Communication) -> None:
    parted = [
        dataclasses.replace(row, seconds=tuple(9 * t for t in row.seconds))
        if row.way == "other"
        else row
        for row in two_ways()
    ]
    (found,) = validate(machine, samples_of(parted)).crossings
    assert found.measured is None and found.predicted is not None and not found.passed


def test_noise_around_a_crossing_leaves_one() -> None:
    sizes = 2.0 ** np.arange(3, 11)
    ratio = np.array([0.5, 0.6, 0.7, 1.02, 0.98, 1.3, 1.5, 2.0])
    found = crossing(sizes, ratio)
    assert found is not None and 32 <= found <= 256


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_ways_that_do_not_cross_have_no_crossing(ratio: float) -> None:
    assert crossing(2.0 ** np.arange(3, 8), np.full(5, ratio)) is None


def test_validation_of_other_ways_is_refused(machine: Communication) -> None:
    with pytest.raises(InvalidInputError, match=r"none of its ways \(v\) is in"):
        validate(machine, samples_of(rows_of(LOGGOP, "v")))


@pytest.mark.parametrize(
    ("sizes", "message"), [((8, 16), "no size of a known way is held out"), ((24, 96), "needs 3")]
)
def test_validation_without_sizes_held_out_is_refused(
    machine: Communication, sizes: tuple[int, ...], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        validate(machine, samples_of(rows_of(LOGGOP, sizes=sizes)))


@pytest.mark.parametrize(("launch", "better"), [(0.5e-6, "host"), (6e-6, "device")])
def test_who_is_to_initiate_follows_from_samples_and_launch(launch: float, better: str) -> None:
    kinds = [Kind(who, "host", who, "put") for who in ("host", "device")]
    slower = dataclasses.replace(LOGGOP, S=3e-6)
    rows = rows_of(LOGGOP, "host-put", kind=kinds[0]) + rows_of(slower, "device-put", kind=kinds[1])
    machine = fit(samples_of(rows))
    found = advise(Roles(machine, "host-put", "host-put", "device-put", launch), 64, 0.25)
    initiator = next(one for one in found if one.what == "who initiates")
    assert initiator.how.startswith(f"the {better} instead")


def test_advice_for_summit_ranks_batches_first_and_the_initiator_last() -> None:
    found = advise(Roles(load_ways("summit-2020"), *SUMMIT_WAYS), 1024, 0.25)
    assert [one.paper for one in found] == [3, 2, 1, 4, 5]
    gains = [one.gain for one in found]
    assert all(gain is not None and gain > 1 for gain in gains)
    assert gains == sorted(gains, reverse=True)  # type: ignore[type-var]
    assert "the host instead of the device" in found[-1].how


def test_advice_has_the_gain_of_the_projection() -> None:
    launch = next(
        one
        for one in advise(Roles(load_ways("summit-2020"), *SUMMIT_WAYS), 8, 0.25)
        if one.paper == 4
    )
    assert launch.gain == pytest.approx(1.60, abs=0.005)


def test_advice_says_what_it_cannot_know() -> None:
    single = fit(samples_of(rows_of(LOGGOP, modes=("single",))))
    found = advise(Roles(single, "w", "w"), 1024, 0.25)
    unknown = {one.what: one.how for one in found if one.gain is None}
    assert "no curve of pipelined messages" in unknown["batch messages"]
    assert "no way that a device initiates" in unknown["who initiates"]
    assert [one.gain is None for one in found] == [False] * 3 + [True] * 2


@pytest.mark.parametrize(
    ("size", "share", "message"), [(0, 0.25, "at least 1"), (8, 0.0, "above 0"), (8, 1, "below 1")]
)
def test_advice_for_what_is_no_application_is_refused(
    size: float, share: float, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        advise(Roles(load_ways("summit-2020"), *SUMMIT_WAYS), size, share)


def test_projections_of_ways_that_are_not_there_are_refused(machine: Communication) -> None:
    with pytest.raises(InvalidInputError, match="no way 'cpu-get'"):
        Roles(machine, "cpu-get", "w")
    with pytest.raises(InvalidInputError, match="launch is -1"):
        Roles(machine, "w", "w", launch=-1)
