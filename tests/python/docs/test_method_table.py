"""What auto chooses, against the records that the choice rests on."""

from __future__ import annotations

import pytest

from tools import method_table
from tools.method_table import Case


def test_records_have_systems_of_each_choice() -> None:
    found = [case.auto for case in method_table.cases()]
    assert {name: found.count(name) for name in set(found)} == {"cg": 3, "pipecg": 4, "prcg": 75}


@pytest.mark.parametrize(
    "case",
    [case for case in method_table.cases() if case.auto != "prcg"],
    ids=lambda case: f"{case.machine} {case.auto}",
)
def test_where_auto_departs_from_prcg_the_record_has_it_faster(case: Case) -> None:
    assert case.seconds[case.auto] < case.seconds["prcg"]
