"""Pages and the picture of the README hold what the records say."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))  # tools/ is no installed package

from tools.results.__main__ import MADE, PICTURE, stale, write  # noqa: E402

PAGE = ROOT / "docs/results.md"


@pytest.mark.parametrize("page", MADE, ids=lambda page: page.name)
def test_pages_have_what_the_records_say(page: Path) -> None:
    written = page.read_text(encoding="utf-8")
    assert MADE[page](written) == written, "run `make results`"


def test_a_page_and_a_picture_that_were_edited_are_found_and_the_page_is_written(
    tmp_path: Path,
) -> None:
    page, picture = tmp_path / "results.md", tmp_path / "timeline.svg"
    page.write_text(PAGE.read_text(encoding="utf-8").replace("4.21×", "5.21×"), encoding="utf-8")
    picture.write_text(PICTURE.read_text(encoding="utf-8").replace("11.84", "8.16"), "utf-8")
    made = {page: MADE[PAGE]}
    assert stale(made, picture) == [page, picture]
    write(made)
    assert stale(made) == []


def test_every_record_is_listed_with_date_commit_and_command() -> None:
    text = PAGE.read_text(encoding="utf-8")
    used = set(re.findall(r"\.\./bench/results/([^)]+)", text))
    listed = re.findall(
        r"^- \[([^\]]+)\].*\d{4}-\d\d-\d\d, commit \w{7}.*\n  <br>`\S.*`$", text, re.M
    )
    assert used == set(listed)


def test_look_alikes_are_called_so() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    names = re.findall(r"\b(?:hood|Queen_4147|audikw_1|Flan_1565|Serena)\b(\S*)", "\n".join(rows))
    assert names
    assert all(rest.startswith("-like") for rest in names)


def test_records_name_no_folder_of_the_machine_that_made_them() -> None:
    for path in sorted((ROOT / "bench/results").rglob("*.json*")):
        with path.open(encoding="utf-8") as lines:
            head = lines.read(20_000)
        found = re.findall(r'"command": "[^"]*(?<![\w.])/(?:tmp|root|home|work)/[^"]*"', head)
        assert not found, f"{path.name}: {found[0][:200]}"
