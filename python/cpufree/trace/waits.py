"""What blocks waited for when a kernel was given up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

Block = tuple[int, int]
"""PE and block."""


class Cause(str, Enum):
    """What keeps a message from being seen."""

    LOST = "lost"
    MISDIRECTED = "misdirected"
    NEVER_SENT = "never sent"
    TOO_LOW = "too low"
    THRESHOLD = "threshold too high"
    LATE = "late"
    LEFT = "left its kernel"
    DEAD = "dead"
    STOPPED = "stopped"
    BUSY = "busy"
    CYCLE = "cycle"


@dataclass(frozen=True)
class Wait:
    """What a block was doing when all was given up."""

    block: Block
    state: str
    """"expired" or "aborted" where it waited, "waiting" where it still does; "finished", "running",
    "absent", or "stopped": its process gives no sign of life."""
    channel: str = ""
    target: Block = (-1, -1)
    epoch: int = 0
    seen: int = 0
    seconds: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether it waited."""
        return self.state in ("expired", "aborted", "waiting")

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Wait:
        """Return what an entry of WaitTimeoutError.blocks tells."""
        return cls(
            (raw["pe"], raw["block"]), raw["state"], raw["channel"],
            (raw["waits_for_pe"], raw["waits_for_block"]), raw["epoch"], raw["seen"],
            raw["seconds"],
        )  # fmt: skip
