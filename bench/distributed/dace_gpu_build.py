"""Compiles DaCe's own GPU code for distributed programs, for machines where DaCe is not installed.

Usage: python bench/distributed/dace_gpu_build.py FOLDER

DaCe generates the code, with what its `apply_gpu_transformations` does and blocks of 64 x 8; nvcc
and g++ compile it as DaCe's CMake files say (CMake itself must know CUDA's C++20, which that of
distributions does not yet). One thing is changed: requests of MPI lie in memory of the host, for
DaCe puts them into that of the GPU, where no MPI can write them. Each program becomes NAME.so, with
the messages of dace_mpi_staging.c, and NAME.json, the arguments of its functions.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python/support/dace"))

PROGRAMS = ("jacobi_1d", "jacobi_2d")
STAGING = Path(__file__).with_name("dace_mpi_staging.c")
CUDA = Path("/usr/local/cuda")
FLAGS = ["-std=c++20", "-O3", "-DWITH_CUDA", "-DOMPI_SKIP_MPICXX"]
HOST = ["-march=x86-64-v3", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros"]


def graph_of(program: Any, folder: Path) -> Any:
    """Return DaCe's graph for GPUs, with its code in a folder."""
    import dace
    from dace.transformation.dataflow import MapFusionVertical

    from cpufree.dace.graph.frontend import _without_limits

    dace.Config.set("compiler", "cuda", "cuda_arch", value="90")
    dace.Config.set("compiler", "cuda", "default_block_size", value="64,8,1")
    with _without_limits():
        graph = program.to_sdfg(simplify=True)
        graph.apply_transformations_repeated([MapFusionVertical])
        graph.apply_gpu_transformations()
        graph.simplify()
        for nested in graph.all_sdfgs_recursive():
            for desc in nested.arrays.values():
                if isinstance(desc.dtype, dace.dtypes.opaque):
                    desc.storage = dace.StorageType.CPU_Heap
        for code in graph.generate_code():
            (folder / f"{code.name}.{code.title}.{code.language}").write_text(code.code)
    (folder / "include").mkdir(exist_ok=True)
    (folder / "include/hash.h").write_text(f'#define __HASH_{graph.name} "none"\n')
    return graph


def compiled(folder: Path, out: Path) -> None:
    """Compile the code in a folder to a library."""
    import dace

    runtime = Path(dace.__file__).parent / "runtime/include"
    mpi = {k: _shown("mpicc", f"-showme:{k}") for k in ("compile", "link")}
    gpu = next(folder.glob("*.CUDA.cu"))
    frame = next(folder.glob("*.Frame.cpp"))
    text = frame.read_text().replace("../../include/hash.h", str(folder / "include/hash.h"))
    frame.write_text(text)
    packed = [x for flag in HOST for x in ("-Xcompiler", flag)]
    include = [f"-I{runtime}", f"-I{CUDA / 'include'}"]
    _do("nvcc", *FLAGS, *packed, "-arch=sm_90", "--expt-relaxed-constexpr", *include,
        "-c", gpu, "-o", folder / "gpu.o")  # fmt: skip
    _do("g++", *FLAGS, *HOST, *include, *mpi["compile"], "-c", frame, "-o", folder / "frame.o")
    _do("gcc", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", *include, *mpi["compile"],
        "-c", STAGING, "-o", folder / "staging.o")  # fmt: skip
    # Its own names first: MPI's are those of dace_mpi_staging.c.
    objects = [folder / f"{n}.o" for n in ("gpu", "frame", "staging")]
    _do("g++", "-shared", "-Wl,-Bsymbolic", *objects, *mpi["link"], f"-L{CUDA / 'lib64'}",
        "-lcudart_static", "-lpthread", "-ldl", "-lrt", "-o", out)  # fmt: skip


def signature(folder: Path, name: str) -> dict[str, list[list[str]]]:
    """Return the arguments of a library's functions, type and name, behind the handle."""
    text = next(folder.glob("*.CallHeader.h")).read_text()
    found = {}
    for function in ("init", "program"):
        match = re.search(rf"__(?:dace_)?{function}_{name}\(([^)]*)\)", text)
        assert match is not None, text
        parts = [p.strip() for p in match[1].split(",") if "handle" not in p]
        found[function] = [p.replace("__restrict__ ", "").rsplit(" ", 1) for p in parts]
    return found


def _shown(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def _do(*command: Any) -> None:
    subprocess.run([str(c) for c in command], check=True, stderr=subprocess.DEVNULL, timeout=300)


def main() -> None:
    """Write the libraries."""
    from dace_programs import PROGRAMS as ALL

    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            graph = graph_of(ALL[name], folder)
            compiled(folder, out / f"{name}.so")
            told = {"name": graph.name, **signature(folder, graph.name)}
            (out / f"{name}.json").write_text(json.dumps(told, indent=1))
        print(name, "compiled")


if __name__ == "__main__":
    main()
