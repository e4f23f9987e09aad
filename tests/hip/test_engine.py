"""The engine for AMD's GPUs on a stand-in of HIP's runtime and compiler (tests/cpp/host_hip).

Run by `make hip`, in a package that was built with CPUFREE_HIP=ON: kernels run on the host, all
else is as on a machine with such GPUs. Each case is a process of its own, with GPUs of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys


def run(program: str, **settings: str) -> str:
    """Return what a program prints, on GPUs with these settings; its last line, where it fails."""
    environment = {f"CPUFREE_STANDIN_{name.upper()}": value for name, value in settings.items()}
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


SOLVE = """
import numpy as np
import cpufree
A = cpufree.generate.poisson2d(nx=9, ny=6)
x = np.sin(np.arange(54.0))
for method, pes in (("prcg", 2), ("cg", 1)):
    r = cpufree.solve(A, A @ x, rtol=1e-10, pc="jacobi", method=method, engine="cuda_p2p", pes=pes)
    assert r.converged and np.abs(r.x - x).max() < 1e-7, r
    print(method, r.pes)
"""


def test_systems_are_solved_on_one_gpu_and_on_two() -> None:
    assert run(SOLVE).split() == ["prcg", "2", "cg", "1"]


def test_auto_leaves_gpus_alone_that_no_kernel_has_run_on() -> None:
    said = run(
        "import cpufree\n"
        "import numpy as np\n"
        "r = cpufree.stencil.jacobi(np.zeros((300, 300)), 1200)\n"
        "print(r.engine)\n"
        "A = cpufree.generate.poisson3d(nx=20, ny=20, nz=20)\n"
        "r = cpufree.solve(A, np.ones(8000))\n"
        "print(r.engine, r.why)"
    )
    first, second = said.splitlines()
    assert first == "cpu_threads" and second.startswith("cpu_threads"), said
    assert "gfx942" in second and "never run" in second, said


STENCIL = """
import numpy as np
import cpufree
u = np.random.default_rng(3).random((20, 30))
here = cpufree.stencil.jacobi(u, 3, engine="cpu_threads", pes=1)
there = cpufree.stencil.jacobi(u, 3, engine="cuda_p2p", pes=2, halo_steps=1)
assert np.array_equal(here.u, there.u), np.abs(here.u - there.u).max()
print(there.plan["sweep"], there.pes)
"""


def test_a_stencil_has_the_bits_of_the_cpu() -> None:
    assert run(STENCIL).split() == ["time_tiles", "2"]


def test_what_is_missing_is_said() -> None:
    ask = (
        "from cpufree.extension import load_core, load_gpu_core\n"
        "core = load_core()\n"
        "print(len(core.gpus()), core.gpu_note(), core.peer_problem([0, 1]))\n"
    )
    assert run(ask).split() == ["2"]
    assert "AMD driver lists no GPU" in run(ask, devices="0")
    other = run(ask, arch="gfx1100")
    assert other.startswith("0") and "gfx1100; kernels are for gfx90a" in other
    assert "Infinity Fabric" in run(ask, peers="0")
    compiler = (
        "from cpufree.extension import load_gpu_core\nprint(load_gpu_core().kernel_compiler())"
    )
    assert run(compiler).startswith("hiprtc 6.2")


def test_the_doctor_says_that_kernels_have_never_run_on_them() -> None:
    said = run(
        "from cpufree.cli.doctor import inspect_gpus\n"
        "for f in inspect_gpus().findings:\n"
        "    print(f.name, f.status.value, f.detail, sep='|')"
    )
    lines = [line.split("|") for line in said.splitlines()]
    gpu = next(line for line in lines if line[0] == "GPU 0")
    assert gpu[1] == "note" and "gfx942" in gpu[2] and "never run" in gpu[2], said
    assert ["extension", "ok", "compiled with HIP"] in lines, said
    kernels = next(line for line in lines if line[0] == "GPU kernels")
    assert kernels[1] == "ok" and "hiprtc 6.2" in kernels[2], said
