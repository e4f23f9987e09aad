"""The engine for AMD's GPUs, built with the machine's compiler and HIP's headers, and run on a
stand-in of HIP's runtime (tests/cpp/host_hip).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tools.hip.compiler import ROOT, Compiler

PACKAGE = ROOT / "build/python"
"""What `make install` has built: the extension, beside which the engine is put."""
ENGINE = ROOT / "build/hip-engine"
"""As deep as PACKAGE: a cache of compilations has what both builds compile."""


def _run(command: list[str], **more: str) -> list[str]:
    """Return what went wrong, the end of what a command printed."""
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )
    said = (done.stdout + done.stderr)[-4000:]
    return [f"engine: {' '.join(command[:3])}: {said}"] if done.returncode != 0 else []


def build_engine(compiler: Compiler, jobs: int) -> list[str]:
    """Build engine and stand-in; return what went wrong."""
    options = {
        **{"CPUFREE_HIP": "ON", "CPUFREE_FAST_COMPILE": "ON", "CPUFREE_TESTS": "OFF"},
        **{"CPUFREE_PYTHON": "ON", "CPUFREE_HIP_INCLUDE": str(compiler.root / "usr/include")},
        "Python_EXECUTABLE": sys.executable,
        "nanobind_DIR": _nanobind(),
    }
    given = [f"-D{name}={value}" for name, value in options.items()]
    return _run(["cmake", "-S", str(ROOT), "-B", str(ENGINE), "-G", "Ninja", *given]) or _run(
        ["cmake", "--build", str(ENGINE), "-j", str(jobs), "--target", "_gpu", "amdhip64"]
    )


def _nanobind() -> str:
    command = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_engine(compiler: Compiler) -> list[str]:
    """Put a package together that has the engine, and run its tests; return what went wrong."""
    folder = compiler.folder / "package"
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / "cpufree"
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "python/cpufree", package, ignore=ignored)
    for file in [*PACKAGE.glob("_core*.so"), *PACKAGE.glob("_cpu_*.so"), ENGINE / "_gpu.so"]:
        shutil.copy(file, package)
    # -S, in the tests, keeps out the hook of an editable installation.
    paths = [str(folder), *(path for path in sys.path if path.endswith("-packages"))]
    return _run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/hip"],
        PYTHONPATH=os.pathsep.join(paths),
        LD_LIBRARY_PATH=str(ENGINE / "standin"),
        CPUFREE_KERNEL_CACHE="off",
    )
