"""NVRTC by ctypes, to see on machines without a GPU that texts of kernels compile."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PLACES = ("/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/lib/x86_64-linux-gnu/libnvrtc.so.13")
# As cpufree/gpu/cuda/gpu_compiler.hpp and programs/gpu/program.cpp have them.
messages: list[str] = []
OPTIONS = ("-std=c++20", "-default-device", "-builtin-move-forward=false", "-fmad=false")


def find() -> str:
    """Return the path of the library, "" where there is none."""
    from cpufree.extension import find_compiler

    return find_compiler() or next((p for p in PLACES if Path(p).exists()), "")


def headers() -> dict[str, str]:
    """Return the headers that the library embeds, by name."""
    spec = importlib.util.spec_from_file_location("embed", ROOT / "cmake/embed_headers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, str] = module.headers_of()
    return found


def compile_text(
    text: str, architecture: str = "sm_90", options: tuple[str, ...] = OPTIONS
) -> bytes:
    """Return the machine code of a text; AssertionError with the compiler's messages."""
    library: Any = ctypes.CDLL(find())
    names = headers()
    program = ctypes.c_void_p()
    array = ctypes.c_char_p * len(names)
    status = library.nvrtcCreateProgram(
        ctypes.byref(program),
        text.encode(),
        b"kernel.cu",
        len(names),
        array(*(t.encode() for t in names.values())),
        array(*(n.encode() for n in names)),
    )
    assert status == 0, status
    flags = [f"--gpu-architecture={architecture}", *options]
    given = (ctypes.c_char_p * len(flags))(*(f.encode() for f in flags))
    status = library.nvrtcCompileProgram(program, len(flags), given)
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    messages.append(log.value.decode())
    assert status == 0, messages[-1][:4000]
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, code)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw
