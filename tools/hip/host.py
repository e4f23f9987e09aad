"""Host code of the GPU engine, compiled for HIP's runtime by the machine's own compiler."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tools.hip.compiler import ROOT, Compiler

# What CMake makes the engine of, but for baselines, which are CUDA's.
ROOMS = ("launch", "solvers", "stencils", "programs")
QUICK = ("launch/gpu/gpus.cpp", "launch/gpu/compiled/store.cpp")
FLAGS = ("-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DCPUFREE_HIP")


def files(quick: bool) -> list[Path]:
    """Return the files that call a GPU's runtime."""
    if quick:
        return [ROOT / "cpufree" / name for name in QUICK]
    found = [file for room in ROOMS for file in (ROOT / "cpufree" / room / "gpu").rglob("*.cpp")]
    return sorted(file for file in found if file.name not in {"built_in.cpp", "remote.cpp"})


def compile_host(compiler: Compiler, file: Path) -> list[str]:
    """Return what the compiler says is wrong with a file."""
    folders = ["-I", str(ROOT), "-I", str(ROOT / "cpufree/gpu/hip")]
    headers = ["-isystem", str(compiler.root / "usr/include")]
    done = subprocess.run(
        [os.environ.get("CXX", "c++"), *FLAGS, *folders, *headers, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    name = file.relative_to(ROOT)
    return [f"host {name}: {done.stderr[:2000]}"] if done.returncode != 0 else []
