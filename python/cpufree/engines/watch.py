"""The host's part while kernels run: progress to the user, Ctrl-C to the kernels."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

Progress = Callable[[int, float], "bool | None"]


class Watch:
    """Follows a running solve: forwards its progress, turns Ctrl-C into a request to stop.

    A context manager around the solve. While it is open, Ctrl-C sets `interrupted` (in the main
    thread, unless the program has a handler of its own); an exception of the user's callable is
    kept in `error`. Both make the call return False, which asks the kernels to stop.
    """

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.interrupted = False
        self.error: BaseException | None = None
        self._handles_signal = False

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

    def __call__(self, iteration: int, residual: float) -> bool:
        if self.interrupted or self.error is not None:
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
