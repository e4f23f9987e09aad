"""Contenders whose PEs are processes over NVSHMEM, one for each GPU, new ones for each problem.

This process computes nothing. It starts the ranks, passes the id by which they find one another and
each request on to all of them, and gives rank 0's answer. Fresh processes for each problem have
symmetric memory of its size, and nothing left over from one that failed.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.bench.contenders import nvshmem
from cpufree.bench.core.problem_folder import read_arrays
from cpufree.bench.core.rank_processes import RankProcesses
from cpufree.env import for_nvshmem
from cpufree.errors import EngineError, InvalidInputError, UnsupportedError

HELLO_SECONDS = 120.0  # Python, the extension and NVSHMEM's library are loaded
ANSWER_SECONDS = 3600.0  # far beyond any: who asks this process has a deadline of his own
QUIT_SECONDS = 2.0  # less than the harness gives a worker


class NvshmemProcesses(ABC):
    """A baseline on as many processes as there are PEs."""

    name = ""

    def __init__(self) -> None:
        self._ranks: RankProcesses | None = None
        self._folder = Path()  # of the problem that is loaded

    @abstractmethod
    def rank_program(self) -> Sequence[str]:
        """Return the command of a rank, without its arguments (those of `nvshmem_rank`)."""

    @abstractmethod
    def heap_bytes(self, folder: Path, pes: int) -> int:
        """Return the bytes of symmetric memory that the problem needs on each PE."""

    @abstractmethod
    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what the request says, on all ranks."""

    def load(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Start the ranks and have them set up; UnsupportedError where NVSHMEM is missing."""
        self.close()
        pes, gpus = int(options["pes"]), options.get("gpus")
        if not gpus:
            raise UnsupportedError(f"baseline '{self.name}' needs GPUs")
        if len(gpus) < pes:
            raise UnsupportedError(f"baseline '{self.name}': {pes} PEs need {pes} GPUs")
        tuning = dict(options.get("tuning") or {})
        library = str(tuning.get("nvshmem_library") or nvshmem.find())
        environment = for_nvshmem(self.heap_bytes(folder, pes))
        commands = [[*self.rank_program(), str(k), str(os.getpid()), library] for k in range(pes)]
        self._ranks, self._folder = RankProcesses(commands, environment), folder
        try:
            hello = self._answers(HELLO_SECONDS)
            tuning |= {"nvshmem_library": library, "nvshmem_id": hello[0]["id"]}
            mine = [{**options, "tuning": {**tuning, "rank": k}} for k in range(pes)]
            asked = [{"do": "load", "folder": str(folder), "options": how} for how in mine]
            self._ranks.tell(asked)
            facts: dict[str, Any] = self._answers(ANSWER_SECONDS)[0]["facts"]
        except BaseException:
            self._kill()
            raise
        reported = {key: value for key, value in environment.items() if key.startswith("NVSHMEM_")}
        return {**facts, "environment": reported}

    def ask(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the answers of all ranks to a request that is to be solved."""
        self._ranks_there().tell([{**request, "do": "solve"}] * self._ranks_there().count)
        return self._answers(ANSWER_SECONDS)

    def _ranks_there(self) -> RankProcesses:
        if self._ranks is None:
            raise InvalidInputError("solve was asked for before load, or after a failure")
        return self._ranks

    def _answers(self, seconds: float) -> list[dict[str, Any]]:
        """Return the answers of all; where one failed, end all but those that refuse together."""
        answers = self._ranks_there().answers(seconds)
        failed = [k for k, answer in enumerate(answers) if not answer["ok"]]
        if not failed:
            return answers
        unsupported = all(answer.get("unsupported") for answer in answers)
        if not unsupported:
            self._kill()
        # Who speaks knows more than who has ended, and that one more than who waits for others.
        first = min(failed, key=lambda k: (answers[k].get("silence", 0), k))
        kind = UnsupportedError if answers[first].get("unsupported") else EngineError
        raise kind(f"PE {first}: {answers[first]['error']}")

    def _kill(self) -> None:
        ranks, self._ranks = self._ranks, None
        if ranks is not None:
            ranks.kill()

    def close(self) -> None:
        """End the ranks."""
        ranks, self._ranks = self._ranks, None
        if ranks is not None:
            ranks.end(QUIT_SECONDS)


class NvshmemContender(NvshmemProcesses):
    """The contender `nvshmem_on_stream`: conjugate gradients."""

    name = "nvshmem_on_stream"

    def rank_program(self) -> Sequence[str]:
        """Return the command of a rank."""
        return nvshmem.RANK

    def heap_bytes(self, folder: Path, pes: int) -> int:
        """Return bytes for vectors with ghosts."""
        return nvshmem.heap_bytes(read_arrays(folder), pes)

    def solve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Solve on all ranks, which write their rows of x."""
        self._ranks_there()
        if request.get("save"):
            b = read_arrays(self._folder).b
            kind, shape = b.dtype, b.shape
            np.lib.format.open_memmap(request["save"], mode="w+", dtype=kind, shape=shape).flush()
        answers = self.ask(request)
        if len({(answer["iterations"], answer["reason"]) for answer in answers}) > 1:
            self._kill()
            raise EngineError(f"the PEs ended in different ways: {answers}")
        return {key: value for key, value in answers[0].items() if key != "ok"}
