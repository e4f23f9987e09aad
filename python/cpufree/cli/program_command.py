"""The command `cpufree program`: runs a NumPy-style program out of a file of Python."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from cpufree import options
from cpufree.cli import display
from cpufree.cli.commands import PLOT_SUFFIXES, check_can_write, save_grid
from cpufree.cli.option_types import with_options
from cpufree.cli.rank_commands import as_rank
from cpufree.compiler.decorated import Program
from cpufree.errors import InvalidInputError
from cpufree.text import counted

EPILOG = """
FILE.py has a function with @cpufree.program, and a function arguments() that returns what it is
called with.

[bold]Examples[/bold]

  cpufree program wave.py --plot wave.png

  cpufree program wave.py --explain

[bold]Exit codes[/bold]

  0 done · 1 unexpected error · 2 wrong usage · 3 wrong input or file, or a program outside the
  language · 4 the compiler or the engine failed · 5 out of memory · 130 interrupted (Ctrl-C)
"""


@with_options(options.PROGRAM)
def program(
    file: Annotated[str, typer.Argument(metavar="FILE.py", help="A file with a program.")],
    given: dict[str, Any],
) -> None:
    """Run a NumPy-style program on grids as one kernel: @cpufree.program in a file."""
    check_can_write(given["plot"], PLOT_SUFFIXES)
    check_can_write(given["out"], (".npy",))
    module = load(file)
    chosen = choose(module, given["name"], file)
    make = getattr(module, "arguments", None)
    if not callable(make):
        raise InvalidInputError(
            f"{file} has no function arguments(): write one that returns the arguments of "
            f"{chosen.name} as a tuple"
        )
    arguments = make()
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    paper = display.report_console()
    if given["explain"]:
        paper.print(Text(str(chosen.explain(*arguments))))
        return
    with as_rank(given["engine"]) as (engine, speaks):
        try:
            result = chosen.run(
                arguments,
                engine=engine,
                pes=given["pes"],
                gpus=given["gpus"],
                wait_limit=given["wait_limit"],
                progress=True if speaks else None,
            )
        except KeyboardInterrupt:
            Console(stderr=True).print("interrupted; nothing is saved")
            raise typer.Exit(130) from None
        if speaks:
            _tell(chosen, result, arguments, given)


def _tell(chosen: Program, result: Any, arguments: tuple[Any, ...], given: dict[str, Any]) -> None:
    """Save what is asked for, and print the facts of a run."""
    shown = picture(result, arguments)
    if given["out"] and shown is not None:
        save_grid(given["out"], shown)
    if given["plot"] and shown is not None:
        from cpufree.cli.plot import plot_array

        plot_array(shown, given["plot"], chosen.name)
    facts = _facts(chosen, result, given["timings"])
    display.report_console().print(display.pairs(facts, chosen.name))


def load(file: str) -> ModuleType:
    """Return a file of Python as a module.

    Raises:
        InvalidInputError: there is none.
    """
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        raise InvalidInputError(
            f"{file} is no file of Python: give the name of one that ends in .py"
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def choose(module: ModuleType, name: str | None, file: str) -> Program:
    """Return the program of a module: that of a name, or the last one."""
    found = {key: value for key, value in vars(module).items() if isinstance(value, Program)}
    if not found:
        raise InvalidInputError(f"{file} has no function with @cpufree.program")
    if name is None:
        return list(found.values())[-1]
    if name not in found:
        raise InvalidInputError(f"{file} has no program {name}; it has {', '.join(found)}")
    return found[name]


def picture(result: Any, arguments: tuple[Any, ...]) -> NDArray[Any] | None:
    """Return the array to be shown: the first one that is returned, or else an argument."""
    returned = result if isinstance(result, tuple) else (result,)
    for value in (*returned, *arguments):
        if isinstance(value, np.ndarray) and value.ndim > 0:
            return value
    return None


def _facts(chosen: Program, result: Any, timings: bool) -> list[tuple[str, str]]:
    rows = [
        ("engine", f"{chosen.engine}: {counted(chosen.pes, 'PE')}"),
        ("kernel", display.seconds(chosen.timings["kernel"])),
    ]
    returned = result if isinstance(result, tuple) else (result,)
    numbers = [str(v) for v in returned if v is not None and not isinstance(v, np.ndarray)]
    if numbers:
        rows.append(("returned", ", ".join(numbers)))
    if timings:
        parts = ((n, s) for n, s in chosen.timings.items() if n != "kernel")
        rows += [(name, display.seconds(seconds)) for name, seconds in parts]
    return rows
