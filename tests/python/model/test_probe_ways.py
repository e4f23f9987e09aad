"""Ways that kernels use, between threads and between processes: times, failures, contention."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from cpufree import _core
from cpufree.errors import EngineError, InvalidInputError
from cpufree.model.extras import constants
from cpufree.model.fit import fit
from cpufree.model.measure import Plan, measure, steps_of
from cpufree.model.samples import Kind, Sample, Samples, read_samples, write_samples
from cpufree.model.ways import probe_ways
from cpufree.model.ways.probe_ways import PROBE_WAYS, GpuProbe, ProbeWay, ProcessProbe, rounds_of

CPU_WAYS = [name for name in PROBE_WAYS if not name.startswith(("device", "shared"))]


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProbeWay, "_cores", staticmethod(lambda: 2))
    monkeypatch.setattr(probe_ways, "MOST_RUNS", 1)


@pytest.fixture(params=CPU_WAYS)
def way(request: pytest.FixtureRequest) -> Iterator[ProbeWay]:
    """Return an open way."""
    made = PROBE_WAYS[request.param]()
    made.open()
    yield made
    made.close()


def test_every_mode_gives_a_time_for_each_repeat(way: ProbeWay) -> None:
    for mode in way.modes:
        seconds = way.times(mode, 64, 3 if mode == "window" else 1, 2, 4)
        assert len(seconds) == 4 and min(seconds) > 0.0
    assert way.runs == len(way.modes)


def test_extras_are_timed(way: ProbeWay) -> None:
    extras, _ = way.extras()
    assert [mode for mode, _, _ in extras] == (["flag"] + ["allreduce"] * 4) * way.verb.leads
    for mode, size, count in extras:
        assert min(way.times(mode, size, count, 0, 3)) > 0.0


@pytest.mark.parametrize("size", [0, 12, 1 << 24])
def test_sizes_that_a_kernel_cannot_send_are_refused(size: int) -> None:
    made = PROBE_WAYS["threads-store"]()
    with pytest.raises(InvalidInputError, match=rf"threads-store cannot send messages of {size} B"):
        made.times("single", size, 1, 0, 3)


def test_pairs_exchange_at_the_same_time_where_each_pe_has_a_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ProbeWay, "_cores", staticmethod(lambda: 4))
    made = PROBE_WAYS["threads-store"]()
    there, lacking = made.extras()
    assert [extra for extra in there if extra[0] == "pairs"] == [
        ("pairs", 8, 2),
        ("pairs", 65536, 2),
    ]
    assert lacking["threads-store, 4 pairs at once"].startswith("8 PEs need a core each")
    made.open()
    assert min(made.times("pairs", 8, 2, 0, 3)) > 0.0
    made.close()


def test_one_core_is_a_reason_not_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProbeWay, "_cores", staticmethod(lambda: 1))
    found = measure([PROBE_WAYS["threads-get"]()], Plan((8,), (), (4,)), "")
    assert found.missing == {"threads-get": "two PEs need a core each, and there is 1"}


def test_no_gpu_is_a_reason_not_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GpuProbe, "_gpus", staticmethod(list))
    assert PROBE_WAYS["device-store-block"]().lacking()
    monkeypatch.setattr(GpuProbe, "_gpus", staticmethod(lambda: [0]))
    assert PROBE_WAYS["device-get"]().lacking() == "two PEs need a GPU each, and there is one"


def test_gpus_are_measured_with_fences_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GpuProbe, "_gpus", staticmethod(lambda: [0, 1, 2, 3]))
    steps = steps_of(PROBE_WAYS["device-store-block"](), Plan((8,), (), (4,)))
    modes = [(mode, size, count) for _, mode, size, count in steps]
    assert ("fence", 0, 1) in modes and ("blocks", 8, 64) in modes and ("pairs", 8, 2) in modes
    assert ("pairs", 8, 4) not in modes


def test_a_process_that_is_gone_is_an_error() -> None:
    made = PROBE_WAYS["processes-store"]()
    assert isinstance(made, ProcessProbe)
    made.open()
    process = made._peer.first
    process.kill()
    process.wait()
    with pytest.raises(EngineError, match="processes-store: the process at the other end is gone"):
        made.times("single", 8, 1, 0, 3)
    made.close()


def test_a_process_that_stands_still_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    made = PROBE_WAYS["processes-packets"]()
    assert isinstance(made, ProcessProbe)
    made.open()
    monkeypatch.setattr(probe_ways, "LIMIT", 0.3)
    process = made._peer.first
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(EngineError, match="way processes-packets: the other PE did not answer"):
        made.times("single", 8, 1, 0, 3)
    made.close()
    assert process.returncode is not None


def test_closing_ends_the_other_process_and_its_watch() -> None:
    made = PROBE_WAYS["processes-get"]()
    assert isinstance(made, ProcessProbe)
    before = threading.active_count()
    made.open()
    process = made._peer.first
    made.close()
    made.close()  # once more does nothing
    assert process.returncode == 0
    assert threading.active_count() == before


def test_times_of_an_undisturbed_run_are_taken_before_those_of_a_disturbed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe_ways, "MOST_RUNS", 4)
    made = PROBE_WAYS["threads-store"]()
    runs = iter([([9.0], 3), ([8.0], 1), ([1.0], 0), ([7.0], 0)])
    monkeypatch.setattr(made, "_run_once", lambda order, probe: next(runs))
    made.open()
    assert made.times("single", 8, 1, 0, 1) == [1.0]
    assert (made.runs, made.disturbed) == (1, 0)
    made.close()


@pytest.mark.parametrize(
    ("way", "mode", "message"),
    [("stores", "single", "a way of messages 'stores' is not known: there are store-thread"),
     ("get", "sigle", "a mode of measurement 'sigle' is not known: there are single"),
     ("get", "send", "who gets sends nothing")],
)  # fmt: skip
def test_the_core_refuses_orders_that_make_no_sense(way: str, mode: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _core.Probe(2, 1, 64).run(way, mode, 8, 1, 1, 0, 1, 1.0)


@pytest.mark.parametrize(("size", "rounds"), [(8, 16), (8192, 8), (65536, 1), (1 << 23, 1)])
def test_one_time_is_of_fewer_round_trips_of_large_messages(size: int, rounds: int) -> None:
    assert rounds_of(size) == rounds


def extra_samples() -> Samples:
    """Return samples of a way with extras whose medians are known."""
    kind = Kind("device", "device", "device", "message")

    def row(mode: str, messages: int, size: int, time: float) -> Sample:
        return Sample("device-a", kind, mode, messages, size, (time, 2 * time, time / 2))

    sizes = tuple(2**k for k in range(3, 12))
    rows = [row("single", 1, size, 1e-6 + 1e-10 * size) for size in sizes]
    rows += [row("window", 16, size, 1.6e-5) for size in sizes]
    rows += [row("flag", 1, 8, 7e-7), row("allreduce", 1, 32, 2e-6), row("pairs", 4, 8, 3e-6)]
    rows += [row("fence", 1, 0, 1e-7), row("fence", 1, 8, 4e-7), row("fence", 1, 512, 9e-7)]
    return Samples("2026-01-01", "a test", {"cpu": "a test"}, (), tuple(rows))


def test_extras_become_constants_with_intervals() -> None:
    found = constants(extra_samples())
    assert found["device-a, flag"].value == pytest.approx(7e-7)
    assert found["device-a, sum of 4 values"].value == pytest.approx(2e-6)
    assert found["device-a, 4 pairs at once, 8 B"].value == pytest.approx(3e-6)
    assert found["device-a, fence after 512 B"].value == pytest.approx(9e-7)
    flag = found["device-a, flag"]
    assert flag.unit == "s" and flag.low is not None and flag.high is not None
    assert flag.low <= flag.value <= flag.high


def test_a_fence_that_was_measured_is_the_synchronization() -> None:
    found = fit(extra_samples()).ways["device-a"].parameters["S"]
    assert found.value == pytest.approx(4e-7)  # after 8 B


def test_extras_are_written_and_read(tmp_path: pytest.TempPathFactory) -> None:
    path = str(tmp_path) + "/samples.jsonl"
    write_samples(path, extra_samples())
    assert read_samples(path).rows == extra_samples().rows


def test_threads_are_fitted_from_one_short_measurement() -> None:
    plan = Plan((8, 64, 512, 1024, 4096, 32768), (), (4,), rounds=3, repeats=3)
    found = fit(measure([PROBE_WAYS["threads-store"]()], plan, "a test"))
    single = found.ways["threads-store"].curves["single"]
    assert single.form in ("pieces", "softplus")
    assert np.isfinite(found.constants["threads-store, flag"].value)
