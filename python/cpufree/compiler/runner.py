"""Runs programs: loads fields, launches, checks faults, and stores what has been written.

An *engine* has the memory of PEs and launches kernels: threads of the CPU (launch.py), processes
(processes.py), GPUs (gpu_run.py), or the host that drives GPUs (hosted.py). A *layout* (layout.py)
knows where fields lie, of one caller whose rows are divided among PEs, or of ranks with arrays of
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cpufree import device_arrays
from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.arrays import Part, as_given, divided_first, gather, scatter
from cpufree.compiler.faults import error_of
from cpufree.compiler.layout import Layout
from cpufree.engines.choices import valid
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.env import Env
from cpufree.laps import Laps
from cpufree.options import WAIT_LIMIT, WAIT_SECONDS
from cpufree.trace import asked
from cpufree.trace.asked import Recording, TraceGiven
from cpufree.trace.records import Kind, Trace

Words: TypeAlias = npt.NDArray[np.int64]
Table: TypeAlias = tuple[int, int, Words]
"""Words that lie in a heap before a run: PE, offset, and the words."""


RawTrace: TypeAlias = "dict[str, Any] | None"
"""Of the compiled core (cpufree.trace.Trace.of_core); None: the run is not traced."""


@dataclass(frozen=True)
class Outcome:
    """What a launch leaves: seconds, whether it was asked to stop, results, and faults."""

    seconds: float
    stopped: bool
    results: Words
    """As many as the layout says, for each owner of arrays."""
    faults: Words
    """Pairs of code and line."""
    trace: RawTrace = None


class Engine(Protocol):
    """The memory of PEs, and launches of a kernel there."""

    name: str
    takes_gaps: bool
    """Whether the values of arrays need not lie one behind the other."""

    @property
    def devices(self) -> Sequence[int]:
        """The GPU of each PE; none on CPUs."""

    def load(self, parts: Sequence[Part], tables: Sequence[Table]) -> None:
        """Take memory for all PEs, zeros; write rows of arrays and tables."""

    def launch(self, scalars: Words, results: int, wait_limit: float, watch: Watch) -> Outcome:
        """Run to the end; `results`: words that all owners of arrays get."""

    def store(self, parts: Sequence[Part]) -> None:
        """Write rows into arrays."""

    def free(self) -> None:
        """Give up memory that is not kept from one run to the next."""


@dataclass(frozen=True)
class Ran:
    """What a run leaves: of each owner of arrays, arrays and scalars by name."""

    seconds: float = 0.0
    stopped: bool = False
    arrays: list[dict[str, Any]] = field(default_factory=list)
    scalars: list[dict[str, Any]] = field(default_factory=list)
    trace: RawTrace = None


class Runner:
    """A compiled program on an engine, for one call after another."""

    def __init__(self, layout: Layout, engine: Engine, kept: Collection[str]) -> None:
        """`kept`: the program's own fields that callers get."""
        self.layout, self.engine, self.kept = layout, engine, kept

    def run(
        self,
        given: Sequence[Arguments],
        data: Mapping[str, Any],
        scalars: Mapping[str, Any],
        wait_limit: float,
        watch: Watch,
        laps: Laps,
    ) -> Ran:
        """Load, launch, wait, and store.

        The callers' arrays are written once the kernel has ended well: else they stay as they were.

        `given` are the arguments of the caller, or of each rank; `data` and `scalars` the values of
        constants and scalars, by name. `laps` gets "load", "run" and "store".

        Raises
        ------
        ProgramError
            Python's rules for numbers were broken in the run.
        WaitTimeoutError, EngineError
            As the engine.
        """
        layout, program = self.layout, self.layout.program
        given = [arguments.in_planes(program.fields) for arguments in given]
        try:
            self._load(given, data)
            laps.lap("load")
            outcome = self.engine.launch(
                scalar_table(program, scalars), len(given) * layout.results, wait_limit, watch
            )
            laps.lap("run")
            results = outcome.results.reshape(len(given), layout.results)
            _check_faults(program, [*outcome.faults, *layout.faults_in(results)])
            if outcome.stopped:
                return Ran(outcome.seconds, True)
            ran = Ran(outcome.seconds, trace=outcome.trace)
            for owner, arguments in enumerate(given):
                self._store(owner, arguments, results[owner], ran)
            laps.lap("store")
            return ran
        finally:
            self.engine.free()

    def _load(self, given: Sequence[Arguments], data: Mapping[str, Any]) -> None:
        layout = self.layout
        parts: list[Part] = []
        tables: list[Table] = []
        for owner, arguments in enumerate(given):
            for f in layout.program.fields:
                if f.role == "argument" and f.name in arguments.arrays:
                    parts += scatter(layout, owner, f, self._array(arguments, f))
                elif f.role == "constant" and f.name in data:
                    constant = np.ascontiguousarray(divided_first(data[f.name], f.axis), f.type)
                    parts += scatter(layout, owner, f, constant)
            tables += [(owner, at, words) for at, words in layout.tables(owner).items()]
        self.engine.load(parts, tables)

    def _array(self, arguments: Arguments, f: ir.Field, copy_values: bool = True) -> Any:
        """Return an array as the engine takes it, the axis first that is divided."""
        if self.engine.takes_gaps:
            return divided_first(arguments.arrays[f.name], f.axis)
        return arguments.contiguous(f.name, copy_values, f.axis)

    def _store(self, owner: int, arguments: Arguments, results: Words, ran: Ran) -> None:
        """Bring what was written to an owner's arrays, and note what it gets."""
        written = self.layout.written(owner)
        program = self.layout.program_of(owner)
        fields = {f.name: f for f in program.fields}
        out = {
            key: self._array(arguments, fields[key], copy_values=False) if key in written else array
            for key, array in arguments.arrays.items()
        }

        def unload(f: ir.Field, array: Any) -> None:
            self.engine.store(gather(self.layout, owner, f, array))

        arrays, scalars = _results_of(program, out, written, results, unload, {*out, *self.kept})
        arrays, out = _as_given(program, arrays, out, written)
        ran.arrays.append(arguments.take_results(arrays, out, written))
        ran.scalars.append(scalars)


def _as_given(
    program: ir.Program, arrays: dict[str, Any], out: dict[str, Any], written: Set[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arrays, and the places of those of the caller, with axes as the caller knows them."""
    axes = {f.name: f.axis for f in program.fields}
    back: dict[int, Any] = {id(array): array for array in out.values()}
    for key in written & set(out):
        back[id(out[key])] = _axis_back(out[key], axes[key])
    for name, array in arrays.items():
        if id(array) not in back:
            back[id(array)] = as_given(array, axes[name])
    return (
        {name: back[id(array)] for name, array in arrays.items()},
        {key: back[id(array)] for key, array in out.items()},
    )


def _axis_back(array: Any, axis: int) -> Any:
    if not axis or isinstance(array, np.ndarray):
        return np.moveaxis(array, 0, axis) if axis else array
    return device_arrays.moved(array, 0, axis)


def _check_faults(program: ir.Program, faults: Sequence[int]) -> None:
    """Raise ProgramError where a PE has broken Python's rules for numbers."""
    for code, line in zip(faults[::2], faults[1::2], strict=True):
        if code:
            raise error_of(program.name, int(code), int(line))


def _results_of(
    program: ir.Program,
    arguments: Mapping[str, Any],
    written: Set[str],
    results: Words,
    unload: Callable[[ir.Field, Any], None],
    wanted: Set[str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arrays and scalars by name, from what a kernel has left in its table of results.

    That has the variables, for each field the number of its storage, and where kernels move values
    without their storage (ir.Permute) that of the field at whose place they lie. `arguments` in
    `written` get their final values; of the program's own fields only those in `wanted` are read.
    `unload` writes the values of a field's storage into an array.
    """
    fields = program.fields
    first, count = len(program.variables), len(fields)
    storage = [int(k) for k in results[first : first + count]]
    places = [int(k) for k in results[first + count : first + 2 * count]] or storage
    lies_at = {k: fields[place] for k, place in zip(storage, places, strict=True)}
    # Names may have changed places: what a name stands for is its storage.
    asked = {fields[storage[k]].name for k, f in enumerate(fields) if f.name in wanted}
    kept: dict[str, Any] = {}
    for k, f in enumerate(fields):
        if f.role == "argument":
            kept[f.name] = arguments[f.name]
            if f.name in written:
                unload(lies_at[k], arguments[f.name])
        elif f.role == "local" and f.name in asked:
            kept[f.name] = np.empty(f.given_shape, f.type)
            unload(lies_at[k], kept[f.name])
    arrays = {
        f.name: kept[fields[storage[k]].name]
        for k, f in enumerate(fields)
        if fields[storage[k]].name in kept
    }
    scalars = {}
    for k, (name, kind) in enumerate(program.variables):
        scalars[name] = results[k : k + 1].view(np.uint8)[: np.dtype(kind).itemsize].view(kind)[0]
    return arrays, scalars


def scalar_table(program: ir.Program, values: Mapping[str, Any]) -> Words:
    """Return scalars, eight bytes each."""
    words = [scalar_bytes(values[name], kind) for name, kind in program.scalars] or [bytes(8)]
    return np.frombuffer(b"".join(words), np.int64).copy()


def scalar_bytes(value: Any, kind: str) -> bytes:
    """Return a scalar of a type in eight bytes."""
    return np.array([value], kind).tobytes().ljust(8, b"\0")


@dataclass
class LastCall:
    """How a program's last call went."""

    engine: str = ""
    pes: int = 0
    devices: list[int] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    trace: Trace | None = None


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
    """Whether a run is traced, and how."""

    given: Recording | None

    @classmethod
    def of(cls, given: TraceGiven) -> Traced:
        """Return what was asked for; InvalidInputError where that can be no trace."""
        return cls(asked.checked(given))

    @property
    def asked(self) -> bool:
        """Whether the run is traced."""
        return self.given is not None

    def core(self) -> dict[str, Any] | None:
        """Return what the compiled core is told."""
        return None if self.given is None else self.given.core()

    def trace_of(self, name: str, runner: Runner, ran: Ran, laps: Laps) -> Trace | None:
        """Return the trace of a run that has ended, None where it is not traced."""
        if ran.trace is None or self.given is None:
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
