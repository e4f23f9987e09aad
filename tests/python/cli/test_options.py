"""The schema of options: Python, command line, environment and pages agree with it."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cli_runner import runner

import cpufree
from cpufree import options
from cpufree.engines.choices import valid
from cpufree.env import VARIABLES
from cpufree.errors import InvalidInputError
from cpufree.options import Option, variables
from cpufree.options import stencil as stencil_options
from cpufree.stencil import jacobi
from tools.results.option_tables import with_tables

# Arguments that are no options of the command line: data, and what Python alone can take.
TABLES = {**options.TABLES, **stencil_options.TABLES}
DATA = {
    *("self", "A", "b", "x0", "u0", "source", "shape", "progress", "gather", "_call", "dtype"),
    "columns",  # the command line takes one right-hand side
}


@pytest.mark.parametrize(
    ("function", "table"),
    [
        (cpufree.Solver.__init__, options.SOLVE),
        (cpufree.Solver.solve, options.SOLVE),
        (cpufree.solve, options.SOLVE),
        (jacobi, stencil_options.STENCIL),
    ],
    ids=["Solver", "Solver.solve", "solve", "jacobi"],
)
def test_arguments_in_python_have_the_defaults_of_the_schema(
    function: Callable[..., Any], table: tuple[Option, ...]
) -> None:
    parameters = inspect.signature(function).parameters
    both = [option for option in table if option.name in parameters and option.name != "iters"]
    assert len(both) >= 6
    assert set(parameters) - {option.name for option in table} <= DATA
    for option in both:
        default = parameters[option.name].default
        # None: what holds then is said elsewhere.
        if (function, option.name) == (cpufree.Solver.solve, "pc"):
            assert default is None  # the one that the Solver was made with
        elif default is not inspect.Parameter.empty and option.name != "wait_limit":
            assert default == option.default, option.name


@pytest.mark.parametrize(("command", "name"), [(name, name) for name in TABLES])
def test_commands_have_the_options_of_the_schema(
    command: str,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = runner(capsys, monkeypatch)
    monkeypatch.setenv("COLUMNS", "400")
    text = run(command, "--help").out
    for option in TABLES[name]:
        assert option.spelling in text, option.name
        assert option.help in text, option.name
        if option.kind == "choice":
            assert "|".join(option.choices) in text, option.name


@pytest.mark.parametrize(
    ("option", "value", "found"),
    [
        (options.RTOL, 1, 1.0),
        (options.RTOL, np.float32(0.5), 0.5),
        (options.MAXITER, None, None),
        (options.MAXITER, np.int64(3), 3),
        (options.METHOD, "cg", "cg"),
        (options.PES, "auto", "auto"),
        (options.PES, 3, 3),
        (options.CHEBYSHEV_DEGREE, 64, 64),
        (options.REPLACE_EVERY, 0, 0),
        (options.RTOL, math.inf, sys.float_info.max),
    ],
)
def test_values_in_range_are_taken(option: Option, value: Any, found: Any) -> None:
    assert valid(option, value) == found


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (options.RTOL, -1.0, "rtol is -1.0: give a number, 0 or more"),
        (options.RTOL, None, "rtol is None"),
        (options.RTOL, math.nan, "rtol is nan: give a number, 0 or more"),
        (options.TIME_LIMIT, math.inf, "time_limit is inf: give a finite number"),
        (options.MAXITER, -1, "maxiter is -1: give a whole number from 0"),
        (options.METHOD, "gmres", "unknown method 'gmres': choose one of auto, cg, prcg, pipecg"),
        (
            options.PC,
            "ilu",
            "unknown preconditioner pc 'ilu': choose one of auto, jacobi, chebyshev",
        ),
        (options.PES, 0, "pes is 0: give 'auto' or a whole number from 1"),
        (options.CHEBYSHEV_DEGREE, 65, "give a whole number from 1 to 64"),
        (stencil_options.CHECK_EVERY, 0, "check_every is 0: give a whole number from 1"),
    ],
)
def test_values_out_of_range_are_refused(option: Option, value: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        valid(option, value)


def test_variables_of_the_environment_are_those_of_the_schema() -> None:
    assert list(VARIABLES) == [variable.name for variable in variables.VARIABLES]


def test_a_stale_table_is_made_again() -> None:
    page = (
        "# Page\n<!-- options: convert -->\n| old |\n<!-- end of options -->\nrest\n"
        "<!-- options: environment -->\n<!-- end of options -->\n"
    )
    text = with_tables(page)
    assert "| old |" not in text and "\nrest\n" in text
    assert "| `--reorder auto\\|rcm\\|natural` |" in text
    assert "| `CPUFREE_PES` | number of PEs: auto, or a whole number from 1 |" in text
    assert with_tables(text) == text


@pytest.mark.parametrize("text", ["<!-- options: solve -->\n| a |\n", "<!-- options: x -->\n"])
def test_a_table_without_an_end_or_of_another_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not known, or has no end"):
        with_tables(text)
