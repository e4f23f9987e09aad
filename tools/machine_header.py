"""Write cpufree/base/machine.hpp out of the description of a machine, or check it.

Usage: python tools/machine_header.py --write|--check. The header has the names of the numbers that
planners in C++ get of a machine file, and those of python/cpufree/machine/h200.json as defaults.
Exits with 1 where --check finds others.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from cpufree.machine import DEFAULT, Machine, load, planner_numbers
from cpufree.machine.files import Quantity

HEADER = Path(__file__).parents[1] / "cpufree/base/machine.hpp"
HEAD = """\
// What planners know of the machine. Made from python/cpufree/machine/{name}.json, which says
// where each number comes from, by python tools/machine_header.py --write.
#pragma once

namespace cpufree {{

struct Machine {{"""
TAIL = """\
}};

// f(name in the file, number) for each of them.
template <class F>
void each_number(Machine& machine, F&& f) {{
{each}}}

}}  // namespace cpufree
"""


def constant(name: str, entry: Quantity) -> str:
    """Return an entry as a member in C++: stencil.row_exchange is stencil_row_exchange."""
    said = f"{entry.what} [{entry.unit}]"
    comment = textwrap.indent(textwrap.fill(said[0].upper() + said[1:], 93), "  // ")
    return f"{comment}\n  double {member(name)} = {entry.value:.12g};\n"


def member(name: str) -> str:
    """Return the name of an entry in C++."""
    return name.replace(".", "_")


def header(name: str, machine: Machine) -> str:
    """Return the text of the header."""
    used = planner_numbers(machine)
    body = "".join("\n" + constant(key, machine.entries[key]) for key in used)
    each = "".join(f'  f("{key}", machine.{member(key)});\n' for key in used)
    return HEAD.format(name=name) + body + TAIL.format(each=each)


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
