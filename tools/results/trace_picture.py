"""The picture of a trace in README and docs/trace.md: two iterations of a solve on two GPUs."""

from __future__ import annotations

from pathlib import Path

from cpufree.trace import files
from cpufree.trace.timeline_picture import save_timeline
from tools.results.records import ROOT

RECORD = ROOT / "bench/results/trace-2x-2026-11-30.records"
PICTURE = ROOT / "docs/pictures/trace.svg"


def draw(path: Path) -> None:
    """Draw the picture, as `cpufree trace picture` does of a whole trace."""
    save_timeline(files.checked(files.unpack(RECORD.read_bytes())), str(path))
