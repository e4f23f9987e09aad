"""The host's part while kernels run: progress to the user, Ctrl-C to the kernels."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

from cpufree.engines.progress_bar import ProgressBar
from cpufree.errors import InvalidInputError

Progress: TypeAlias = Callable[[int, float], "bool | None"]
ProgressLike: TypeAlias = Progress | bool | None
"""True: a bar. A function of iteration and norm; where it returns False, the run ends."""


class Watch:
    """Follows a running solve: forwards its progress, turns Ctrl-C into a request to stop.

    A context manager around the solve. While it is open, Ctrl-C sets `interrupted` (in the main
    thread, unless the program has a handler of its own); an exception of the user's callable is
    kept in `error`. Both make the call return False, which asks the kernels to stop.
    """

    def __init__(self, progress: ProgressLike) -> None:
        """Raise InvalidInputError for a progress that is neither a bool, a function nor None."""
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise InvalidInputError(f"progress is {progress!r}: give True, a function, or None")
        self.wants_bar = progress is True
        self.progress: Callable[[int, float], bool | None] | None = None
        if not isinstance(progress, bool):
            self.progress = progress
        self.tracing: dict[str, Any] | None = None
        """How the run is traced, for the compiled core; None: it is not."""
        self.interrupted = False
        self.error: BaseException | None = None
        self._handles_signal = False

    @contextmanager
    def bar(self, rank: int, make: Callable[[], ProgressBar]) -> Iterator[None]:
        """Show the bar that `make` makes, if one is asked for: of several processes, rank 0's."""
        if rank > 0 or not self.wants_bar:
            yield
            return
        with make() as bar:
            self.progress = bar
            try:
                yield
            finally:
                self.progress = None

    def __enter__(self) -> Watch:
        self._handles_signal = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._handles_signal:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *error: object) -> None:
        if self._handles_signal:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @property
    def ends(self) -> bool:
        """Whether kernels are asked to stop, by Ctrl-C or an error."""
        return self.interrupted or self.error is not None

    def __call__(self, iteration: int, residual: float) -> bool:
        begun = iteration > 0 or residual != 0.0  # kernels have not told a norm until then
        return self.hears(iteration, residual) if begun else not self.ends

    def hears(self, iteration: int, residual: float) -> bool:
        """Return whether to go on, as progress says; also where kernels tell of no norm."""
        if self.ends:
            return False
        if self.progress is None:
            return True
        try:
            answer = self.progress(iteration, residual)
        except BaseException as error:  # raised again once the kernels have ended
            self.error = error
            return False
        return answer is None or bool(answer)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = True
