"""The other ends of ways: processes that answer each JSON line with one, and GPUs of two PEs."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from cpufree.errors import EngineError
from cpufree.extension import load_core


def why_no_pair(found: Sequence[int]) -> str:
    """Return why there are no GPUs for two PEs, "" where `found` has them."""
    core = load_core()
    if not found:
        return str(core.gpu_note()) or "there is no GPU"
    if len(found) < 2:
        return "two PEs need a GPU each, and there is one"
    return str(core.peer_problem(list(found[:2])))


class LinePeers:
    """Processes of a way, asked together."""

    def __init__(self, who: str, limit: float) -> None:
        self.who = who
        """For errors: "way nvshmem-p: a process of NVSHMEM"."""
        self.limit = limit
        """Seconds that an answer may take."""
        self._processes: list[subprocess.Popen[str]] = []

    @property
    def running(self) -> bool:
        """Whether they have been started."""
        return bool(self._processes)

    def start(
        self, program: Sequence[str], count: int, env: Mapping[str, str] | None = None
    ) -> None:
        """Start N processes of a program.

        Raises:
            EngineError: one cannot start.
        """
        try:
            for _ in range(count):
                self._processes.append(
                    subprocess.Popen(
                        program, text=True, bufsize=1, env=env,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    )
                )  # fmt: skip
        except OSError as error:
            self.close()
            raise EngineError(f"{self.who} cannot start: {error}") from None

    def ask(self, lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send a line to each of the first processes, and return what each answers.

        Raises:
            EngineError: one says so, is gone, or takes longer than the limit; then all are ended.
        """
        with contextlib.suppress(EngineError):  # told by what it answers, or that it does not
            self.send(lines)
        return self.answers(len(lines))

    def send(self, lines: Sequence[dict[str, Any]]) -> None:
        """Send a line to each of the first processes; EngineError where one is gone."""
        gone = False
        for process, line in zip(self._processes, lines, strict=False):
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps(line) + "\n")
                process.stdin.flush()
            except OSError:
                gone = True
        if gone:
            raise EngineError(f"{self.who} is gone")

    def answers(self, count: int) -> list[dict[str, Any]]:
        """Return what the first processes answer; errors as of `ask`."""
        late = threading.Event()
        clock = threading.Timer(self.limit, self._end_late, [late])
        clock.start()
        try:
            found = [self._answer(process) for process in self._processes[:count]]
        finally:
            clock.cancel()
        errors = [answer["error"] for answer in found if "error" in answer]
        if errors:
            # What one says is more than that another one is gone.
            why = next((one for one in errors if one != "is gone"), "is gone")
            why = f"took longer than {self.limit:g} s" if late.is_set() else why
            raise EngineError(f"{self.who} {why}")
        return found

    @property
    def first(self) -> subprocess.Popen[str]:
        """The first process."""
        return self._processes[0]

    def kill(self) -> None:
        """End all at once."""
        for process in self._processes:
            process.kill()

    def _end_late(self, late: threading.Event) -> None:
        late.set()
        self.kill()

    @staticmethod
    def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        for line in process.stdout:  # a library may print as well
            with contextlib.suppress(ValueError):
                # The first object of the line: mpirun may put those of two processes into one.
                answer, _ = json.JSONDecoder().raw_decode(line.lstrip())
                if isinstance(answer, dict):
                    return answer
        return {"error": "is gone"}

    def close(self) -> None:
        """End all."""
        processes, self._processes = self._processes, []
        for process in processes:
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()  # it ends when it reads no more lines
        for process in processes:
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
