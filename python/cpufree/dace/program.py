"""Programs of DaCe as persistent kernels: calls, and runs of several ranks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.decorated import (
    MOST_GPU_RUNS,
    GpusLike,
    Program,
    Progress,
)
from cpufree.compiler.ir import Program as Representation
from cpufree.compiler.kept_runners import KeptRunners
from cpufree.compiler.ranks import routes
from cpufree.compiler.ranks.on_cpu import cpu_runner_of_ranks
from cpufree.compiler.ranks.on_gpu import gpu_runner_of_ranks
from cpufree.compiler.ranks.work import place_ranks
from cpufree.compiler.runner import LastCall, Runner, Traced, options_of_run
from cpufree.compiler.show import show
from cpufree.dace import checked, closure
from cpufree.dace.graph import frontend
from cpufree.dace.lowering.lower import (
    LoweredGraph,
    LoweredRanks,
    lowered_graph,
    lowered_ranks,
    walked,
)
from cpufree.dace.values.refusal import Place
from cpufree.env import Env
from cpufree.errors import InvalidInputError
from cpufree.laps import Laps
from cpufree.log import log_choices
from cpufree.trace.asked import TraceGiven

ArgumentsOfRank = Callable[[int, int], Mapping[str, Any]]
_MOST_RANKS_RUNS = 8
_MOST_RANKS = 64
_MOST_GRAPHS = 8  # of a program: for other values of names from outside, or other types


@dataclass(frozen=True)
class RanksExplained:
    """What the compiler makes of a program of ranks. Its text is what `str` gives."""

    programs: tuple[str, ...]
    """Of each variant, the program before the passes."""
    variant_of: tuple[int, ...]
    """Of each rank."""
    sends: tuple[tuple[int, ...], ...] = field(default=())
    """Of each rank, to which ranks its sites of sending send."""

    def __str__(self) -> str:
        parts = []
        for k, text in enumerate(self.programs):
            who = ", ".join(str(r) for r, v in enumerate(self.variant_of) if v == k)
            parts.append(f"ranks {who}:\n{text}")
        return "\n".join(parts)


@dataclass(frozen=True)
class _Graph:
    """A graph, simplified and fused, its tree, and its arguments."""

    graph: Any
    tree: Any
    signature: frontend.Signature


class DaceProgram(Program):
    """A program of DaCe's whose calls run as one persistent kernel on each PE.

    A program without messages is divided among PEs by the rows of its arrays, as programs of
    `cpufree.program` are. One with messages is run by `run_ranks`.
    """

    is_cpufree_program = False  # it has no text that another program could take in

    def __init__(self, program: Any) -> None:
        dace = frontend.require_dace()
        self.program = program
        if isinstance(program, dace.SDFG):
            self.name, self.function = str(program.name), _no_function
            self.place = Place(self.name)
        else:
            if inspect.isfunction(program):
                program = self.program = dace.program(program)
            if not hasattr(program, "to_sdfg"):
                raise InvalidInputError(
                    f"cpufree.dace.compile takes a program or graph of DaCe, not {program!r}: "
                    "write @dace.program above a def"
                )
            self.name, self.function = str(program.f.__name__), program.f
            file, line = (
                inspect.getsourcefile(program.f) or "",
                inspect.getsourcelines(program.f)[1],
            )
            self.place = Place(self.name, file, line)
        self.__name__ = self.name
        self.__doc__ = getattr(self.function, "__doc__", None)
        self._last = LastCall()
        self._kernels, self._gpu_runs = {}, KeptRunners(MOST_GPU_RUNS)
        self._ranks = KeptRunners(_MOST_RANKS_RUNS)
        self._graphs: dict[closure.Key, _Graph] = {}

    # --- the graph ---

    @property
    def graph(self) -> Any:
        """The graph (SDFG) of the program, simplified and fused."""
        if not frontend.is_typed(self.program):
            raise InvalidInputError(
                f"{self.name} has no graph before it is called, which says what its arguments are: "
                "annotate all of them with types of DaCe's"
            )
        return self._graph_for({}).graph

    def _graph_for(self, arguments: Mapping[str, Any]) -> _Graph:
        """Return the graph for these arguments, and for what names from outside are now."""
        typed = frontend.is_typed(self.program)
        key = (
            closure.key_of(self.function),
            () if typed else closure.key_of_arguments(arguments),
        )
        if key not in self._graphs:
            while len(self._graphs) >= _MOST_GRAPHS:
                self._graphs.pop(next(iter(self._graphs)))
            graph = frontend.graph_of(self.program, {} if typed else arguments, self.place)
            tree = frontend.tree_of(graph, self.place)
            self._graphs[key] = _Graph(graph, tree, frontend.Signature(graph))
        return self._graphs[key]

    @cached_property
    def signature(self) -> inspect.Signature:  # type: ignore[override]
        """Arguments of the function, then symbols, by their names."""
        if not frontend.is_typed(self.program):
            return inspect.signature(self.function)
        given = self._graph_for({}).signature
        kinds = inspect.Parameter
        positional = [kinds(n, kinds.POSITIONAL_OR_KEYWORD, default=None) for n in given.names]
        symbols = [
            kinds(n, kinds.KEYWORD_ONLY, default=None)
            for n in given.symbols
            if n not in given.names
        ]
        return inspect.Signature([*positional, *symbols])

    # --- calls ---

    def __get__(self, instance: Any, owner: Any = None) -> DaceProgram:
        """Return the program itself: graphs have no self."""
        return self

    def run(
        self, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        """Call the program with options, which are those of programs of `cpufree.program`.

        Raises
        ------
        WrongResultError
            `cpufree.dace.check` is on, and another computation gives something else.
        """
        how = checked.way()
        if not how:
            return super().run(args, kwargs, **options)
        return checked.Check(self, args, kwargs or {}).run(how, super().run, options)

    def _lowered(self, arguments: Arguments) -> LoweredGraph:
        given = {n: v for n, v in arguments.lowered.items() if v is not None}
        of = self._graph_for(given)
        _, numbers, symbols = of.signature.split(given)
        walk = walked(of.tree, symbols, numbers, self.place)
        return lowered_graph(walk, self.name)

    def lower(self, *args: Any, **kwargs: Any) -> Representation:
        """Return the representation of a call with these arguments."""
        arguments = Arguments.of(self.signature, self.name, args, kwargs)
        return self._lowered(arguments).program

    def _undivided(self, lowered: LoweredGraph) -> str:
        return lowered.reasons[0] if lowered.reasons else ""

    # --- ranks ---

    def lower_ranks(self, arguments_of_rank: ArgumentsOfRank, ranks: int) -> routes.Ranks:
        """Return the programs of ranks, and where their messages go."""
        return self._lowered_ranks(self._of_ranks(arguments_of_rank, ranks)).ranks

    def explain_ranks(self, arguments_of_rank: ArgumentsOfRank, ranks: int) -> RanksExplained:
        """Return what the compiler makes of the program on `ranks` ranks; nothing is run."""
        made = self.lower_ranks(arguments_of_rank, ranks)
        sends = tuple(tuple(r.peer for r in of_rank) for of_rank in made.sends)
        return RanksExplained(tuple(map(show, made.variants)), made.variant_of, sends)

    def run_ranks(
        self,
        arguments_of_rank: ArgumentsOfRank,
        ranks: int,
        *,
        engine: str = "auto",
        gpus: GpusLike = "auto",
        wait_limit: float | None = None,
        progress: Progress = None,
        trace: TraceGiven = None,
    ) -> list[Any]:
        """Run a distributed program: each rank on a PE, its messages put by the kernels.

        Parameters
        ----------
        arguments_of_rank : callable
            arguments_of_rank(rank, ranks) returns the arguments with which a process of MPI with
            that rank would call the program: arrays, numbers, symbols, by their names. Negative
            ranks of neighbours are MPI_PROC_NULL. Arrays have the same shapes on all ranks.
        ranks : int
            How many there are.
        engine : str
            "cpu_threads", "cuda_p2p", or "auto": GPUs where there is one for each rank.
        gpus : "auto", "all", or list of int
            The GPU of each rank; one may be named for several ranks. "all": the first ones,
            whichever CPUFREE_GPUS names.
        wait_limit : float, optional
            Seconds that a rank may wait for another one.
        progress : callable or True, optional
            As of a program's call.
        trace : True, file name or Recording, optional
            As of a program's call.

        Returns
        -------
        list
            What the program returns on each rank. Arrays of the arguments are written in place.

        Raises
        ------
        ProgramError
            Messages do not fit together, or something has no counterpart in the compiler.
        WaitTimeoutError
            A rank waited too long: its message is not sent, or not received.
        """
        laps, env = Laps(), Env.read()
        seconds, watch = options_of_run(wait_limit, progress, env)
        how = Traced.of(trace)
        checked.say_what_is_not(self.name)
        given = self._of_ranks(arguments_of_rank, ranks)
        lowered = self._lowered_ranks(given)
        _require_own_arrays(self.name, given, lowered.ranks)
        laps.lap("lower")
        where = place_ranks(engine, gpus, given, env)
        log_choices(self.name, where.why, where.warnings)
        key = (routes.to_json(lowered.ranks), tuple(where.own_devices), how.asked)
        make = partial(_runner_of_ranks, lowered.ranks, where.own_devices, how.asked)
        with self._ranks.taken(key, make) as runner:
            laps.lap("build")
            values = lowered.data, lowered.scalars
            ran = self._watched(runner, given, values, seconds, watch, laps, how)
        return [
            a.returned(lowered.result, arrays, scalars)
            for a, arrays, scalars in zip(given, ran.arrays, ran.scalars, strict=bool(ran.arrays))
        ]

    def _of_ranks(self, arguments_of_rank: ArgumentsOfRank, ranks: int) -> list[Arguments]:
        if not 1 <= ranks <= _MOST_RANKS:
            raise InvalidInputError(f"ranks is {ranks}: use 1 to {_MOST_RANKS}")
        return [Arguments(self.name, dict(arguments_of_rank(r, ranks))) for r in range(ranks)]

    def _lowered_ranks(self, given: list[Arguments]) -> LoweredRanks:
        of = self._graph_for(given[0].lowered)
        split = [of.signature.split(a.lowered) for a in given]
        numbers = [n for _, n, _ in split]
        shared = {
            name: value
            for name, (_, value) in numbers[0].items()
            if all(name in n and n[name][1] == value for n in numbers)
        }
        walks = []
        for rank, (_, own, symbols) in enumerate(split):
            known = {n: v.item() for n, (_, v) in own.items() if n not in shared}
            same = {n: x for n, x in own.items() if n in shared}
            values = {**symbols, **known}
            walks.append(walked(of.tree, values, same, self.place, rank, len(given)))
        return lowered_ranks(walks, self.name, shared)


def _runner_of_ranks(ranks: routes.Ranks, devices: list[int], traced: bool) -> Runner:
    """Return what runs ranks on these GPUs; on the CPU engine where there is none."""
    if devices:
        return gpu_runner_of_ranks(ranks, devices, traced=traced)
    return cpu_runner_of_ranks(ranks, traced)


def _no_function(*_: Any) -> None:
    """Stand for the function of a graph, which has none."""


def _require_own_arrays(name: str, given: list[Arguments], ranks: routes.Ranks) -> None:
    """Refuse an array that several ranks have, and one of them writes."""
    written = {f for p in ranks.variants for f in ranks.written(p)}
    owners: dict[int, int] = {}
    for rank, arguments in enumerate(given):
        for key in written & set(arguments.arrays):
            other = owners.setdefault(id(arguments.given[key]), rank)
            if other != rank:
                raise InvalidInputError(
                    f"{name} writes into {key}, and ranks {other} and {rank} have the same array "
                    "for it: give each rank an array of its own"
                )
