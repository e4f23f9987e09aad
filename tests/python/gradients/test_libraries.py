"""PyTorch and JAX are loaded when they are asked for, and are named where they are missing."""

from __future__ import annotations

import subprocess
import sys

import pytest


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_neither_is_loaded_by_a_solve() -> None:
    program = (
        "import sys, numpy as np, cpufree; from cpufree import *\n"
        "cpufree.solve(cpufree.generate.poisson1d(5), np.ones(5))\n"
        "print([name for name in ('torch', 'jax') if name in sys.modules])"
    )
    assert printed(program) == "[]\n"


@pytest.mark.parametrize(("name", "words"), [("torch", "PyTorch"), ("jax", "JAX")])
def test_missing_library_says_how_to_get_it(name: str, words: str) -> None:
    program = (
        f"import sys, cpufree; sys.modules['{name}'] = None\n"
        "for load in ('cpufree.%s.solve', 'import cpufree.%s'):\n"
        "    try:\n"
        f"        exec(load % '{name}')\n"
        "    except cpufree.UnsupportedError as error:\n"
        "        print(error)"
    )
    said = printed(program).splitlines()
    assert len(said) == 2
    for line in said:
        assert line.startswith(f"cpufree.{name} needs {words}, which does not load")
        assert line.endswith(f"pip install 'cpufree[{name}]'")
