"""Write cpufree/base/machine.hpp out of the description of a machine, or check it.

Usage: python tools/machine_header.py --write|--check. The planners in Python and in C++ rest on the
same numbers: those of python/cpufree/machine/h200.json. Exits with 1 where --check finds others.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from cpufree.machine import DEFAULT, Machine, load
from cpufree.machine.files import Quantity

HEADER = Path(__file__).parents[1] / "cpufree/base/machine.hpp"
USED = ("gpu.", "solver.block", "solver.cached", "solver.kept", "solver.least", "stencil.")
"""Beginnings of the names that C++ uses, but for tables."""
HEAD = """\
// What planners know of the machine. Made from python/cpufree/machine/{name}.json, which says
// where each number comes from, by python tools/machine_header.py --write.
#pragma once

namespace cpufree::machine {{
"""


def constant(name: str, entry: Quantity) -> str:
    """Return an entry as a constant of C++: stencil.row_exchange is kStencilRowExchange."""
    words = name.replace(".", "_").split("_")
    said = f"{entry.what} [{entry.unit}]"
    comment = textwrap.indent(textwrap.fill(said[0].upper() + said[1:], 95), "// ")
    called = "k" + "".join(word.capitalize() for word in words)
    return f"{comment}\ninline constexpr double {called} = {entry.value:.12g};\n"


def header(name: str, machine: Machine) -> str:
    """Return the text of the header."""
    used = {
        key: entry
        for key, entry in machine.entries.items()
        if key.startswith(USED) and entry.table is None
    }
    body = "".join("\n" + constant(key, entry) for key, entry in used.items())
    return f"{HEAD.format(name=name)}{body}\n}}  // namespace cpufree::machine\n"


def main(arguments: list[str]) -> int:
    """Write or check the header; return the exit status."""
    if arguments not in (["--write"], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    text = header(DEFAULT, load())
    if arguments == ["--write"]:
        HEADER.write_text(text)
    elif HEADER.read_text() != text:
        print(f"{HEADER.name} is not up to date: python tools/machine_header.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
