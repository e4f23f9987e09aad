"""A command, and the package, load what they need: what is loaded for nothing costs time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cpufree

SOLVE = (
    "import sys\n"
    "from cpufree.cli import app\n"
    "words = ['solve', 'gen:poisson2d?nx=20,ny=20', '-q', '--engine', 'cpu_threads']\n"
    "try:\n"
    "    app.main(words)\n"
    "except SystemExit as end:\n"
    "    assert not end.code, end.code\n"
)
FOR_OTHER_COMMANDS = (
    *("cpufree.bench", "cpufree.stencil", "cpufree.cli.stencil_command"),
    *("cpufree.cli.matrix_commands", "cpufree.cli.doctor", "cpufree.cli.plot"),
)
FOR_OTHER_SYSTEMS = (
    *("cpufree.generate.networks", "cpufree.generate.hex_elasticity", "cpufree.generate.suites"),
    *("cpufree.matrix.io.mat", "cpufree.matrix.io.matrix_market", "cpufree.matrix.io.archive"),
)
LARGE = (
    *("matplotlib", "pymetis", "pandas", "cupy", "torch", "IPython"),
    *("scipy.io", "scipy.sparse.linalg", "scipy.sparse.csgraph", "scipy.spatial"),
)


def loaded(program: str, names: tuple[str, ...]) -> set[str]:
    """Return which of the modules a program has loaded in the end."""
    program += f"\nimport sys; print('loaded', *(set({names!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "loaded"
    return set(last[1:])


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version_is_told_without_what_commands_need(flag: str) -> None:
    program = (
        f"import sys; sys.argv = ['cpufree', '{flag}']\nimport cpufree.__main__ as m; m.main()"
    )
    others = ("numpy", "scipy", "rich", "typer", "cpufree.cli.app")
    assert loaded(program, others) == set()


def test_importing_the_package_loads_none_of_the_others() -> None:
    others = ("numpy", "scipy", "rich", "typer", "pymetis", "matplotlib", "cpufree._core")
    assert loaded("import cpufree", others) == set()


@pytest.mark.parametrize("names", [FOR_OTHER_COMMANDS, FOR_OTHER_SYSTEMS, LARGE])
def test_a_small_solve_loads_no_more_than_it_needs(names: tuple[str, ...]) -> None:
    assert loaded(SOLVE, names) == set()


@pytest.mark.parametrize("name", ["A.cpufree", "A.mtx"])
def test_a_solve_from_a_file_loads_no_scipy(tmp_path: Path, name: str) -> None:
    A = cpufree.generate.from_spec("poisson2d?nx=20,ny=20")
    cpufree.save_matrix(tmp_path / name, A)
    program = SOLVE.replace("gen:poisson2d?nx=20,ny=20", str(tmp_path / name))
    assert loaded(program, ("scipy", "scipy.sparse", "cpufree.generate")) == set()
    script = f"import cpufree; cpufree.Solver({str(tmp_path / name)!r}, engine='cpu_threads')"
    assert loaded(script, ("scipy", "rich", "typer")) == set()


def test_what_a_solve_needs_is_seen_to_be_loaded() -> None:
    needed = ("numpy", "rich", "typer", "cpufree._core", "cpufree.generate.stencils")
    assert loaded(SOLVE, needed) == set(needed)


def test_a_command_is_found_by_the_first_word_alone() -> None:
    program = "from cpufree.cli import app\nassert app.command_line(['info', 'A.mtx'])"
    assert loaded(program, ("cpufree.cli.matrix_commands",)) == {"cpufree.cli.matrix_commands"}
    assert loaded(program, ("cpufree.bench.commands",)) == set()
