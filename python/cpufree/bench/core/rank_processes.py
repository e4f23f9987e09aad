"""Processes that are the ranks of one contender: asked together, and ended together."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

GRACE_SECONDS = 10.0  # for the others, once one has failed: what they know may be the reason
KEPT_OF_STDERR = 2000  # bytes


class RankProcesses:
    """Children that take a JSON line on stdin and answer by one on stdout.

    None of them outlives `end`; to end with this process, however that ends, is up to them.
    """

    def __init__(self, commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> None:
        """Start a process for each command; OSError where one cannot be started."""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._said = [tempfile.TemporaryFile() for _ in commands]  # noqa: SIM115
        self._read = [b"" for _ in commands]
        try:
            for command, said in zip(commands, self._said, strict=True):
                self._processes.append(
                    subprocess.Popen(
                        command,
                        bufsize=0,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=said,
                        env=environment,
                    )
                )
        except OSError:
            self.kill()
            raise

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._processes)

    def tell(self, requests: Sequence[Mapping[str, Any]]) -> None:
        """Send each process its request."""
        for process, request in zip(self._processes, requests, strict=True):
            assert process.stdin is not None
            with contextlib.suppress(OSError):  # it has ended: `answers` will say so
                process.stdin.write(json.dumps(request).encode() + b"\n")

    def answers(self, seconds: float) -> list[dict[str, Any]]:
        """Return everybody's next answer; who gives none within `seconds`, or has ended, fails.

        Once one has failed, the others have no more than GRACE_SECONDS left.
        """
        end = time.monotonic() + seconds
        found: dict[int, dict[str, Any]] = {}
        with selectors.DefaultSelector() as ready:
            for rank, process in enumerate(self._processes):
                assert process.stdout is not None
                ready.register(process.stdout, selectors.EVENT_READ, rank)
            # A line may have been read together with the one before.
            waiting = list(range(len(self._processes)))
            while len(found) < len(self._processes):
                for rank in waiting:
                    answer = self._answer(rank)
                    if answer is not None:
                        found[rank] = answer
                        ready.unregister(self._processes[rank].stdout)  # type: ignore[arg-type]
                        if not answer["ok"]:
                            end = min(end, time.monotonic() + GRACE_SECONDS)
                left = end - time.monotonic()
                if left <= 0.0 or len(found) == len(self._processes):
                    break
                waiting = [key.data for key, _ in ready.select(left)]
                for rank in waiting:
                    self._receive(rank)
        late = self._failure("gave no answer in time", 2)
        return [found.get(rank, late) for rank in range(len(self._processes))]

    def _receive(self, rank: int) -> None:
        """Take what is there, which may be the end."""
        stdout = self._processes[rank].stdout
        assert stdout is not None
        data = os.read(stdout.fileno(), 1 << 16)
        self._read[rank] += data or b"\0\n"  # no JSON: the mark of the end

    def _answer(self, rank: int) -> dict[str, Any] | None:
        """Return the next answer among the lines read, None where there is none yet."""
        while b"\n" in self._read[rank]:
            line, _, self._read[rank] = self._read[rank].partition(b"\n")
            if line.endswith(b"\0"):
                return self._end_of(rank)
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                if isinstance(answer, dict) and "ok" in answer:
                    return answer
        return None

    def _end_of(self, rank: int) -> dict[str, Any]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._processes[rank].wait(1.0)
        said = self._last_words(rank)
        status = self._processes[rank].returncode
        return self._failure(f"ended without an answer (status {status}); it said: {said}", 1)

    @staticmethod
    def _failure(what: str, silence: int) -> dict[str, Any]:
        """Return the answer of who gives none; the more silent, the less it explains."""
        return {"ok": False, "error": what, "unsupported": False, "silence": silence}

    def _last_words(self, rank: int) -> str:
        # Not by seek and read: the process writes where this one's place in the file is.
        file = self._said[rank].fileno()
        begin = max(0, os.fstat(file).st_size - KEPT_OF_STDERR)
        return os.pread(file, KEPT_OF_STDERR, begin).decode(errors="replace").strip() or "nothing"

    def end(self, seconds: float) -> None:
        """Ask all to quit, and kill who has not after `seconds`."""
        self.tell([{"do": "quit"}] * len(self._processes))
        limit = time.monotonic() + seconds
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """End all at once."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may take its time
                process.wait(GRACE_SECONDS)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        for said in self._said:
            said.close()
