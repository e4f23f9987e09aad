"""What auto chooses, against the records that the choice rests on."""

from __future__ import annotations

from tools.results import method_table


def test_auto_is_prcg_for_all_systems_of_the_records() -> None:
    assert {case.auto for case in method_table.cases()} == {"prcg"}
