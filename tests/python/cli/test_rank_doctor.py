"""cpufree doctor --distributed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ranks_here import launched

from cpufree.cli import rank_doctor
from cpufree.cli.doctor import Status


def test_ranks_are_listed_and_an_engine_is_tried_across_them(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    ended = launched("doctor", "--distributed", "--json", str(file), ranks=2)
    assert ended.code == 0, ended
    report = json.loads(file.read_text())
    names = [finding["name"] for finding in report["ranks"]]
    assert names == ["launcher", "rank 0", "rank 1", "a round of all ranks"]
    (engine,) = report["engine across ranks"]
    assert engine["status"] == "ok"
    assert "on 2 ranks" in engine["detail"]


def test_a_process_that_was_started_alone_is_told_how_to_start_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CPUFREE_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    (section,) = rank_doctor.examine()
    assert section.findings[0].status is Status.NOTE
    assert "cpufree run -n 2 doctor --distributed" in section.findings[0].hint
