"""`cpufree bench triggered`: what is measured, shown, drawn and written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_runner import Run, runner

from cpufree.bench.triggered import measure, picture, tables
from cpufree.errors import InvalidInputError
from cpufree.triggered.extension import load_extension

SMALL = measure.Plan(sizes=(64,), grids=(16,), repeats=2, messages=3, iterations=4, sums=3)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


@pytest.fixture(scope="module")
def measured() -> list[measure.Series]:
    return measure.measure(SMALL)


def test_each_path_is_measured_in_each_round(measured: list[measure.Series]) -> None:
    messages = {one.name: one for one in measured if one.study == "messages"}
    assert set(messages) == set(measure.PATHS)
    assert all(one.array().shape == (6, 8) for one in messages.values())


def test_times_of_a_message_are_in_their_order(measured: list[measure.Series]) -> None:
    for one in measured:
        if one.study != "messages":
            continue
        at = dict(zip(measure.TIMES, one.array().T, strict=True))
        assert np.all(at["begun"] <= at["ready"]), one.name
        assert np.all(at["ready"] <= at["ended"]), one.name
        assert np.all(at["ended"] <= at["observed"]), one.name
        assert np.all(at["ready"] <= at["seen"]), one.name
        uses_nic = one.name in measure.NIC_PATHS
        assert np.all(np.isnan(at["nic_begun"]) != uses_nic), one.name


def test_puts_are_posted_before_and_after_the_launch(measured: list[measure.Series]) -> None:
    orders = {one.name: one.array() for one in measured if one.study == "order"}
    assert list(orders) == list(measure.ORDERS.values())
    for name, seconds in orders.items():
        assert seconds.shape == (6,), name
        assert np.all(seconds > SMALL.work), name  # the kernel computes before it triggers


@pytest.mark.parametrize(
    ("path", "order", "message"),
    [
        ("stores", "post_first", "where kernels trigger them"),
        ("triggered", "last", "choose from ahead, post_first, launch_first, open"),
    ],
)
def test_orders_that_make_no_sense_are_refused(path: str, order: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        load_extension().messages(path, 64, 1, 1e-6, "thread", order)


def test_host_driven_message_waits_for_the_end_of_the_kernel(
    measured: list[measure.Series],
) -> None:
    for one in measured:
        if one.study == "messages" and one.name in ("host", "at_end"):
            assert tables.seen_first(one) == 0.0


def test_tables_name_every_series(measured: list[measure.Series]) -> None:
    assert len(tables.message_rows(measured)) == 4
    names = {(row[0], row[2]) for row in tables.other_rows(measured)}
    assert names == {
        *(("order", name) for name in measure.ORDERS.values()),
        ("jacobi", "host"),
        ("jacobi", "triggered"),
        *(("allreduce", f"{w}, {t}") for w in ("ring", "direct") for t in ("triggered", "stores")),
    }


def test_picture_has_both_sides_of_each_path(measured: list[measure.Series]) -> None:
    axes = picture.draw(measured).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [
        "HDN: initiator", "target", "GDS by thread: initiator", "target",
        "GPU-TN by thread: initiator", "target", "stores: initiator", "target",
    ]  # fmt: skip


def test_command_writes_samples_and_picture(run: Run, tmp_path: Path) -> None:
    out, plot = tmp_path / "out.json", tmp_path / "out.png"
    words = ["bench", "triggered", "--quick", "--studies", "messages", "--repeats", "1"]
    done = run(*words, "--json", out, "--plot", plot)
    assert done.code == 0, done.err
    assert "Messages: medians" in done.out
    facts = json.loads(out.read_text())
    assert facts["benchmark"] == "triggered"
    assert {one["size"] for one in facts["series"]} == {64, 65536}
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--sizes", "60", "multiples of 8"),
        ("--grids", "many", "whole numbers"),
        ("--back-ends", "pigeon", "choose from thread"),
        ("--studies", "songs", "choose from messages"),
    ],
)
def test_mistakes_are_told(run: Run, option: str, value: str, message: str) -> None:
    done = run("bench", "triggered", option, value)
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())
