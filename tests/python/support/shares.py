"""Parts of the tests, in their order, and shares of their files: options of pytest."""

from __future__ import annotations

import pytest


def add_options(group: pytest.OptionGroup) -> None:
    """Add --part and --share."""
    group.addoption("--part", help="one of several parts of the tests, such as 2/3, in their order")
    group.addoption(
        "--share", help="one of several shares of the test files, such as 2/3: every third of them"
    )


def keep_what_is_asked_for(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not of the part, or of the share."""
    if part := config.getoption("--part"):
        number, parts = _one_of_several("--part", part)
        begin, end = (k * len(items) // parts for k in (number - 1, number))
        _keep(config, items, {item.nodeid for item in items[begin:end]})
    if share := config.getoption("--share"):
        number, shares = _one_of_several("--share", share)
        # Files stay together, for their fixtures are made once. Neighbours take like times.
        files = {path: k for k, path in enumerate(dict.fromkeys(item.path for item in items))}
        mine = {item.nodeid for item in items if files[item.path] % shares == number - 1}
        _keep(config, items, mine)


def _one_of_several(option: str, given: str) -> tuple[int, int]:
    """Return the numbers of K/N."""
    number, _, several = given.partition("/")
    if not (number.isdigit() and several.isdigit() and 1 <= int(number) <= int(several)):
        raise pytest.UsageError(f"{option} {given}: give two numbers, such as 2/3")
    return int(number), int(several)


def _keep(config: pytest.Config, items: list[pytest.Item], names: set[str]) -> None:
    """Deselect all but some tests."""
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = [item for item in items if item.nodeid in names]
