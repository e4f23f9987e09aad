"""A list of tests that failed, written while others still run."""

from __future__ import annotations

from pathlib import Path

import pytest


class Failures:
    """Writes what fails to a file at once: a run that is ended from outside has told it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a failure."""
        if report.failed:
            with self.file.open("a") as out:
                out.write(f"==== {report.nodeid} ({report.when}, {report.duration:.1f} s)\n")
                out.write(report.longreprtext[-3000:] + "\n")
