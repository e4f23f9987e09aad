"""The binary interface of libcpufree, compared with that of the last release.

Usage: python -m tools.library.abi LIBRARY --check|--write. cpufree/library/abi.txt holds, by line,
the names that the library shows with their versions, and of cpufree.h the functions, the numbers of
enumerators, and the sizes and offsets of structs and their members. Programs that were linked with
the last release go on to run if all of that is still there; structs may grow at their ends. --check
fails for any difference; --write takes what is new, and refuses what breaks programs, unless the
number in the library's name has changed too.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADER = ROOT / "cpufree/cpufree.h"
KEPT = ROOT / "cpufree/library/abi.txt"


def output_of(*command: str | Path) -> str:
    """Return what a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def shown(library: Path) -> Iterator[str]:
    """Yield the name of a library, and the names that it shows."""
    soname = re.search(r"\(SONAME\).*\[(.*)\]", output_of("readelf", "-d", library))
    yield f"soname {soname[1] if soname else 'none'}"
    for line in output_of(
        "nm", "-D", "--defined-only", "--with-symbol-versions", library
    ).splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":  # the versions themselves
            yield f"symbol {name.replace('@@', ' ')}"


def structs_of(header: str) -> dict[str, list[str]]:
    """Return the members of each struct of a header."""
    bare = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", bare, re.DOTALL)
    return {
        name: [re.findall(r"\w+", one)[-1] for one in re.split("[;,]", body) if one.strip()]
        for name, body in found
    }


def described(header: str) -> Iterator[str]:
    """Yield what a header promises: functions, numbers, sizes and offsets."""
    bare = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    for function in re.findall(r"^CPUFREE_API ([^;]*);", bare, re.MULTILINE):
        yield f"function {' '.join(function.split())}"
    constants = [name for body in re.findall(r"enum \{(.*?)\}", bare, re.DOTALL)
                 for name in re.findall(r"(\w+) =", body)]  # fmt: skip
    prints = [f'printf("constant {name} %d\\n", {name});' for name in constants]
    for name, members in structs_of(header).items():
        prints.append(f'printf("struct {name} %zu\\n", sizeof({name}));')
        prints += [
            f'printf("member {name}.{m} %zu %zu\\n", offsetof({name}, {m}),'
            f" sizeof((({name}*)0)->{m}));"
            for m in members
        ]
    program = "#include <stddef.h>\n#include <stdio.h>\n" + header
    program += "int main(void) {\n" + "\n".join(prints) + "\nreturn 0;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "abi.c"), Path(folder, "abi")
        source.write_text(program, encoding="utf-8")
        subprocess.run([os.environ.get("CC", "cc"), source, "-o", binary], check=True)
        yield from output_of(binary).splitlines()


def broken(old: list[str], new: list[str]) -> list[str]:
    """Return what of an interface programs would miss in a newer one."""
    there = set(new)
    sizes = {line.split()[1]: int(line.split()[2]) for line in new if line.startswith("struct ")}
    missing = []
    for line in old:
        kind, name, *rest = line.split()
        grown = kind == "struct" and sizes.get(name, 0) >= int(rest[0])
        if line not in there and not grown:
            missing.append(line)
    return missing


def main() -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    now = [*shown(asked.library), *described(HEADER.read_text(encoding="utf-8"))]
    old = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    lost = broken(old, now) if old[:1] == now[:1] else []
    for line in lost:
        print(f"library_abi: programs of the last release miss: {line}")
    if lost:
        print("library_abi: keep it, or give the library another number (SOVERSION)")
        return 1
    if asked.write:
        KEPT.write_text("\n".join(now) + "\n", encoding="utf-8")
    elif now != old:
        changed = sorted(set(now) ^ set(old))
        print(
            "library_abi: new, python -m tools.library.abi --write takes it:", *changed, sep="\n  "
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
