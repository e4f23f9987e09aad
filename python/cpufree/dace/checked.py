"""Compares runs with another computation of the same, where `cpufree.dace.check` asks for it."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cpufree.compiler.arguments import Arguments
from cpufree.compiler.interpret import interpret
from cpufree.dace.graph import frontend
from cpufree.errors import InvalidInputError, UnsupportedError, WrongResultError
from cpufree.log import logger
from cpufree.patience import says

_PACKAGE = "cpufree.dace"
_WAYS = {False: "", True: "dace", "dace": "dace", "interpreter": "interpreter"}
# No flag that lets a compiler round otherwise than NumPy does.
_FLAGS = "-w -ffp-contract=off"
_TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
Values = dict[str, Any]
Run = Callable[..., Any]


def way() -> str:
    """Return what runs are compared with: "dace", "interpreter", or "" for nothing.

    Raises
    ------
    InvalidInputError
        `cpufree.dace.check` is something else.
    """
    asked = sys.modules[_PACKAGE].check  # which users set there
    if not isinstance(asked, bool | str) or asked not in _WAYS:
        raise InvalidInputError(
            f"cpufree.dace.check is {asked!r}: use True (DaCe's own code), 'interpreter' or False"
        )
    return _WAYS[asked]


def say_what_is_not(name: str) -> None:
    """Log that a run of ranks is not compared, where runs are."""
    if way():
        logger.warning(
            "%s: cpufree.dace.check does not check run_ranks: compare it with the program on MPI, "
            "or the parts of a rank as a program without messages",
            name,
        )


class Check:
    """One run that is compared: `run` does it."""

    def __init__(self, program: Any, args: Any, kwargs: Mapping[str, Any]) -> None:
        """`program`: a DaceProgram."""
        self.program, self.args, self.kwargs = program, args, kwargs
        self.before = self._values()
        self.stopped = False

    def run(self, how: str, ours: Run, options: dict[str, Any]) -> Any:
        """Run the program, and another computation of the same; return what the program returns.

        Raises
        ------
        WrongResultError
            They differ. The arrays are as they were.
        UnsupportedError
            DaCe's own code cannot be built, or does not take these arguments.
        """
        if callable(options.get("progress")):
            options = {**options, "progress": self._noting(options["progress"])}
        result = ours(self.args, self.kwargs, **options)
        if self.stopped:
            return result
        arrays = {key: array.copy() for key, array in self.before.arrays.items()}
        theirs = self._by_dace(arrays) if how == "dace" else self._interpreted(arrays)
        now = self._values()
        difference = _first_difference(now.arrays, arrays) or _first_difference(
            _results(result), _results(theirs)
        )
        if difference:
            self._restore(now)
            self._fail(difference, _NAMES[how])
        return result

    def _values(self) -> Arguments:
        """Return the arguments, with copies of their arrays."""
        found = Arguments.of(self.program.signature, self.program.name, self.args, self.kwargs)
        found.to_host()
        for key, array in found.arrays.items():
            found.arrays[key] = np.array(array, order="C")
        return found

    def _noting(self, progress: Callable[..., Any]) -> Callable[..., Any]:
        """Return what follows a run, and notes whether it ends it."""

        def follow(*turns: Any) -> Any:
            found = progress(*turns)
            self.stopped = self.stopped or found is False
            return found

        return follow

    # --- the other computation ---

    def _interpreted(self, arrays: Values) -> Any:
        given = Arguments(self.program.name, {**self.before.given, **arrays})
        lowered = self.program._lowered(given)
        with np.errstate(all="ignore"):
            found, scalars = interpret(lowered.program, arrays, lowered)
        return given.returned(lowered, found, scalars)

    def _by_dace(self, arrays: Values) -> Any:
        values = {k: v for k, v in self.before.lowered.items() if v is not None}
        try:
            with says(f"compiling DaCe's own code of {self.program.name} for cpufree.dace.check"):
                compiled = codes.of(self.program, values)
            _, numbers, symbols = frontend.Signature(compiled.sdfg).split({**values, **arrays})
            given = {**{n: v for n, (_, v) in numbers.items()}, **symbols, **arrays}
            known = compiled.sdfg.arglist()
            return compiled(**{n: v for n, v in given.items() if n in known})
        except Exception as error:
            raise UnsupportedError(
                f"{self.program.name}: cpufree.dace.check is on, and DaCe's own code does not run: "
                f"{str(error).strip()[:1000]}\n  check with the representation that the program is "
                "lowered to (cpufree.dace.check = 'interpreter'), or not (False)"
            ) from error

    # --- what differs ---

    def _restore(self, now: Arguments) -> None:
        """Give the caller's arrays the values from before the run, where they have others."""
        changed = {k for k, a in now.arrays.items() if not _same_bits(a, self.before.arrays[k])}
        there = Arguments.of(self.program.signature, self.program.name, self.args, self.kwargs)
        there.to_host()
        for key in changed:
            there.arrays[key][...] = self.before.arrays[key]
        there.give_back(changed)

    def _fail(self, difference: _Difference, other: str) -> None:
        name, index, mine, theirs = difference
        place = self.program.place
        where = f"{place.file}:{place.line}, in {place.program}" if place.line else place.program
        at = f"[{', '.join(map(str, index))}]" if index else ""
        raise WrongResultError(
            f"{where}: {name}{at} is {mine}, and {theirs} by {other}; the arrays are as they were\n"
            "  run the program by DaCe alone, without cpufree.dace, and report this with the "
            "program and its arguments (cpufree.dace.check = False runs without comparing)"
        )


class _Codes:
    """DaCe's own code of programs, compiled in a folder that lasts as long as the process."""

    def __init__(self) -> None:
        self.compiled: dict[str, Any] = {}

    @cached_property
    def folder(self) -> Any:
        return tempfile.TemporaryDirectory(prefix="cpufree-dace-")

    def of(self, program: Any, arguments: Mapping[str, Any]) -> Any:
        """Return what runs the graph that DaCe makes of a program now, simplified but not fused."""
        graph = frontend.own_graph_of(program.program, arguments, program.place)
        key = str(graph.hash_sdfg())
        if key not in self.compiled:
            graph.build_folder = str(Path(self.folder.name) / key[:16])
            with _options():
                self.compiled[key] = graph.compile()
        return self.compiled[key]


codes = _Codes()
_Difference = tuple[str, tuple[int, ...], Any, Any]
_NAMES = {"dace": "DaCe's own code", "interpreter": "the interpreter"}


@contextmanager
def _options() -> Iterator[None]:
    """Have DaCe compile without changing what is computed, whatever the user's options are."""
    from dace.config import set_temporary

    options = {
        ("compiler", "cpu", "args"): _FLAGS,
        ("compiler", "build_type"): "Release",
        ("compiler", "use_cache"): False,
        ("profiling",): False,
    }
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for path, value in options.items():
            stack.enter_context(set_temporary(*path, value=value))
        yield


def _results(value: Any) -> Values:
    """Return what a program returns by names; numbers, which DaCe has in arrays, as arrays."""
    if value is None:
        return {}
    if isinstance(value, tuple | list):
        return {f"result {k}": np.squeeze(v) for k, v in enumerate(value)}
    return {"the result": np.squeeze(_on_host(value))}


def _on_host(value: Any) -> Any:
    return value.get() if hasattr(value, "get") else value


def _same_bits(a: Any, b: Any) -> bool:
    return bool(a.tobytes() == b.tobytes())


def _first_difference(ours: Values, theirs: Values) -> _Difference | None:
    """Return the first array that differs: name, index and both values there."""
    for name in ours:
        if name not in theirs:
            continue
        a, b = ours[name], np.asarray(theirs[name])
        if a.shape != b.shape:
            return name, (), f"of shape {a.shape}", f"of shape {b.shape}"
        wrong = _differs(a, b)
        if wrong.any():
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            return name, index, a[index], b[index]
    return None


def _differs(a: Any, b: Any) -> Any:
    """Return where arrays differ by more than the order of a sum explains."""
    if a.dtype.kind != "f":
        return np.asarray(a != b)
    with np.errstate(all="ignore"):
        finite = np.abs(b[np.isfinite(b)])
        near = _TOLERANCES[a.dtype.name] * (finite.max() if finite.size else 0.0)
        same = (a == b) | (np.abs(a - b) <= near) | (np.isnan(a) & np.isnan(b))
    return np.asarray(~same)
