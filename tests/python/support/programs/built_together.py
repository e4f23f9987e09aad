"""Kernels of many programs in one shared object: the compiler reads the headers once for all."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cpufree.compiler import ir
from cpufree.compiler.build import FLAGS
from cpufree.compiler.emit import emit
from cpufree.compiler.launch import Kernel, passes
from cpufree.cpu_kernels import SHARED, Built, header_folder
from cpufree.env import BuildEnv

_HEAD = """#include "cpufree/engines/cpu_threads/port.hpp"
#include "cpufree/programs/runtime.hpp"
"""
_TAIL = '#include "cpufree/engines/cpu_threads/port.cpp"\n'
_ENTRY = """
extern "C" void cpufree_program_{k}(cpufree::cpu_threads::Port& port,
                                    const cpufree::programs::Args& args, std::byte* heap) {{
  program_{k}::run(port, args, heap);
}}
"""


def kernels_of(programs: Sequence[ir.Program], folder: Path, level: str = "-O0") -> list[Kernel]:
    """Return the kernels of lowered programs for the CPU engine, compiled in one go."""
    made = [passes(program) for program in programs]
    emitted = [emit(program) for program in made]
    parts = []
    for k, one in enumerate(emitted):
        include, text = one.text.split("namespace {", 1)
        assert include.split() == ["#include", '"cpufree/programs/runtime.hpp"'], include
        parts.append(f"namespace program_{k} {{\n{text}" + _ENTRY.format(k=k))
    source, path = folder / "together.cpp", folder / "together.so"
    source.write_text(_HEAD + "".join(parts) + _TAIL)
    flags = [level if flag == "-O3" else flag for flag in (*SHARED, *FLAGS)]
    command = [*BuildEnv.read().compiler, *flags, f"-I{header_folder()}", str(source)]
    done = subprocess.run([*command, "-o", str(path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[:4000]
    library = ctypes.CDLL(str(path))
    kernels = []
    for k, (program, text) in enumerate(zip(made, emitted, strict=True)):
        function = getattr(library, f"cpufree_program_{k}")
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        kernels.append(Kernel(program, text, Built(address, path, False)))
    return kernels
