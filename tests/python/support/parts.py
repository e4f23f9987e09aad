"""Which of the tests are taken: a part of them in their order, and few cases of costly tests."""

from __future__ import annotations

from collections import defaultdict

import pytest


def add_option(group: pytest.OptionGroup) -> None:
    """Add --part."""
    group.addoption("--part", help="one of several parts of the tests, such as 2/3, in their order")


def mark_thorough(items: list[pytest.Item]) -> None:
    """Mark those cases as thorough that a mark `few` leaves out.

    `few(n)` on a test of many cases: n of them, spread evenly, are run by default. Cases that are
    slow or thorough themselves do not count.
    """
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        left_out = item.get_closest_marker("slow") or item.get_closest_marker("thorough")
        if item.get_closest_marker("few") and not left_out:
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        mark = cases[0].get_closest_marker("few")
        count = int(mark.args[0]) if mark else len(cases)
        taken = {k * len(cases) // count for k in range(count)}
        for k, case in enumerate(cases):
            if k not in taken:
                case.add_marker(pytest.mark.thorough)


def keep_part(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not of the part that was asked for."""
    part = config.getoption("--part")
    if not part:
        return
    number, _, parts = part.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise pytest.UsageError(f"--part {part}: give two numbers, such as 2/3")
    begin, end = (k * len(items) // int(parts) for k in (int(number) - 1, int(number)))
    config.hook.pytest_deselected(items=[*items[:begin], *items[end:]])
    items[:] = items[begin:end]
