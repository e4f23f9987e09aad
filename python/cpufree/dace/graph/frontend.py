"""DaCe as front end: a program's graph, simplified and fused, as a schedule tree."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pydoc import locate
from typing import Any

import numpy as np

from cpufree.dace.graph.parsing import fused, parsed
from cpufree.dace.values.affine import Affine, Moving, NotAffine, affine, number
from cpufree.dace.values.refusal import Place
from cpufree.errors import InvalidInputError, UnsupportedError
from cpufree.text import counted

VERSION = "2.0.0b1"
_NOWHERE = Place("the program")


def require_dace() -> Any:
    """Return the module of DaCe.

    Raises
    ------
    UnsupportedError
        It is not installed, or is another version.
    """
    try:
        import dace
    except ImportError:
        raise UnsupportedError(f"DaCe is not installed: pip install 'dace=={VERSION}'") from None
    if dace.__version__ != VERSION:
        raise UnsupportedError(
            f"this is DaCe {dace.__version__}, whose schedule trees may differ: "
            f"pip install 'dace=={VERSION}'"
        )
    return dace


@contextmanager
def _without_limits() -> Iterator[None]:
    """Let DaCe take what only its own code generators cannot, and leave branches as they are.

    It takes `a != b` for true where a and b are different names. It prints slices that it has
    evaluated, where its printer takes syntax trees only; and messages may be regions for which it
    has no datatype of MPI's (faces of three-dimensional arrays).
    """
    from dace.frontend.python import astutils
    from dace.libraries.comm import utils
    from dace.transformation.passes.simplify import LiftTrivialIf

    printed, datatype = astutils.ExtUnparser.dispatch, utils.create_vector_ddt

    def dispatch(self: Any, tree: Any) -> None:
        if isinstance(tree, list):
            for part in tree:
                self.dispatch(part)
        elif isinstance(tree, ast.AST):
            printed(self, tree)
        else:
            self.write(str(tree))

    def create_vector_ddt(*args: Any) -> Any:
        try:
            return datatype(*args)
        except (ValueError, NotImplementedError):
            return None

    lift = LiftTrivialIf.apply_pass
    LiftTrivialIf.apply_pass = lambda *_: None
    astutils.ExtUnparser.dispatch = dispatch
    utils.create_vector_ddt = create_vector_ddt
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        LiftTrivialIf.apply_pass = lift
        astutils.ExtUnparser.dispatch = printed
        utils.create_vector_ddt = datatype


def own_graph_of(program: Any, arguments: Mapping[str, Any], place: Place) -> Any:
    """Return a new graph (SDFG) of a program of DaCe's, or of a graph, simplified as DaCe does.

    `place` is that of the program; ProgramError says what DaCe does not take.
    """
    dace = require_dace()
    import cpufree.dace.graph.nodes  # noqa: F401  (their names under dace.comm)

    with _without_limits():
        if isinstance(program, dace.SDFG):
            graph = dace.SDFG.from_json(program.to_json())
            graph.simplify()
            return graph
        # Without annotations DaCe takes types and sizes from the arguments.
        given = {} if is_typed(program) else dict(arguments)
        _reread_names(program, set())
        return parsed(lambda: program.to_sdfg(simplify=True, **given), place)


def graph_of(program: Any, arguments: Mapping[str, Any], place: Place = _NOWHERE) -> Any:
    """Return a new, simplified and fused graph (SDFG) of a program of DaCe's, or of a graph."""
    graph = own_graph_of(program, arguments, place)
    with _without_limits():
        return fused(graph)


def _reread_names(program: Any, seen: set[int]) -> None:
    """Let a program of DaCe's, and those that it calls, have the values that names have now."""
    from dace.frontend.python.parser import DaceProgram, _get_locals_and_globals

    if id(program) in seen:
        return
    seen.add(id(program))
    program.global_vars = _get_locals_and_globals(program.f)
    for name, value in program.global_vars.items():
        if isinstance(value, DaceProgram) and name in program.f.__code__.co_names:
            _reread_names(value, seen)


def is_typed(program: Any) -> bool:
    """Return whether a program's annotations say all that its graph needs."""
    dace = require_dace()
    if isinstance(program, dace.SDFG):
        return True
    parameters = inspect.signature(program.f).parameters.values()
    return not program.constant_args and all(
        p.annotation is not inspect.Parameter.empty for p in parameters
    )


def tree_of(graph: Any, place: Place) -> Any:
    """Return the schedule tree of a graph, in which what is read comes before later writes."""
    from dace.sdfg.analysis.schedule_tree.sdfg_to_tree import as_schedule_tree

    from cpufree.dace.graph.lines import give_lines
    from cpufree.dace.graph.order import order

    with _without_limits():
        ordered = deepcopy(graph)
        give_lines(ordered)
        order(ordered, place)
        return as_schedule_tree(ordered, in_place=True)


def _place_of_call(graph: Any, name: str) -> Place:
    """Return where a graph calls a function of Python's."""
    from cpufree.dace.graph.lines import first_line

    tasklets = (n for n, _ in graph.all_nodes_recursive() if hasattr(n, "code"))
    calls = (n for n in tasklets if name in n.code.as_string)
    return Place(str(graph.name)).at(None, first_line(calls))


class Signature:
    """Arguments of a graph: arrays, numbers, and symbols, which sizes of arrays or names give."""

    def __init__(self, graph: Any) -> None:
        self.name = str(graph.name)
        self.callbacks = {
            n: _place_of_call(graph, n)
            for n, kind in graph.symbols.items()
            if type(kind).__name__ == "callback"
        }
        """Functions of Python's that the graph would call, by name, and where it does."""
        self.descriptors = {
            n: d
            for n, d in graph.arrays.items()
            if not d.transient and not n.startswith("__return")
        }
        self.symbols = sorted(str(s) for s in graph.free_symbols)
        self.names = [*graph.arg_names] if graph.arg_names else sorted(self.descriptors)
        self.names += [n for n in self.descriptors if n not in self.names]

    def split(
        self, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, tuple[str, Any]], dict[str, Any]]:
        """Return arrays, numbers (type and value) and symbols of a call.

        Raises
        ------
        InvalidInputError
            An argument is missing or unknown, or has another shape or type than is declared.
        """
        arrays: dict[str, Any] = {}
        numbers: dict[str, tuple[str, Any]] = {}
        symbols: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in self.symbols:
                symbols[name] = _number(self.name, name, value)
            elif name not in self.descriptors:
                continue  # arguments that the simplified graph does without
            elif type(self.descriptors[name]).__name__ == "Scalar":
                kind = np.dtype(self.descriptors[name].dtype.as_numpy_dtype()).name
                numbers[name] = (kind, _of_kind(self.name, name, value, kind))
            elif not isinstance(value, np.ndarray):
                raise InvalidInputError(
                    f"{self.name}: {name} is {type(value).__name__}, and no array: pass "
                    f"np.asarray({name})"
                )
            else:
                arrays[name] = value
        self._sizes(arrays, symbols)
        missing = [n for n in (*self.descriptors, *self.symbols)
                   if n not in {**arrays, **numbers, **symbols}]  # fmt: skip
        for name in (n for n in missing if n in self.callbacks):
            dotted = name.replace("_", ".")
            self.callbacks[name].fail(
                f"{dotted if locate(dotted) else name} is a function of Python's that DaCe would "
                "call, and kernels cannot",
                "write it with sums, products, np.sqrt and the like",
            )
        if missing:
            raise InvalidInputError(
                f"{self.name}: {', '.join(missing)} has no value: pass it by its name"
            )
        return arrays, numbers, symbols

    def _sizes(self, arrays: Mapping[str, Any], symbols: dict[str, Any]) -> None:
        """Let symbols that are sizes of arrays have these; check all others."""
        sizes = [
            (n, int(size))
            for name, array in arrays.items()
            for n, size in zip(self.descriptors[name].shape, array.shape, strict=False)
        ]
        while any(_solve(n, size, self.symbols, symbols) for n, size in sizes):
            pass
        for name, array in arrays.items():
            desc = self.descriptors[name]
            if array.ndim != len(desc.shape):
                raise InvalidInputError(
                    f"{self.name}: {name} has {counted(array.ndim, 'dimension')}, and is declared "
                    f"with {len(desc.shape)}"
                )
            kind = np.dtype(desc.dtype.as_numpy_dtype()).name
            try:
                shape = tuple(number(n, symbols) for n in desc.shape)
            except Moving:
                continue
            if tuple(array.shape) != shape or str(array.dtype) != kind:
                raise InvalidInputError(
                    f"{self.name}: {name} is {array.dtype} {tuple(array.shape)}, and is declared "
                    f"as {kind} {shape}"
                )


def _solve(expr: Any, size: int, names: list[str], symbols: dict[str, Any]) -> bool:
    """Give the one symbol without a value in a size, as N in N + 2, the value that fits."""
    missing = {str(s) for s in getattr(expr, "free_symbols", ())} - set(symbols)
    if len(missing) != 1 or not missing <= set(names):
        return False
    (name,) = missing
    try:
        found = affine(expr, {**symbols, name: Affine(0, ((name, 1),))})
    except NotAffine:
        return False
    value, rest = divmod(size - found.constant, found.factor(name))
    if rest:
        return False
    symbols[name] = int(value)
    return True


def _number(program: str, name: str, value: Any) -> Any:
    if isinstance(value, bool | int | float | np.generic):
        return value.item() if isinstance(value, np.generic) else value
    raise InvalidInputError(f"{program}: {name} is {type(value).__name__}, and no number")


def _of_kind(program: str, name: str, value: Any, kind: str) -> Any:
    """Return a number as one of the type that is declared.

    Raises
    ------
    InvalidInputError
        It is none of these.
    """
    value = _number(program, name, value)
    whole = kind.startswith(("int", "bool"))
    try:
        made = np.dtype(kind).type(value)
    except OverflowError:
        made = None
    if made is None or (whole and (isinstance(value, float) or made != value)):
        raise InvalidInputError(
            f"{program}: {name} is {value}, and is declared as {kind}: pass a number of that type"
        )
    return made
