"""Functions with @cpufree.program: NumPy-style programs that run as one kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.arguments import Arguments, written_fields
from cpufree.compiler.interpret import interpret
from cpufree.compiler.lowering import Lowered, lower
from cpufree.compiler.operations import require_numpy
from cpufree.compiler.source import Source


class Program:
    """A function whose calls run as one persistent kernel, with the results of NumPy."""

    is_cpufree_program = True

    def __init__(self, function: Callable[..., Any]) -> None:
        require_numpy()
        self.source = Source.of(function)
        self.function = function
        self.name = function.__name__
        self.signature = inspect.signature(function)
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function

    def lower(self, *args: Any, **kwargs: Any) -> ir.Program:
        """Return the intermediate representation for the types of these arguments."""
        return self._lowered(Arguments.of(self.signature, self.name, args, kwargs)).program

    def interpret(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program by the interpreter of the intermediate representation, in NumPy."""
        arguments = Arguments.of(self.signature, self.name, args, kwargs)
        lowered = self._lowered(arguments)
        arguments.check(lowered.program)
        with np.errstate(all="ignore"):
            arrays, scalars = interpret(lowered.program, arguments.arrays, lowered)
        arguments.give_back(written_fields(lowered.program))
        return arguments.returned(lowered, arrays, scalars)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program; arguments and result are those of the function."""
        return self.interpret(*args, **kwargs)

    def _lowered(self, arguments: Arguments) -> Lowered:
        return lower(self.source, arguments.lowered)

    def __repr__(self) -> str:
        return f"<cpufree.program {self.name}{self.signature}>"


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
        It is no def, or its text is not to be had.
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
    return Program(function)
