"""The workers of a run: started when first needed, all alive at once, ended together."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from cpufree.bench.core.entry import Entry
from cpufree.bench.core.keeper import Keeper
from cpufree.bench.core.plan import Plan
from cpufree.bench.core.worker_process import WorkerFailure, WorkerProcess
from cpufree.errors import CpufreeError


class Refused(CpufreeError):
    """A contender's answer that it cannot do what was asked; it lives on."""

    def __init__(self, message: str, unsupported: bool) -> None:
        super().__init__(message)
        self.unsupported = unsupported


class Pool:
    """One worker a contender; one whose command names the PEs is started again when they change.

    A context manager: no process is left behind, whatever happens.
    """

    def __init__(self, configuration: Plan) -> None:
        self._configuration = configuration
        self._workers: dict[str, tuple[WorkerProcess, int]] = {}
        self._keeper = Keeper()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for worker, _ in self._workers.values():
            if error is None:
                worker.end()
            else:
                worker.kill()
        self._keeper.__exit__(kind, error, at)

    def load(self, entry: Entry, pes: int, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Have a contender load a problem on N PEs; return its facts.

        `options`: those of the benchmark. Raises WorkerFailure where its process fails, Refused
        where it says why not.
        """
        self._start(entry, pes)
        gpus = self._configuration.gpus
        options = {
            "pes": pes,
            "gpus": None if gpus is None else list(gpus[:pes]),
            **options,
            "tuning": self._configuration.tuning.get(entry.name, {}),
        }
        answer = self.ask(entry.name, {"do": "load", "folder": str(folder), "options": options})
        facts = answer.get("facts")
        return facts if isinstance(facts, dict) else {}

    def _start(self, entry: Entry, pes: int) -> None:
        if entry.name in self._workers:
            worker, started_for = self._workers[entry.name]
            if worker.alive and (started_for == pes or not entry.by_pes):
                return
            worker.end()
        command = entry.command_for(pes)
        worker = WorkerProcess(entry.name, command, self._keeper, entry.folder)
        self._workers[entry.name] = worker, pes

    def ask(self, name: str, request: dict[str, Any], stop: bool = True) -> dict[str, Any]:
        """Return the answer of a contender that has loaded; `stop` as of WorkerProcess.ask.

        Raises WorkerFailure where its process fails, Refused where it says why not.
        """
        worker, _ = self._workers[name]
        if not worker.alive:
            raise WorkerFailure("it has ended before")
        answer = worker.ask(request, self._configuration.timeout, stop)
        if not answer["ok"]:
            why = str(answer.get("error") or "no reason was given")
            raise Refused(why, bool(answer.get("unsupported")))
        return answer
