"""What auto chooses, against the records that the choice rests on."""

from __future__ import annotations

from tools import method_table


def test_the_table_of_the_page_is_up_to_date() -> None:
    assert method_table.MARKS[0] in method_table.PAGE.read_text(encoding="utf-8")
    assert method_table.PAGE.read_text(encoding="utf-8") == method_table.page()


def test_auto_is_prcg_for_all_systems_of_the_records() -> None:
    assert {case.auto for case in method_table.cases()} == {"prcg"}
