"""docs/triggered.md holds the figures that its records say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))  # tools/ is no installed package

from tools.results import triggered, triggered_goals  # noqa: E402
from tools.results.records import commits  # noqa: E402


def test_every_record_has_its_commit() -> None:
    for gpus in triggered.BEGINS:
        found = triggered.latest(gpus=gpus)
        assert found
        assert {path.name for path in found.values()} <= set(commits())


def test_a_run_takes_the_place_of_another_one(tmp_path: Path) -> None:
    source, to = tmp_path / "run", tmp_path / "results"
    source.mkdir()
    to.mkdir()
    (to / "triggered-2x-2020-01-01-overlap.json").write_text("{}")
    record = triggered.load(triggered.latest()["overlap"])
    record["command"] = "cpufree bench triggered --json /tmp/somewhere/overlap.json"
    (source / "overlap.json").write_text(json.dumps(record))
    triggered.take(source, to)
    path = triggered.latest(to)["overlap"]
    assert [p.name for p in to.iterdir()] == [path.name]
    assert triggered.load(path)["command"].endswith("--json overlap.json")


def test_header_without_gpus_is_refused(tmp_path: Path) -> None:
    record = triggered.load(triggered.latest()["overlap"])
    del record["machine"]["gpus"]
    (tmp_path / "overlap.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"overlap.json has no machine\.gpus"):
        triggered.load(tmp_path / "overlap.json")


def test_reason_is_told_only_where_a_target_is_missed() -> None:
    assert triggered_goals.goal("a", "1", "2", True, "because").why == ""
    missed = triggered_goals.goal("a", "1", "0", False, "because")
    assert missed.why == "because"
    assert missed.cells()[-1] == "**missed**"
