"""Functions with @cpufree.program: NumPy-style programs that run as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from cpufree.arguments import Count
from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments
from cpufree.compiler.emit.blocks import MEMORY
from cpufree.compiler.explain import Explanation, explain, explain_kernel
from cpufree.compiler.front.lower import lower
from cpufree.compiler.front.lowered import Lowered
from cpufree.compiler.front.remembered import Remembered
from cpufree.compiler.front.text.source import Source
from cpufree.compiler.function_like import FunctionLike
from cpufree.compiler.gpu_run import gpu_runner, machine_of, multiprocessors_of, tile_memory_of
from cpufree.compiler.grid import (
    chosen_kernel,
    grid_groups,
    returned_fields,
    sparing_kernel,
    swept_groups,
)
from cpufree.compiler.interpret import interpret
from cpufree.compiler.kept_runners import KeptRunners
from cpufree.compiler.launch import Kernel, cpu_runner, kernel_of, passes
from cpufree.compiler.layout import Layout, most_pes
from cpufree.compiler.operations import require_numpy
from cpufree.compiler.processes import Processes, kernel_in_processes
from cpufree.compiler.runner import LastCall, Ran, Runner, Traced, options_of_run
from cpufree.compiler.work import ProgramWork, on_one_pe
from cpufree.distributed import Team
from cpufree.engines.asked import Asked
from cpufree.engines.in_processes import team_for
from cpufree.engines.place import place
from cpufree.engines.placement import Placement
from cpufree.engines.progress_bar import ProgressBar
from cpufree.engines.watch import ProgressLike, Watch
from cpufree.env import Env
from cpufree.errors import OutOfMemoryError
from cpufree.extension import load_core
from cpufree.laps import Laps
from cpufree.log import log_choices
from cpufree.machine import Machine
from cpufree.options import DISTRIBUTED
from cpufree.trace.asked import TraceGiven
from cpufree.trace.explained import explained

_MOST_KERNELS = 64  # of a program that a process remembers
MOST_GPU_RUNS = 2  # of a program, with their memory on GPUs
GpusLike: TypeAlias = "str | Sequence[int]"
Progress: TypeAlias = ProgressLike


class Program(FunctionLike):
    """A function whose calls run as one persistent kernel, with the results of NumPy."""

    is_cpufree_program = True
    engine = property(lambda self: self._last.engine, doc="Engine of the last call.")
    pes = property(lambda self: self._last.pes, doc="PEs of the last call.")
    devices = property(
        lambda self: self._last.devices, doc="GPUs of the last call, one for each PE."
    )
    timings = property(lambda self: self._last.timings, doc="Seconds of the last call, by part.")
    trace = property(lambda self: self._last.trace, doc="cpufree.trace.Trace of the last call.")

    def __init__(self, function: Callable[..., Any]) -> None:
        require_numpy()
        self.source = Source.of(function)
        super().__init__(function)
        self.name = function.__name__
        self._last = LastCall()
        self._kernels: dict[str, Kernel] = {}
        self._remembered = Remembered(self.source, lower)
        self._gpu_runs = KeptRunners(MOST_GPU_RUNS)

    def _arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        return Arguments.of(self.signature, self.name, (*self.receiver, *args), kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> ir.Program:
        """Return the intermediate representation for the types of these arguments."""
        return self._lowered(self._arguments(args, kwargs)).program

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return what a call with these arguments would do, and why; nothing is run."""
        env = Env.read()
        arguments = self._arguments(args, kwargs)
        lowered = self._lowered(arguments)
        made = passes(lowered.program)
        # Processes divide rows as threads do.
        asked = Asked("cpu_threads" if env.engine in DISTRIBUTED else "auto")
        where = self._placed(arguments, lowered, lambda: made, asked, env)
        found = explain(made, most_pes(made, where.pes), env.pes or "auto")
        return replace(found, on_gpus=self._on_gpus(lowered, where.own_devices, env.pes or 1))

    def _on_gpus(self, lowered: Lowered, devices: list[int], pes: int) -> tuple[str, ...]:
        """Return what a call would do on these GPUs; where there are none, on some here, or H100s.

        `pes`: how many those are.
        """
        kept = returned_fields(lowered.result)
        groups = grid_groups(lowered.program, kept)
        here = devices or [gpu["index"] for gpu in load_core().gpus()][:pes]
        size = _size_of(here) if here else (132, MEMORY, None)
        swept = swept_groups(lowered.program, kept)
        count = most_pes(swept, most_pes(groups, len(devices) or pes))
        return explain_kernel(chosen_kernel(groups, count, kept, *size, swept))

    def interpret(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program by the interpreter of the intermediate representation, in NumPy."""
        arguments = self._arguments(args, kwargs)
        lowered = self._lowered(arguments)
        arguments.check(lowered.program, lowered.outside)
        arguments.to_host()
        with np.errstate(all="ignore"):
            try:
                arrays, scalars = interpret(lowered.program, arguments.arrays, lowered)
            except MemoryError as error:
                raise OutOfMemoryError(str(error)) from None
        arguments.give_back(lowered.program.written)
        return arguments.returned(lowered, arrays, scalars)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program; arguments and result are those of the function.

        Raises
        ------
        ProgramError
            Something is outside the language; or in the run a whole number outgrows 64 bits, or is
            divided by zero. The arrays are as they were.
        KeyboardInterrupt
            Ctrl-C. The arrays are as they were.
        WaitTimeoutError, EngineError
            A PE waited too long for another one, or the C++ compiler failed.
        """
        return self.run(args, kwargs)

    def run(
        self,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        engine: str = "auto",
        pes: Count = "auto",
        gpus: GpusLike = "auto",
        wait_limit: float | None = None,
        progress: Progress = None,
        trace: TraceGiven = None,
    ) -> Any:
        """Call the program with options.

        Parameters
        ----------
        args, kwargs
            Arguments of the function.
        engine : str
            "cpu_threads", "cuda_p2p", "cpu_processes" (`cpufree run`: all processes call the same),
            or "auto": GPUs where arrays lie on one, or are large.
        pes : int or "auto"
            PEs: threads, or GPUs; fewer are used where the arrays have too few rows.
        gpus : "auto", "all", or list of int
            Numbers of the GPUs to be used.
        wait_limit : float, optional
            Seconds that a PE may wait for another one.
        progress : callable or True, optional
            Called with the turns of the outermost loop that are done, and 0; False ends the run,
            and leaves the arrays as they were. True: a line on stderr.
        trace : True, file name or Recording, optional
            Record what each block does (docs/trace.md): `program.trace` has it afterwards, and the
            file, .pftrace, .json or .csv.

        Returns
        -------
        object
            What the function returns. `timings` and `pes` say how the call went.

        Raises
        ------
        InvalidInputError
            Arguments or options are wrong; and as a call.

        Examples
        --------
        >>> import cpufree.compiler
        >>> hasattr(cpufree.compiler.Program, "run")
        True
        """
        laps = Laps()
        env = Env.read()
        seconds, watch = options_of_run(wait_limit, progress, env)
        how = Traced.of(trace)
        asked = Asked(engine, gpus, pes)
        named = env.engine if engine == "auto" else engine
        team = team_for(named, asked) if named == "cpu_processes" else None
        with nullcontext() if team is None else team.working():
            arguments = self._arguments(args, kwargs or {})
            lowered = self._lowered(arguments)
            arguments.check(lowered.program, lowered.outside)
            laps.lap("lower")
            where = self._placed(
                arguments, lowered, lambda: self._kernel(lowered).program, asked, env, team
            )
            log_choices(self.name, where.why, where.warnings)
            with self._runner(arguments, lowered, where, how.asked) as runner:
                laps.lap("build")
                values = lowered.data, lowered.scalars
                ran = self._watched(runner, [arguments], values, seconds, watch, laps, how)
            if ran.stopped:
                return None
            return arguments.returned(lowered, ran.arrays[0], ran.scalars[0])

    def _placed(
        self,
        arguments: Arguments,
        lowered: Any,
        on_rows: Callable[[], ir.Program],
        asked: Asked,
        env: Env,
        team: Team | None = None,
    ) -> Placement:
        """Return where a call runs; `on_rows` as ProgramWork has it."""
        if why := self._undivided(lowered):
            asked = on_one_pe(self.name, why, asked, team)
        work = ProgramWork(lowered.program, on_rows, min(arguments.on_gpu, default=""))
        return place(work, asked, env, arguments.near, team)

    def _undivided(self, lowered: Any) -> str:
        """Return why rows cannot be divided among PEs, "" where they can."""
        return ""

    def _watched(
        self,
        runner: Runner,
        given: list[Arguments],
        values: tuple[Mapping[str, Any], Mapping[str, Any]],
        seconds: float,
        watch: Watch,
        laps: Laps,
        how: Traced,
    ) -> Ran:
        """Run a program, and note how the call went.

        `values` are those of its constants, and of its scalars.
        """
        engine = runner.engine
        last = self._last  # that of all programs that are bound to objects, too
        last.engine, last.pes, last.devices = engine.name, runner.layout.pes, list(engine.devices)
        last.timings, last.trace = {}, None
        watch.tracing = how.core()
        with (
            explained(),
            watch.bar(0, lambda: ProgressBar(self.name, lambda _turn, _value: 0.0)),
            watch,
        ):
            ran = runner.run(given, *values, seconds, watch, laps)
        last.timings = {**laps.seconds, "kernel": ran.seconds}
        if watch.error is not None:
            raise watch.error
        if watch.interrupted:
            raise KeyboardInterrupt
        last.trace = how.trace_of(self.name, runner, ran, laps)
        return ran

    def _runner(
        self, arguments: Arguments, lowered: Lowered, where: Placement, traced: bool
    ) -> AbstractContextManager[Runner]:
        """Lend what runs a program where it is placed; the last ones on GPUs keep their memory."""
        if where.engine != "cuda_p2p":
            return nullcontext(self._cpu_runner(arguments, lowered, where, traced))
        kept = tuple(sorted(returned_fields(lowered.result)))
        key = (lowered.key, kept, tuple(where.own_devices), traced)
        return self._gpu_runs.taken(key, partial(self._gpu_runner, lowered, where, traced))

    def _cpu_runner(
        self, arguments: Arguments, lowered: Lowered, where: Placement, traced: bool
    ) -> Runner:
        """Return what runs a program on the CPU engine: in this process, or in all of a team."""
        kept = returned_fields(lowered.result)
        if where.team is not None:
            given = arguments.arrays, lowered.scalars, lowered.data
            kernel = kernel_in_processes(where.team, lowered.program, *given, traced)
            layout = Layout(kernel.program, where.pes)
            return Runner(layout, Processes(layout, kernel, where.team), kept)
        return cpu_runner(self._kernel(lowered, traced), where.pes, kept)

    def _gpu_runner(self, lowered: Lowered, where: Placement, traced: bool) -> Runner:
        """Return what runs a lowered program on GPUs."""
        kept = returned_fields(lowered.result)
        made, swept = (make(lowered.program, kept) for make in (grid_groups, swept_groups))
        count = most_pes(swept, most_pes(made, len(where.own_devices)))
        devices = where.own_devices[:count]
        size = _size_of(devices)
        try:
            kernel = chosen_kernel(made, len(devices), kept, *size, swept)
            return gpu_runner(kernel, devices, kept, traced)
        except OutOfMemoryError:  # second copies of arrays save time, and take memory
            kernel = sparing_kernel(lowered.program, len(devices), kept, size[0], size[2])
            return gpu_runner(kernel, devices, kept, traced)

    def _kernel(self, lowered: Lowered, traced: bool = False) -> Kernel:
        """Return the kernel for a lowered program; those of this process are remembered."""
        key = f"{lowered.key} {traced}"
        if len(self._kernels) >= _MOST_KERNELS:
            self._kernels.clear()
        if key not in self._kernels:
            self._kernels[key] = kernel_of(lowered.program, traced)
        return self._kernels[key]

    def _lowered(self, arguments: Arguments) -> Lowered:
        return self._remembered.of_call(arguments)

    def __repr__(self) -> str:
        return f"<cpufree.program {self.name}{self.signature}>"


def _size_of(devices: list[int]) -> tuple[int, int, Machine | None]:
    """Return a GPU's multiprocessors, the bytes of a block's tiles, and the machine."""
    return multiprocessors_of(devices), tile_memory_of(devices), machine_of(devices)


def program(function: Callable[..., Any]) -> Program:
    """Make a function a program: its time loop runs as one kernel, with the results of NumPy.

    Parameters
    ----------
    function : callable
        A def that updates arrays of 1 to 3 dimensions (and a batch dimension before them), float32,
        float64, int32, int64 or bool, with slices, functions of NumPy and loops.

    Returns
    -------
    Program
        To be called as the function.

    Raises
    ------
    InvalidInputError
        It is no def, another decorator has wrapped it, or its text cannot be read.
    ProgramError
        When called: something is outside the language. The message has file, line and a caret.

    Examples
    --------
    >>> import cpufree, inspect
    >>> inspect.isfunction(cpufree.program)
    True

    Notes
    -----
    After the compiler of Baydamirli (2023), Autonomous Execution for Multi-GPU Systems.
    """
    if isinstance(function, staticmethod | classmethod):
        return type(function)(Program(function.__func__))  # type: ignore[return-value]
    return Program(function)
