"""Check that an extension built with CUDA is of use where there is no driver: it loads, and solves.

Usage: python tools/check_cuda_build.py BUILD. CUDA's runtime is linked into the GPU engine
(_gpu.so), and looks for the driver (libcuda) when it is first asked for a GPU: nothing may need it
before.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import numpy as np
import cpufree
from cpufree.engines import gpus
from cpufree.extension import load_core

assert load_core().gpu_vendor() == "NVIDIA", "the extension is built without CUDA"
if not gpus.find():
    print("no GPU:", gpus.absence([]))
A = cpufree.generate.poisson2d(nx=30, ny=20)
result = cpufree.solve(A, A @ np.ones(600), rtol=1e-10, pes=2, engine="cpu_threads")
assert result.converged and np.abs(result.x - 1).max() < 1e-8, result
print("with CUDA:", result.iterations, "iterations on the CPU")
"""


def needed(file: Path) -> list[str]:
    """Return the shared libraries that the loader brings in with a file."""
    said = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said.stdout)


def main(build: Path) -> int:
    """Put a package together, import it in a fresh process, and solve; return the exit status."""
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "cpufree"
        shutil.copytree(
            root / "python/cpufree", package, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
        for file in [*build.glob("_core*.so"), *build.glob("_cpu_*.so"), *build.glob("_gpu.so")]:
            shutil.copy(file, package)
            cuda = [name for name in needed(file) if re.match(r"lib(cuda|nv)", name)]
            if cuda:
                print(f"{file.name} needs {', '.join(cuda)}, which machines without GPUs lack")
                return 1
        # -S keeps out the hook of an editable installation; packages are those of this interpreter.
        paths = [folder, *(path for path in sys.path if path.endswith("-packages"))]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        return subprocess.run([sys.executable, "-S", "-c", PROGRAM], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
