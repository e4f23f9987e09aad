"""Sentences that quote figures on hand-written pages, against the records."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import bench_script
import pytest

from tools.page_figures import PAGES
from tools.page_tables import marks, run, with_tables
from tools.results.records import FOLDER, ROOT


def test_the_tables_of_compiled_programs_are_what_the_records_say(tmp_path: Path) -> None:
    tables = bench_script.load("gpu_program_tables")
    written = (ROOT / "docs/compiler.md").read_text(encoding="utf-8")
    inside = written.partition(tables.BEGIN)[2].partition(tables.END)[0]
    names = dict.fromkeys(re.findall(r"bench/results/(programs-[\w-]+\.jsonl)", inside))
    records = {
        name: [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]
        for name in names
    }
    page = tmp_path / "compiler.md"
    shutil.copyfile(ROOT / "docs/compiler.md", page)
    tables.write_page(page, tables.page(records))
    assert page.read_text(encoding="utf-8") == written


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
