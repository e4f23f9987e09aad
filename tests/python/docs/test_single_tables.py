"""Tables of records that may not be there yet: the newest one fills its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.results import records
from tools.results.papers import singles


def write(folder: Path, name: str, date: str, seconds: float) -> None:
    lines = [
        {"kind": "header", "date": date},
        *(
            {
                "kind": "measurement",
                "case": "gen:poisson3d?nx=8",
                "contender": contender,
                "round": 0,
                "seconds": seconds,
            }
            for contender in ("cg flags", "cg only sums")
        ),
    ]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def test_a_place_has_the_newest_record_or_says_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    place = singles.PLACES["single, parts"]
    assert place() == "No record yet (`python bench/ablations/cg.py`).\n"
    write(tmp_path, "cg-parts-1x-2026-12-02.jsonl", "2026-12-02", 2e-5)
    write(tmp_path, "cg-parts-1x-2026-12-01.jsonl", "2026-12-03", 3e-5)
    write(tmp_path, "cg-parts-2x-2026-12-04.jsonl", "2026-12-04", 4e-5)
    table = place()
    assert "| all of it | 30 |" in table
    assert "| three exchanges of sums | 30 |" in table
    assert "| dots | – |" in table
    assert "[record](../bench/results/cg-parts-1x-2026-12-01.jsonl)" in table
    assert singles.there() == ["cg-parts-1x-2026-12-01.jsonl"]
