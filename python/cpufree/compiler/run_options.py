"""Options of a run that are no matter of where it runs: bounds, progress, traces."""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.compiler import ir
from cpufree.compiler.runner import Ran, Runner
from cpufree.engines.choices import valid
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.env import Env
from cpufree.laps import Laps
from cpufree.options import WAIT_LIMIT, WAIT_SECONDS
from cpufree.trace import asked
from cpufree.trace.asked import TraceGiven
from cpufree.trace.records import Kind, Trace


def options_of_run(
    wait_limit: float | None, progress: ProgressLike, env: Env
) -> tuple[float, Watch]:
    """Return how long a PE may wait for another one, and what follows the run.

    Raises
    ------
    InvalidInputError
        What the call asks for is wrong.
    """
    limit = env.wait_limit if wait_limit is None else valid(WAIT_LIMIT, wait_limit)
    return WAIT_SECONDS if limit is None else limit, Watch(progress)


@dataclass(frozen=True)
class Traced:
    """Whether a run is traced, and where to."""

    given: TraceGiven

    @classmethod
    def of(cls, given: TraceGiven) -> Traced:
        """Return what was asked for; InvalidInputError where that can be no trace."""
        return cls(asked.checked(given))

    @property
    def asked(self) -> bool:
        """Whether the run is traced."""
        return bool(self.given)

    def trace_of(self, name: str, runner: Runner, ran: Ran, laps: Laps) -> Trace | None:
        """Return the trace of a run that has ended, None where it is not traced."""
        if ran.trace is None:
            return None
        from cpufree.trace.finished import finished  # for those who want traces

        raw = Trace.of_core(ran.trace, {})
        turns = raw.lower[raw.select(Kind.ITERATION)]
        facts = {
            "what": f"program {name}",
            "engine": runner.engine.name,
            "pes": raw.pes,
            "blocks": int(raw.tracks[:, 1].max(initial=0)) + 1,
            "iterations": int(turns.max(initial=1)),
            "kernel_seconds": ran.seconds,
            "phases": laps.named("program"),
            "sections": sections_of(runner.layout.program),
        }
        team = getattr(runner.engine, "team", None)
        return finished(ran.trace, facts, self.given, team is None or team.rank == 0)


def sections_of(program: ir.Program) -> dict[str, str]:
    """Return what the sections of a kernel are called: by the first line of those done together."""
    found = {number: f"line {number}: {text}" for number, text in program.lines.items()}
    together: dict[int, set[int]] = {}
    for s in ir.walk(program.body):
        if isinstance(s, ir.Group):
            lines = [stage.work.line for stage in s.stages]
            together.setdefault(lines[0], set()).update(lines)
    for first, several in together.items():
        if len(several) > 1:
            numbers = ", ".join(map(str, sorted(several)))
            found[str(first)] = f"lines {numbers}: {program.lines.get(str(first), '')} …"
    return found
