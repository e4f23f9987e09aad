"""Ranks of `cpufree run` that have ended: the launcher tells those that wait for them to come.

It writes them into a file beside the one at which its ranks meet.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path


def write(meeting: Path, ends: Mapping[int, str]) -> None:
    """Tell how ranks have ended, the first one first, in one step.

    Where that cannot be written, it is not reported.
    """
    draft = _file(meeting).with_suffix(".draft")
    with contextlib.suppress(OSError):
        draft.write_text(json.dumps({str(rank): how for rank, how in ends.items()}))
        os.replace(draft, _file(meeting))


def read(meeting: Path) -> dict[int, str]:
    """Return how ranks have ended, the first one first; none where no launcher tells it."""
    try:
        reported: dict[str, str] = json.loads(_file(meeting).read_text())
        return {int(rank): how for rank, how in reported.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def spell(code: int) -> str:
    """Return how a process has ended, from what subprocess says."""
    return f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"


def too_early(how: str) -> str:
    """Return what is said of a rank that is gone before the team is complete."""
    return f"has ended {how} before all ranks had come; start all ranks in the same way"


def _file(meeting: Path) -> Path:
    return meeting.with_name(meeting.name + ".ended")
