"""The picture of a trace in README and docs/trace.md: two iterations of a recorded solve."""

from __future__ import annotations

from pathlib import Path

from cpufree.trace import files
from cpufree.trace.timeline_picture import save_timeline
from tools.results.records import ROOT

RECORD = ROOT / "bench/results/trace-cpu-2026-11-29.pftrace"
PICTURE = ROOT / "docs/pictures/trace.svg"


def draw(path: Path) -> None:
    """Draw the picture: `cpufree trace picture RECORD PATH` does the same."""
    save_timeline(files.checked(files.load(RECORD)), str(path))
