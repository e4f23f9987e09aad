"""The tables of options in pages, out of the schema of options."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from cpufree import options
from cpufree.model import options as model_options
from cpufree.options import Option
from cpufree.options import stencil as stencil_options
from cpufree.options.variables import VARIABLES
from cpufree.simulate import options as simulate_options

TABLES = {
    **options.TABLES,
    **stencil_options.TABLES,
    "trace_report": options.TRACE_REPORT,
    **model_options.TABLES,
    **simulate_options.TABLES,
    "predict": model_options.PREDICT_SOLVE,
}


def table(options: Iterable[Option]) -> str:
    """Return options as a Markdown table."""
    rows = []
    for option in options:
        if option.kind == "switch" and option.default is True:
            option = replace(option, flag=f"--no-{option.name}")
        rows.append(option.row())
    return "\n".join(["| option | meaning | default |", "| --- | --- | --- |", *rows])


def environment() -> str:
    """Return the environment variables as a Markdown table."""
    rows = [f"| `{variable.name}` | {variable.takes} |" for variable in VARIABLES]
    return "\n".join(["| variable | what it is, and what it takes |", "| --- | --- |", *rows])


def with_tables(page: str) -> str:
    """Return a page with its tables as the schema has them.

    A table stands between the comments `<!-- options: NAME -->` and `<!-- end of options -->`,
    NAME being `environment` or one of TABLES.

    Raises:
        ValueError: a table without an end, or of a name that is not known.
    """
    pieces = re.split(r"(<!-- options: \w+ -->\n)", page)
    for k in range(1, len(pieces), 2):
        name = pieces[k].split()[2]
        _, end, rest = pieces[k + 1].partition("<!-- end of options -->")
        if (name != "environment" and name not in TABLES) or not end:
            raise ValueError(f"table '{name}' is not known, or has no end")
        made = environment() if name == "environment" else table(TABLES[name])
        pieces[k + 1] = f"{made}\n{end}{rest}"
    return "".join(pieces)
