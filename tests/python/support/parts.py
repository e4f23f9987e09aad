"""Parts of the tests, in their order: an option of pytest."""

from __future__ import annotations

import pytest


def add_option(group: pytest.OptionGroup) -> None:
    """Add --part."""
    group.addoption("--part", help="one of several parts of the tests, such as 2/3, in their order")


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
