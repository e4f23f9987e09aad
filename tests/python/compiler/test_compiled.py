"""Compiled programs give the bits of plain Python, on any number of PEs."""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grid_programs import CASES, as_tuple, assert_same, case, copies, plainly

from cpufree.errors import InvalidInputError

# Compiling takes some seconds: the others are run by `pytest -m slow`.
QUICK = ("fdtd_2d", "gray_scott", "red_black", "until_still")
EACH = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in CASES]


@pytest.mark.parametrize("name", EACH)
@pytest.mark.timeout(600)
def test_compiled_program_gives_the_bits_of_plain_python(name: str) -> None:
    used = set()
    for size in (13, 20, 37):
        program, arguments = case(name, size)
        plain = copies(arguments)
        expected = as_tuple(plainly(program)(*plain))
        for pes in (1, 2, 3, 5, 8):
            ours = copies(arguments)
            found = as_tuple(program.run(ours, pes=pes, wait_limit=30))
            used.add(program.pes)
            assert_same(name, plain, ours)
            assert_same(name, expected, found)
    assert max(used) > 1


def test_arrays_that_are_not_contiguous_are_taken() -> None:
    program, (u, f, turns) = case("red_black", 21)
    wide = np.zeros((2 * u.shape[0], 3 * u.shape[1]))
    wide[::2, ::3] = u
    program(wide[::2, ::3], f, turns)
    plainly(program)(u, f, turns)
    np.testing.assert_array_equal(wide[::2, ::3], u)
    assert not wide[1::2].any()


@pytest.mark.parametrize("options", [{"pes": 0}, {"wait_limit": -1.0}, {"progress": 3}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    program, arguments = case("red_black", 30)
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        program.run(arguments, **options)


def test_sizes_share_one_kernel() -> None:
    program, arguments = case("red_black", 30)
    program(*arguments)
    program, arguments = case("red_black", 34)
    program(*arguments)
    built = [kernel.built.path for kernel in program._kernels.values()]
    assert len(built) > 1 and len(set(built)) == 1


def test_progress_that_says_no_leaves_the_arrays_as_they_were() -> None:
    program, (u, f, _) = case("red_black", 30)
    before = u.copy()
    turns: list[int] = []

    def follow(turn: int, _: float) -> bool:
        turns.append(turn)
        return turn == 0

    for pes in (1, 3):
        turns.clear()
        program.run((u, f, 10**9), pes=pes, progress=follow)
        assert turns and turns[-1] > 0
        np.testing.assert_array_equal(u, before)


def _run_block_of_the_page(folder: Path, name: str) -> dict[str, Any]:
    """Run the example of docs/compiler.md that defines a program; return its names."""
    page = Path(__file__).parents[3] / "docs/compiler.md"
    blocks = (part.split("```")[0] for part in page.read_text().split("```python\n")[1:])
    file = folder / "page.py"
    block = next(block for block in blocks if f"def {name}(" in block)
    file.write_text(f"import math\n\nimport numpy as np\n\nimport cpufree\n\n\n{block}")
    return runpy.run_path(str(file))


def test_multigrid_of_the_page_solves_with_the_bits_of_numpy(tmp_path: Path) -> None:
    scope = _run_block_of_the_page(tmp_path, "poisson")
    u = np.zeros_like(scope["u"])
    n = len(u)
    assert scope["poisson"].function(u, scope["f"], 1 / (n - 1) ** 2, 1e-8) == scope["cycles"] < 20
    np.testing.assert_array_equal(u, scope["u"])


def test_calls_of_some_turns_each_do_what_one_call_does(tmp_path: Path) -> None:
    scope = _run_block_of_the_page(tmp_path, "driven")
    u, v = np.zeros_like(scope["u"]), np.zeros_like(scope["v"])
    assert scope["driven"](u, v, 0.2, 0, 1000) == scope["highest"]
    np.testing.assert_array_equal(u, scope["u"])


def test_example_of_the_page_runs(tmp_path: Path) -> None:
    scope = _run_block_of_the_page(tmp_path, "waves")
    assert scope["waves"].pes >= 1
    assert np.isfinite(scope["u"]).all() and (scope["u"] != 0).sum() > 10_000


def test_command_runs_a_file_and_draws_a_picture(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples/09_program.py"
    plot, out = tmp_path / "pool.png", tmp_path / "pool.npy"
    done = subprocess.run(
        [sys.executable, "-m", "cpufree", "program", example, "--plot", plot, "-o", out],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "PE" in done.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert np.load(out).shape == (201, 201)


def test_command_refuses_a_file_without_a_program(tmp_path: Path) -> None:
    file = tmp_path / "empty.py"
    file.write_text("x = 1\n")
    command = [sys.executable, "-m", "cpufree", "program", file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    assert "no function with @cpufree.program" in done.stderr


def test_interrupt_ends_the_command_with_its_exit_code(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples/09_program.py"
    file = tmp_path / "endless.py"
    file.write_text(example.read_text().replace("0.2, 400", "0.2, 10**12"))
    command = [sys.executable, "-m", "cpufree", "program", file, "-o", tmp_path / "u.npy"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        # The second thread is that of a PE: the kernel runs.
        tasks = Path(f"/proc/{process.pid}/task")
        end = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < end and _busy(tasks) < 2:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 130, said
    assert not (tmp_path / "u.npy").exists()


def _busy(tasks: Path) -> int:
    """Return how many threads of a process have computed for half a second."""
    found = 0
    for stat in tasks.glob("*/stat"):
        fields = stat.read_text().rpartition(")")[2].split()
        found += int(fields[11]) >= 50
    return found
