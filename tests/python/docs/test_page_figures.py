"""Sentences that quote figures on hand-written pages, against the records."""

from __future__ import annotations

import pytest

from tools.results import programs


def test_a_declared_record_has_the_tables_of_older_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def line(kind: str, n: int, pes: int, **more: object) -> dict[str, object]:
        of = {"program": "life", "n": n, "type": "float64", "pes": pes}
        return {"kind": kind, "case": f"life {n} on {pes}", **of, **more}

    head = {"kind": "header", "machine": {"gpus": "2 × H200"}, "configuration": {"gpus": [0, 1]}}
    lines = [head]
    for pes, seconds in ((1, 3e-6), (2, 2e-6)):
        lines.append(line("problem", 1024, pes, points=1024, step_count=10))
        for name, factor in (("cpufree", 1), ("host-driven", 2), ("jax", 4))[: 4 - pes]:
            times = {"seconds": factor * seconds, "kernel": factor * seconds, "on_chip": True}
            lines.append(line("measurement", 1024, pes, contender=name, round=0, **times))
    monkeypatch.setattr(programs, "json_lines", lambda name: lines)
    rows = [row for row in programs.text_of("new.jsonl").splitlines() if row.startswith("| life")]
    assert rows == ["| life 1024² | 3 \\* | 6 | 2 \\* | 4 |  | 12 | 4.00 |"]
