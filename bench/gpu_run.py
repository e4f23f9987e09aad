"""A part of the GPU benchmark under way: guards around what it measures, time, large matrices.

What is measured is written after every single measurement, so that nothing is lost with the
process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import records
from cases import Case, kept_file
from gpu_solves import Matrix, Site

# What a measurement takes, generously: for a start, and per nonzero for loading and set-up.
SECONDS_AT_LEAST = 1.0
NNZ_PER_SECOND = 15e6
WAIT_FOR_MATRIX = 0.1


@dataclass(frozen=True)
class Settings:
    """What a part is given."""

    part: str
    out: str
    engine: str
    devices: tuple[int, ...]
    quick: bool
    seconds: float
    """After this time nothing new is begun."""
    cache: str
    """Folder in which generated matrices are, or will be once they are made."""
    rounds: int
    channels: str
    """The program run_channels."""


@dataclass
class Run:
    """A part under way: what it has found, and what time it has left."""

    settings: Settings
    found: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    begin: float = field(default_factory=time.monotonic)

    @property
    def site(self) -> Site:
        """Where is measured."""
        return Site(self.settings.engine, tuple(self.settings.devices))

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.settings.seconds - (time.monotonic() - self.begin)

    def unit(self, name: str, expected: float, call: Callable[[], dict[str, Any]]) -> bool:
        """Measure one thing; return whether that went well. Errors are kept, not raised."""
        if self.left() < expected:
            why = f"takes some {expected:.0f} s, {max(0.0, self.left()):.0f} s were left"
            self.skipped.append({"name": name, "why": why})
            self.write()
            return False
        try:
            self.found.append(call())
        except Exception as error:
            self.failed.append({"name": name, "error": f"{type(error).__name__}: {error}"})
            return False
        finally:
            self.write()
        return True

    def matrix(self, case: Case) -> Matrix | None:
        """Return a matrix, None where it cannot be had: that is noted.

        Large ones are made meanwhile by gpu.py; its file appears when it is complete.
        """
        try:
            return Matrix(case, wait_for(case, Path(self.settings.cache), self.left))
        except TimeoutError as error:
            self.skipped.append({"name": case.name, "why": str(error)})
        except Exception as error:
            self.failed.append({"name": case.name, "error": f"{type(error).__name__}: {error}"})
        self.write()
        return None

    def write(self) -> None:
        """Write what there is so far."""
        record = {"found": self.found, "failed": self.failed, "skipped": self.skipped}
        record["seconds"] = time.monotonic() - self.begin
        records.write(record, Path(self.settings.out))


def wait_for(case: Case, cache: Path, left: Callable[[], float]) -> Path | str:
    """Return the file of a matrix that is being made, or the text by which it is made here."""
    promise = promise_of(case, cache)
    if not promise.exists():
        return f"gen:{case.spec}"
    while True:
        text = promise.read_text()
        if text.startswith("failed: "):
            raise RuntimeError(f"it could not be made: {text.removeprefix('failed: ')}")
        if text:
            return Path(text)
        if left() < SECONDS_AT_LEAST:
            raise TimeoutError("it was not made in time")
        time.sleep(WAIT_FOR_MATRIX)


def promise_of(case: Case, cache: Path) -> Path:
    """Return the file that says where a matrix is; empty while it is being made."""
    return cache / f"{case.name}.promise"


def keep_promise(case: Case, cache: Path) -> None:
    """Make a matrix, and say where it is."""
    promise = promise_of(case, cache)
    try:
        text = str(kept_file(case, cache))
    except Exception as error:
        text = f"failed: {type(error).__name__}: {error}"
    new = promise.with_suffix(".new")
    new.write_text(text)
    new.replace(promise)


def expected_seconds(nnz: int, setups: int = 1) -> float:
    """Return what setting up and measuring a matrix takes, about."""
    return SECONDS_AT_LEAST + setups * nnz / NNZ_PER_SECOND
