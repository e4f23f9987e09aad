"""The time of products that the host drives, out of the curves of copies between two PEs."""

from __future__ import annotations

from collections.abc import Sequence

from cpufree.model.patterns.messages import Messages, compute_of, owner
from cpufree.model.samples import PatternSample


class HostDriven:
    """A product whose tiles threads of the host move, one for each PE, by copy engines.

    Copies from one GPU to another, or within one, share the way between them, whichever PE they are
    for: they follow one another by what one more message of a window adds.
    """

    def __init__(self, sample: PatternSample, messages: Messages) -> None:
        self.sample, self.messages = sample, messages
        self.side = round(sample.pes**0.5)
        self.gets = "gets" in sample.pattern
        self.overlapped = "overlapped" in sample.pattern
        self.free: dict[tuple[int, int], float] = {}
        """When the way from a GPU to a GPU is free."""
        self.ended = [0.0] * sample.pes
        """When the last copy of a PE's stream has ended."""

    def seconds(self) -> float:
        """Return the time of moving tiles, or of all of the product where that overlaps."""
        pes = self.sample.pes
        clock, moving = [0.0] * pes, [0.0] * pes
        for step in range(self.side):
            came = self._move(step, clock)
            for pe in range(pes):
                ready = max(clock[pe], came[pe])
                moving[pe] += ready - clock[pe]
                clock[pe] = ready + compute_of(self.sample, pe)
        if self.overlapped:
            return max(clock)
        # Who computes faster than the others waits for what they put.
        known = self.gets or self.sample.computes
        return max(moving) + (0.0 if known else self.sample.apart)

    def _move(self, step: int, clock: Sequence[float]) -> list[float]:
        """Return when PEs have the tiles of a step, and have sent their own where they wait."""
        came = [0.0] * len(clock)
        asks = [0.0] * len(clock) if self.overlapped else list(clock)
        waiting = []
        for which in (0, 1):
            for reader in range(len(clock)):
                source = owner(reader, self.side, step, which)
                if source != reader:
                    waiting.append((which, reader if self.gets else source, source, reader))
        # Of a PE, one after the other; among PEs, by when they ask.
        while waiting:
            first = min(waiting, key=lambda one: (asks[one[1]], one))
            waiting.remove(first)
            _, mover, source, reader = first
            end = self._copy(asks[mover], mover, source, reader)
            came[reader] = max(came[reader], end)
            if not self.overlapped:
                asks[mover] = end
                came[mover] = max(came[mover], end)
        return came

    def _copy(self, issued: float, mover: int, source: int, reader: int) -> float:
        """Return the end of a copy that is asked for at a time."""
        size, gpus = self.sample.bytes, self.sample.gpus
        one = self.messages.of(source, reader, size)
        link = (gpus[source], gpus[reader])
        follows = self.ended[mover] + one.further - one.single if self.ended[mover] else 0.0
        begin = max(issued, follows, self.free.get(link, 0.0))
        self.free[link] = begin + one.further
        self.ended[mover] = begin + one.single
        return self.ended[mover]
