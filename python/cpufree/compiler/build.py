"""Compiles programs for the CPU: what the compiler of kernels (cpu_kernels) is asked for."""

from __future__ import annotations

from cpufree.cpu_kernels import Built
from cpufree.cpu_kernels import build as build_kernel
from cpufree.errors import UnsupportedError

# No -ffast-math: results are NumPy's, to the bit where the operations are IEEE's. Errors of the
# library need no errno, and traps are not looked at; both let loops be vectorised.
FLAGS = (
    "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
)  # fmt: skip
_ENTRY = """
extern "C" void cpufree_program(cpufree::cpu_threads::Port& port,
                                const cpufree::programs::Args& args, std::byte* heap) {
  %s
}
"""
_CALL = "run(port, args, heap);"
_TRACED = f"cpufree::run_traced(port, args.traces, [&](auto& port) {{ {_CALL} }});"


def build(text: str, traced: bool = False) -> Built:
    """Return the kernel of a C++ text, which tells what it does where it is to be `traced`.

    Raises
    ------
    UnsupportedError
        There is no compiler, or the headers are not there.
    EngineError
        The compiler fails.
    """
    try:
        head = '#include "cpufree/trace/traced.hpp"\n' if traced else ""
        entry = _ENTRY % (_TRACED if traced else _CALL)
        return build_kernel("a program", head + text, FLAGS, "cpufree_program", entry)
    except UnsupportedError as error:
        raise UnsupportedError(f"{error}; program.interpret(...) runs without") from None
