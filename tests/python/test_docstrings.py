"""Docstrings of public functions: each parameter has one entry, and help() shows it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_args

import pytest

import cpufree
from cpufree import arguments, docstrings, options

PUBLIC: dict[str, Callable[..., Any]] = {
    "cg": cpufree.cg,
    "solve": cpufree.solve,
    "Solver": cpufree.Solver,
    "Solver.solve": cpufree.Solver.solve,
    "stencil.jacobi": cpufree.stencil.jacobi,
}


def documented(text: str) -> list[str]:
    """Return the names in the section Parameters of a docstring."""
    section = re.search(r"Parameters\n-{10}\n(.*?)\n\n", inspect.cleandoc(text), re.DOTALL)
    assert section
    heads = re.findall(r"^(\w[\w, ]*) : ", section[1], re.MULTILINE)
    return [name for head in heads for name in head.split(", ")]


@pytest.mark.parametrize("name", PUBLIC)
def test_each_parameter_has_one_entry(name: str) -> None:
    called = PUBLIC[name]
    parameters = [p for p in inspect.signature(called).parameters if p not in ("self", "_call")]
    assert sorted(documented(called.__doc__ or "")) == sorted(parameters)


@pytest.mark.parametrize("name", PUBLIC)
def test_sections_of_numpy_style_are_there(name: str) -> None:
    text = inspect.cleandoc(PUBLIC[name].__doc__ or "")
    wanted = ["Parameters", "Raises", "Examples"] + (["Returns"] if name != "Solver" else [])
    for section in wanted:
        assert re.search(rf"^{section}\n-+$", text, re.MULTILINE), section
    assert not re.search(r"^\s*\{", text, re.MULTILINE)  # names in braces that stayed
    assert max(map(len, text.splitlines())) <= 100


def test_help_shows_the_entries() -> None:
    program = "import cpufree; help(cpufree.solve)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "rtol : float, default 1e-5" in done.stdout
    assert (
        'pc : {"auto", "jacobi", "chebyshev", "fsai", "amg", "none"}, default "auto"' in done.stdout
    )


def test_entries_have_type_default_and_range_of_the_schema() -> None:
    assert docstrings.entry("chebyshev_degree").splitlines() == [
        "chebyshev_degree : int, default 4",
        "    Steps of the polynomial of the preconditioner chebyshev. From 1 to 64.",
    ]


def test_a_name_that_is_not_shared_is_an_error() -> None:
    with pytest.raises(KeyError, match="nothing"):
        docstrings.expand("    {nothing}")


def test_a_program_without_docstrings_runs() -> None:
    program = "import cpufree; print(cpufree.solve.__doc__)"
    done = subprocess.run([sys.executable, "-OO", "-c", program], capture_output=True, text=True)
    assert done.stdout == "None\n", done.stderr


@pytest.mark.parametrize(
    ("alias", "option"),
    [
        (arguments.Engine, options.ENGINE),
        (arguments.Method, options.METHOD),
        (arguments.Preconditioner, options.PC),
    ],
    ids=["Engine", "Method", "Preconditioner"],
)
def test_types_name_the_words_of_the_schema(alias: Any, option: options.Option) -> None:
    assert get_args(get_args(alias)[0]) == option.choices
