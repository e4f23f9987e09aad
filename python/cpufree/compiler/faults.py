"""What a run may break of Python's rules for numbers, and of NumPy's that raise."""

from __future__ import annotations

from enum import IntEnum

from cpufree.errors import ProgramError


class Fault(IntEnum):
    """Kinds of faults, by their numbers in kernels (`Fault` in programs/args.hpp)."""

    OVERFLOW = 1
    DIVISION_BY_ZERO = 2
    OUT_OF_BOUNDS = 3
    COMPLEX = 4
    DOMAIN = 5
    RANGE = 6
    NOT_A_NUMBER = 7
    INFINITE = 8
    OUT_OF_INT32 = 9
    NEGATIVE_POWER = 10


_TEXTS = {
    Fault.OVERFLOW: "a whole number does not fit in 64 bits",
    Fault.DIVISION_BY_ZERO: "division by zero",
    Fault.OUT_OF_BOUNDS: "an index is out of bounds",
    Fault.COMPLEX: "a negative number to a power that is not whole is complex",
    Fault.DOMAIN: "math domain error: the function has no value there",
    Fault.RANGE: "math range error: the result is too large for a float",
    Fault.NOT_A_NUMBER: "NaN cannot be converted to a whole number",
    Fault.INFINITE: "infinity cannot be converted to a whole number",
    Fault.OUT_OF_INT32: "a whole number is out of bounds for int32; use an array of int64",
    Fault.NEGATIVE_POWER: "whole numbers to a negative power have no whole result; convert with "
    ".astype(np.float64)",
}


class Broken(Exception):
    """A rule is broken while a program is interpreted."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def error_of(name: str, fault: int, line: int) -> ProgramError:
    """Return the error for a fault in a line of the program of a name."""
    text = f"{name}, line {line}: {_TEXTS[Fault(fault)]}; the arrays are as they were"
    return ProgramError(text, line=line)
