"""Where the time of a set-up goes."""

from __future__ import annotations

import time
from collections.abc import Mapping


class Laps:
    """Seconds of what is done one after the other, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begin = self._last = time.perf_counter()

    def lap(self, name: str, parts: Mapping[str, float] | None = None) -> None:
        """Note what has passed since the lap before, or since this was made, and its parts."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now
        for part, seconds in (parts or {}).items():
            self.seconds[f"{name}_{part}"] = seconds

    def total(self) -> float:
        """Return what has passed since this was made."""
        return time.perf_counter() - self._begin

    def named(self, whole: str) -> dict[str, float]:
        """Return the laps as parts of a whole: "setup_join" and so on."""
        return {f"{whole}_{name}": seconds for name, seconds in self.seconds.items()}
