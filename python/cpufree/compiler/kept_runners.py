"""Runners that are kept from one call to the next, each for one run at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from cpufree.compiler.runner import Runner


class KeptRunners:
    """The runners that were used last, but for those that run now.

    An engine has the memory of one run. A call beside another one, in a thread or within the
    progress function, gets a runner of its own.
    """

    def __init__(self, most: int) -> None:
        """`most`: to be kept."""
        self._most = most
        self._idle: list[tuple[Hashable, Runner]] = []
        self._alone = threading.Lock()

    @contextmanager
    def taken(self, key: Hashable, make: Callable[[], Runner]) -> Iterator[Runner]:
        """Lend a runner for a key, the one that is kept or a new one."""
        runner = self._take(key)
        if runner is None:
            self._keep(self._most - 1)  # there may not be memory for more
            runner = make()
        try:
            yield runner
        finally:
            with self._alone:
                self._idle.append((key, runner))
            self._keep(self._most)

    def _take(self, key: Hashable) -> Runner | None:
        with self._alone:
            found = next((k for k, (of, _) in enumerate(self._idle) if of == key), None)
            return None if found is None else self._idle.pop(found)[1]

    def _keep(self, most: int) -> None:
        with self._alone:
            dropped = self._idle[: max(0, len(self._idle) - most)]
            del self._idle[: len(dropped)]
        dropped.clear()  # which may free memory of GPUs

    def clear(self) -> None:
        """Keep none of those that do not run."""
        self._keep(0)

    def __len__(self) -> int:
        return len(self._idle)

    def __iter__(self) -> Iterator[Runner]:
        return iter([runner for _, runner in self._idle])
