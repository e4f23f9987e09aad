"""Sentences that quote figures on hand-written pages, against the records."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.page_figures import PAGES
from tools.page_tables import marks, run, with_tables
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_what_the_records_say(page: Path) -> None:
    written = page.read_text(encoding="utf-8")
    assert with_tables(written, PAGES[page]()) == written


def test_a_page_out_of_date_is_named_and_then_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {tmp_path / f"{name}.md": lambda: {"one": "new\n"} for name in ("a", "b")}
    begin, end = marks("one")
    for page, text in zip(pages, ("new", "old"), strict=True):
        page.write_text(f"{begin}{text}\n{end}")
    monkeypatch.setattr("sys.argv", ["figures", "--check"])
    assert run("figures", pages) == 1
    assert capsys.readouterr().err == "b.md is out of date: run figures --write\n"
    monkeypatch.setattr("sys.argv", ["figures", "--write"])
    assert run("figures", pages) == 0
    assert (tmp_path / "b.md").read_text() == f"{begin}new\n{end}"
