"""DaCe as front end: its programs run as persistent kernels, on GPUs and on threads of the CPU.

    @cpufree.dace.persistent
    @dace.program
    def heat(A: dace.float64[N, N], B: dace.float64[N, N], steps: dace.int64): ...

It needs DaCe: pip install 'dace==2.0.0b1'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpufree.dace.graph.frontend import require_dace

if TYPE_CHECKING:
    from cpufree.dace.program import DaceProgram

PROC_NULL = -1
"""The rank of a neighbour that is not there; so is every negative number."""

check: bool | str = False
"""What each run of a program is compared with, on copies of its arguments: False, nothing; True,
DaCe's own code for CPUs, which takes seconds to compile; "interpreter", the representation that the
program is lowered to, run by NumPy. A difference raises WrongResultError."""

__all__ = ["PROC_NULL", "check", "compile", "persistent"]


def compile(program: Any) -> DaceProgram:
    """Make a program of DaCe's one that runs as persistent kernels.

    Parameters
    ----------
    program : dace.program or dace.SDFG
        The program, or its graph; a plain def is given to dace.program.

    Returns
    -------
    DaceProgram
        To be called as the program; `run_ranks` runs one with messages on several ranks.

    Raises
    ------
    UnsupportedError
        DaCe is not installed, or another version than the one that has been tested.
    InvalidInputError
        It is no program of DaCe's.

    Notes
    -----
    After chapter 5 of Baydamirli (2023), Autonomous Execution for Multi-GPU Systems. DaCe parses
    and optimizes; kernels are those of `cpufree.program`.
    """
    require_dace()
    from cpufree.dace.program import DaceProgram

    return DaceProgram(program)


def persistent(program: Any) -> DaceProgram:
    """As `compile`, to be written above a program of DaCe's."""
    return compile(program)
