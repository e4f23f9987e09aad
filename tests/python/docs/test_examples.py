"""The examples run, and give the numbers that they promise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# The one that builds takes half a minute; more on a machine that does other things as well.
pytestmark = [pytest.mark.cpu_only, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def run(*command: str | Path, status: int = 0, **environment: str) -> str:
    """Run a command; return what it prints, errors too."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def example(name: str, tmp_path: Path) -> str:
    """Run an example from the folder of a test, as if it had been installed elsewhere."""
    return run(sys.executable, EXAMPLES / name, TMPDIR=str(tmp_path))


def drawn(said: str) -> bool:
    """Return whether an example has saved the picture that it names."""
    return Path(said.split("picture: ")[1].strip()).read_bytes().startswith(b"\x89PNG")


def number(text: str, after: str) -> float:
    """Return the number that follows the words."""
    found = re.search(re.escape(after) + r"\s*([-+0-9.e]+)", text)
    assert found, f"no number after {after!r} in:\n{text}"
    return float(found[1])


def test_every_example_is_tested_and_listed() -> None:
    names = sorted(path.name for path in EXAMPLES.iterdir() if path.name[0].isdigit())
    assert [name[:2] for name in names] == [f"{k:02}" for k in range(1, len(names) + 1)]
    listed, tests = (EXAMPLES / "README.md").read_text(), Path(__file__).read_text()
    tests += (ROOT / "tests/python/library/test_library.py").read_text()
    for name in names:
        assert f"({name})" in listed
        assert f'"{name}"' in tests


def test_solve_a_file(tmp_path: Path) -> None:
    said = example("01_solve_a_file.py", tmp_path)
    assert 100 < number(said, "iterations:") < 160
    assert number(said, "relative residual:") <= 1.0e-10
    assert number(said, "largest error:") < 1e-8
    assert drawn(said)


def test_solve_a_file_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_text(
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2\n2 1 1\n2 2 3\n"
    )
    said = run(sys.executable, EXAMPLES / "01_solve_a_file.py", tmp_path / "a.mtx")
    assert number(said, "iterations:") == 2


def test_time_steps(tmp_path: Path) -> None:
    said = example("02_time_steps.py", tmp_path)
    assert number(said, "amplitude:") == number(said, "exact:") == 0.937565
    assert drawn(said)


def test_scipy_drop_in(tmp_path: Path) -> None:
    said = example("03_scipy_drop_in.py", tmp_path)
    assert number(said, "info:") == 0
    assert number(said, "relative difference:") < 1e-7
    assert drawn(said)


def test_right_hand_sides_on_a_gpu(tmp_path: Path) -> None:
    said = example("04_right_hand_sides_on_a_gpu.py", tmp_path)
    if said.startswith("skipped: "):
        pytest.skip(said.strip())
    assert number(said, "largest relative residual:") < 2e-9


def test_stencil(tmp_path: Path) -> None:
    said = example("05_stencil.py", tmp_path)
    discretization = (np.pi / 64) ** 2 / 12
    assert number(said, "largest error:") == pytest.approx(discretization, rel=0.02)
    assert drawn(said)


def test_program(tmp_path: Path) -> None:
    said = example("09_program.py", tmp_path)
    assert number(said, "differences from NumPy:") == 0
    assert 0.1 < number(said, "highest wave:") < 0.3
    assert drawn(said)


def test_finite_elements(tmp_path: Path) -> None:
    said = example("10_finite_elements.py", tmp_path)
    if said.startswith("skipped: "):
        pytest.skip(said.strip())
    sag, slender = number(said, "it sags by"), number(said, "(slender:")
    assert slender < sag < 1.2 * slender
    assert drawn(said)


def test_preconditioners(tmp_path: Path) -> None:
    said = example("11_preconditioners.py", tmp_path)
    took = {name: number(said, f"{name}:") for name in ("jacobi", "chebyshev", "fsai", "amg")}
    assert took["amg"] < 20 < took["chebyshev"] < took["fsai"] < took["jacobi"]
    assert drawn(said)


def test_mixed_precision_meets_the_tolerance_and_says_where_it_fails(tmp_path: Path) -> None:
    said = example("16_mixed_precision.py", tmp_path)
    double, mixed = said.split("mixed: ")
    assert number(double, "true residual") <= 1e-10 and number(mixed, "true residual") <= 1e-10
    assert number(mixed, "residual replaced") > 5 > number(double, "residual replaced")
    assert "NOT converged" in mixed and "leave out precision='mixed'" in mixed


def test_many_systems(tmp_path: Path) -> None:
    said = example("12_many_systems.py", tmp_path)
    assert "converged: all of 500 systems" in said and "system 7 of 500" in said
    assert number(said, "largest error:") < 1e-6 and said.endswith("DiagonalError\n")


def test_complex_lattice(tmp_path: Path) -> None:
    said = example("18_complex_lattice.py", tmp_path)
    assert "x is complex128" in said
    assert "imaginary part below 1e-9: True" in said
    assert "same iterations in another gauge: True" in said
    assert "multigrid needs fewer iterations: True" in said
    assert "the diagonal entry of row 0 is 4+0.1" in said


def test_gradients(tmp_path: Path) -> None:
    said = example("13_gradients.py", tmp_path)
    if said.startswith("skipped: "):
        pytest.skip(said.strip())
    assert number(said, "at first,") < 1e-6 < number(said, "misfit:")
    assert number(said, "logarithm:") < 0.02
    assert drawn(said)


def test_pages_show_the_examples_as_they_are() -> None:
    said = run(sys.executable, "-m", "tools.example_pages", "--check", PYTHONPATH=str(ROOT))
    assert said == ""


def test_several_processes(tmp_path: Path) -> None:
    said = example("06_several_processes.py", tmp_path)
    ranks = re.findall(r"(\d+) rows from (\d+): largest error (\S+)", said)
    assert sorted(int(first) for _, first, _ in ranks) == [0, 300, 600]
    assert sum(int(rows) for rows, _, _ in ranks) == 900
    assert all(float(error) < 1e-6 for _, _, error in ranks)


def test_own_benchmark(tmp_path: Path) -> None:
    said = example("07_own_benchmark.py", tmp_path)
    found = re.findall(
        r"^(cpufree|scipy): (\S+) µs per iteration, true residual (\S+)$", said, re.M
    )
    assert [name for name, _, _ in found] == ["cpufree", "scipy"]
    ours, scipys = (float(residual) for _, _, residual in found)
    assert ours == pytest.approx(scipys, rel=1e-6)
    assert 0 < ours < 0.1
    assert all(0 < float(time) < 1e5 for _, time, _ in found)
    assert drawn(said)


def cmake(*words: str | Path, **environment: str) -> str:
    """Run CMake as the environment of the tests has it."""
    program = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("needs cmake")
    return run(program, *words, **environment)


@pytest.fixture(scope="module")
def own_kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the build folder of example 08, built against an installation of its own."""
    folder = tmp_path_factory.mktemp("package")
    build, prefix, own = folder / "build", folder / "prefix", folder / "own"
    cmake("-S", ROOT, "-B", build, "-DCPUFREE_TESTS=OFF", "-DCPUFREE_CUDA=OFF")
    cmake("--build", build)
    cmake("--install", build, "--prefix", prefix)
    shutil.copytree(EXAMPLES / "08_own_kernel", folder / "source")  # away from our own headers
    # nvcc compiles without a GPU; without nvcc, the program for GPUs is left out.
    environment = {"CUDACXX": NVCC} if NVCC else {}
    cmake("-S", folder / "source", "-B", own, f"-DCMAKE_PREFIX_PATH={prefix}", **environment)
    cmake("--build", own)
    return own


@pytest.mark.thorough
def test_own_kernel_on_threads(own_kernel: Path) -> None:
    said = run(own_kernel / "on_threads")
    assert number(said, "value after 1000 rounds:") == 2000
    assert number(said, "pi:") == pytest.approx(np.pi, abs=1e-9)


@pytest.mark.thorough
def test_own_kernel_says_who_waited_for_whom(own_kernel: Path) -> None:
    said = run(own_kernel / "on_threads", "--absent", "1", status=1)
    assert re.search(r"PE 0, block 0 gave up after \d\.\d\d s: it waited for PE 1 ", said)


@pytest.mark.skipif(NVCC is None, reason="needs nvcc")
@pytest.mark.thorough
def test_own_kernel_on_gpus(own_kernel: Path) -> None:
    said = run(own_kernel / "on_gpus")
    if not said.startswith("skipped: "):  # it has been compiled, at least
        assert number(said, "value after 1000 rounds:") == 2000
        assert number(said, "pi:") == pytest.approx(np.pi, abs=1e-9)


def test_other_matrices(tmp_path: Path) -> None:
    said = example("14_other_matrices.py", tmp_path)
    assert "DIVERGED_INDEFINITE_MAT" in said
    assert 100 < number(said, "minres: ") < 1000
    assert number(said, "bicgstab: ") < 300
    assert drawn(said)


def test_given_preconditioners(tmp_path: Path) -> None:
    said = example("17_given_preconditioners.py", tmp_path)
    jacobi, given = number(said, "Jacobi "), number(said, "given G ")
    assert given < 0.7 * jacobi and number(said, "levels ") < given
    assert "Memory of 2 GPUs" in said
