"""The harness's side of a contender: its process, requests with a deadline, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cpufree.bench.core.keeper import Keeper
from cpufree.bench.core.processes import kill_session, members, send
from cpufree.env import for_worker
from cpufree.errors import EngineError

LONGEST_ANSWER = 1 << 20  # bytes of a line; what is longer is no answer
KEPT_OF_STDERR = 4000  # bytes
LINES_AHEAD = 100  # that are read before they are wanted
QUIT_SECONDS = 5.0


class WorkerFailure(EngineError):
    """A worker crashed, did not answer in time, or answered nonsense; it has been killed."""


class WorkerProcess:
    """A contender's process, in a session of its own. Between requests all of it is stopped.

    Stopped processes take no core from the others, where MPI's ranks and threads of a BLAS would
    spin while they wait. Closed by `end`, which leaves nothing behind.
    """

    def __init__(
        self, name: str, command: Sequence[str], keeper: Keeper, folder: Path | None = None
    ) -> None:
        """Start a command; its working directory is `folder`, None: that of this process.

        Raises WorkerFailure where it cannot be started.
        """
        self.name = name
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=for_worker(),
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerFailure(f"'{command[0]}' cannot be started: {error}") from None
        self._keeper = keeper
        keeper.keep(self._process.pid)
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._said = b""
        self._members = self._stopped = set[int]()
        self._readers = [
            threading.Thread(target=read, daemon=True)
            for read in (self._read_answers, self._read_stderr)
        ]
        self.alive = True
        for reader in self._readers:
            reader.start()

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline(LONGEST_ANSWER):
            while self.alive and self._lines.qsize() >= LINES_AHEAD:
                time.sleep(0.01)
            self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while said := os.read(self._process.stderr.fileno(), 1 << 16):
            self._hear(said)

    def _hear(self, said: bytes) -> None:
        """Keep the end of what a worker says besides answers."""
        self._said = (self._said + said)[-KEPT_OF_STDERR:]

    def ask(self, request: dict[str, Any], seconds: float, stop: bool = True) -> dict[str, Any]:
        """Return the answer to a request; WorkerFailure where none comes within `seconds`.

        `stop`: the worker is stopped until the next request.
        """
        send(self._stopped, signal.SIGCONT)
        self._stopped = set()
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._await_answer(seconds)
        except (OSError, ValueError):  # ValueError: the pipe is closed
            raise self._failure("ended before it was asked") from None
        if request["do"] != "solve":  # to look for processes at each solve would take too long
            self._members = members(self._process.pid)
        if stop:
            send(self._members, signal.SIGSTOP)
            self._stopped = self._members
        return answer

    def _await_answer(self, seconds: float) -> dict[str, Any]:
        """Return the next line that is an answer; lines that are none are kept for the error."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            try:
                if left < 0:  # a queue that never runs empty gives without waiting
                    raise queue.Empty
                line = self._lines.get(timeout=left)
            except queue.Empty:
                raise self._failure(f"gave no answer within {seconds:g} s") from None
            if line is None:
                raise self._failure("ended without an answer")
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                if isinstance(answer, dict) and "ok" in answer:
                    return answer
            self._hear(line)

    def _failure(self, what: str) -> WorkerFailure:
        """Kill the worker; return the error that says what happened and what it said last."""
        if what.startswith("ended"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self._process.wait(1.0)
                how = signal.Signals(-status).name if status < 0 else f"status {status}"
                what = f"{what} ({how})"
        self.kill()
        said = self._said.decode(errors="replace").strip()
        return WorkerFailure(f"{what}; it said: {said}" if said else f"{what}, and said nothing")

    def kill(self) -> None:
        """End the worker at once, with all that it has started."""
        if not self.alive:
            return
        self.alive = False
        kill_session(self._process.pid)
        self._process.wait()
        self._keeper.forget(self._process.pid)
        for reader in self._readers:
            reader.join(1.0)

    def end(self) -> None:
        """Ask the worker to quit, and see to it that it does."""
        if self.alive:
            with contextlib.suppress(WorkerFailure, subprocess.TimeoutExpired):
                self.ask({"do": "quit"}, QUIT_SECONDS, stop=False)
                self._process.wait(QUIT_SECONDS)
        self.kill()
