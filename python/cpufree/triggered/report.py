"""What is left when NICs end: tags that have not fired, and triggers that did not fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cpufree.errors import TriggerError

if TYPE_CHECKING:
    from cpufree import _triggered


@dataclass(frozen=True)
class WaitingTag:
    """A tag that has not fired.

    Attributes
    ----------
    pe : int
        Whose NIC it is.
    tag, epoch : int
    seen : int
        Triggers counted.
    threshold : int or None
        None where the operation was not posted.
    """

    pe: int
    tag: int
    epoch: int
    seen: int
    threshold: int | None

    @property
    def posted(self) -> bool:
        """Whether there was an operation."""
        return self.threshold is not None


@dataclass(frozen=True)
class Report:
    """What NICs had seen when they ended. As text: a line for each tag.

    Attributes
    ----------
    waiting : list of WaitingTag
        Tags that have not fired: an operation lacks triggers, or triggers lack an operation.
    faults : list of dict
        Triggers that did not fit, with keys pe, tag, epoch, count, text.
    """

    waiting: list[WaitingTag] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""

    def check(self) -> None:
        """Raise TriggerError where triggers did not fit."""
        if self.faults:
            raise TriggerError("triggers did not fit their operations" + self.text, self.faults)

    def __str__(self) -> str:
        return self.text.lstrip("\n") or "all operations have fired"


def report_of(raw: _triggered.Report) -> Report:
    """Return the core's report."""
    waiting = [
        WaitingTag(w["pe"], w["tag"], w["epoch"], w["seen"], w["threshold"]) for w in raw["waiting"]
    ]
    return Report(waiting, raw["faults"], raw["text"])
