"""Without tracing, kernels are what they are without the lines for tracing in their headers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cpufree
from cpufree.compiler.grid import grid_kernel
from cpufree.compiler.passes.barriers import add_barriers
from cpufree.compiler.passes.points import group_points

ROOT = Path(__file__).parents[3]
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
CPU = """
#include "cpufree/plugins/cpu/kernel.hpp"
#include "cpufree/solvers/kernel.hpp"
#include "cpufree/multigrid/cycle.hpp"
#include "cpufree/stencils/jacobi.hpp"
using namespace cpufree;
using P = cpu_threads::Port;
template <class T>
using Matrix = Sliced<T, P::width>;
void one(P& port, const SolveArgs<Matrix<double>>& args) {
  solve_kernel<PredictRecompute, Jacobi<double>>(port, args);
}
void two(P& port, const SolveArgs<Matrix<double>>& args) {
  solve_kernel<ConjugateGradient, Multigrid<double>>(port, args);
}
void three(P& port, const JacobiArgs<float>& args) { jacobi_kernel<3, false>(port, args); }
"""
GPU = """
#include "cpufree/engines/gpu_p2p/port.cuh"
#include "cpufree/formats/warp_slices.hpp"
#include "cpufree/solvers/kernel.hpp"
using namespace cpufree;
extern "C" __global__ void __launch_bounds__(512, 1)
run_on_gpu(const __grid_constant__ gpu_p2p::Shared shared,
           const __grid_constant__ SolveArgs<WarpSlices<double>, 1> args) {
  extern __shared__ double2 fast[];
  gpu_p2p::Port port(shared, reinterpret_cast<std::byte*>(fast));
  solve_kernel<PredictRecompute, Jacobi<double>>(port, args);
}
"""


def without_tracing(folder: Path) -> Path:
    """Return a folder with the headers, less all lines that are there for tracing."""
    shutil.copytree(ROOT / "cpufree", folder / "cpufree")
    hooks = {header.name for header in folder.rglob("*.hpp") if without_hooks(header)}
    assert hooks >= {"wait.hpp", "cycle.hpp", "runtime.hpp", "grid_runtime.hpp", "messages.hpp"}
    return folder


def without_hooks(header: Path) -> int:
    """Take statements for tracing out of a header; return how many they were."""
    parts = re.split(r"\n +if constexpr \(TracingPort<[^;]*>\) ?\n?", header.read_text())
    text = parts[0] + "".join(part[end_of_statement(part) :] for part in parts[1:])
    header.write_text(text)
    return len(parts) - 1


def end_of_statement(text: str) -> int:
    """Return where the first statement of a text ends, and an `else` behind it."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "({") - (sign in ")}")
        if depth == 0 and sign in "};":
            otherwise = re.match(r" else\b", text[at + 1 :])
            return at + 1 + (otherwise.end() if otherwise else 0)
    raise AssertionError(text)


def machine_code(file: Path) -> dict[str, bytes]:
    """Return the sections of an object or a cubin that hold machine code."""
    content = file.read_bytes()
    number = int.from_bytes(content[60:62], "little")
    size = int.from_bytes(content[58:60], "little")
    table = int.from_bytes(content[40:48], "little")
    rows = [content[table + k * size : table + (k + 1) * size] for k in range(number)]

    def part(row: bytes) -> bytes:
        begin = int.from_bytes(row[24:32], "little")
        return content[begin : begin + int.from_bytes(row[32:40], "little")]

    names = part(rows[int.from_bytes(content[62:64], "little")])
    found = {}
    for row in rows:
        first = int.from_bytes(row[:4], "little")
        name = names[first : names.index(b"\0", first)].decode()
        if name.startswith(".text"):
            found[name] = part(row)
    return found


def compiled(text: str, headers: Path, folder: Path, suffix: str, words: list[str]) -> Path:
    """Return an object of a text."""
    source, made = folder / f"k.{suffix}", folder / "k.o"
    source.write_text(text)
    subprocess.run([*words, f"-I{headers}", "-o", made, source], check=True, timeout=900)
    return made


def compare(text: str, suffix: str, words: list[str], tmp_path: Path) -> None:
    """Assert that machine code is the same with the headers as they are, and without tracing."""
    folders = [tmp_path / name for name in ("as_is", "without")]
    for folder in folders:
        folder.mkdir()
    headers = ROOT, without_tracing(folders[1])
    one, other = (
        machine_code(compiled(text, header, folder, suffix, words))
        for header, folder in zip(headers, folders, strict=True)
    )
    assert sum(map(len, one.values())) > 1000
    assert one == other


@pytest.mark.slow
def test_objects_for_cpus_are_the_same(tmp_path: Path) -> None:
    words = ["c++", "-std=c++20", "-O3", "-w", "-c", "-g0"]
    compare(CPU, "cpp", words, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
def test_machine_code_of_gpus_is_the_same(tmp_path: Path) -> None:
    words = [str(NVCC), "-std=c++20", "-O3", "-arch=sm_90", "-w", "-cubin"]
    words += ["--expt-relaxed-constexpr", "--extended-lambda"]
    compare(GPU, "cu", words, tmp_path)


@cpufree.program
def heat(u, v, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[:, :], v[:, :] = v.copy(), u.copy()
    return np.max(u)


@pytest.mark.slow
@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
def test_machine_code_of_programs_is_the_same(tmp_path: Path) -> None:
    words = [str(NVCC), "-std=c++20", "-O3", "-arch=sm_90", "-w", "-cubin"]
    words += ["--expt-relaxed-constexpr", "--extended-lambda"]
    u = np.zeros((64, 64))
    program = add_barriers(group_points(heat.lower(u, u.copy(), 3)))
    text = grid_kernel(program, 2, (), 8).text
    assert "rt.section(" in text.text
    compare(text.on_gpu(), "cu", words, tmp_path)
