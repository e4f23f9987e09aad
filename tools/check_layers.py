"""Check the layer rules: who may include or import whom, and who may read the environment.

Usage: python tools/check_layers.py [ROOT]. Prints each violation as file:line: reason and exits
with 1 when there is one. The rules are the table in docs/README.md.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Room -> what its files may include besides the room itself and base (which everybody may).
# An entry that ends in .hpp allows that one file.
CPP_MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(),
    "problem": set(),
    "reference": {"problem"},
    "device": set(),
    "solvers": {"device", "problem"},
    "stencils": {"device", "problem"},
    "engines": {"device"},
    "baselines": {
        "problem",
        "device/pack.hpp",
        "device/types.hpp",
        "engines/cuda_p2p/atomic.cuh",
        "engines/nvshmem/library.hpp",
        "solvers/args.hpp",
        "solvers/warp_slices.hpp",
        "solvers/warp_slices_build.hpp",
        "stencils/local.hpp",
    },
    "run": {"problem", "reference", "device", "solvers", "stencils", "engines", "baselines"},
    "bindings": {"problem", "run"},
}
# Engines have rooms of their own inside, which do not see one another.
CPP_SPLIT_ROOMS = {"engines"}

# Python rooms from the bottom up: each imports its own row and the rows before it.
PYTHON_ROWS: list[set[str]] = [
    {"errors", "env", "launchers", "_core", "extension"},
    {"problem", "entries", "rows", "io", "cache", "validate", "generate", "partition"}
    | {"parts", "arrangement", "quotient", "ranks"},
    {"result", "run", "stencil", "_baselines", "_baselines_mpi"},
    {"__init__", "model", "simulate", "trace", "compiler", "dace"},
    {"display", "info", "plot", "doctor", "commands", "stencil_command", "stencil_input"}
    | {"solve_command", "matrix_commands", "own_system", "rank_commands", "rank_doctor"}
    | {"bench", "cli", "__main__"},
]
ENVIRONMENT_READERS = {"cpufree/base/env.hpp", "cpufree/base/env.cpp", "python/cpufree/env.py"}

Violation = tuple[Path, int, str]


def cpp_room(path: str) -> str:
    """Return the room of a path below cpufree/: "engines/cpu_threads/launch.hpp" -> ..."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in CPP_SPLIT_ROOMS and len(parts) > 2 else parts[0]


def check_includes(root: Path) -> Iterator[Violation]:
    """Yield the #include lines under root/cpufree that break CPP_MAY_INCLUDE."""
    for file in sorted((root / "cpufree").rglob("*.[hc]*")):
        room = cpp_room(file.relative_to(root / "cpufree").as_posix())
        top = room.split("/")[0]
        if top not in CPP_MAY_INCLUDE:
            yield file, 1, f"'{top}' is not a room of the layer table"
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<(cpufree/[^>]+)>)', line)
            if not found:
                continue
            target = found[1] or found[2]
            if not target.startswith("cpufree/"):
                yield file, number, f'"{target}": include from the root, "cpufree/<room>/..."'
                continue
            target = target.removeprefix("cpufree/")
            other = cpp_room(target)
            allowed = CPP_MAY_INCLUDE[top]
            if other not in {room, "base"} and not {other.split("/")[0], target} & allowed:
                yield file, number, f"{room} may not include {other}"


def python_row(module: str) -> int | None:
    """Return the row of a module name relative to the package, None when it is not listed."""
    name = module.split(".")[0] or "__init__"
    return next((row for row, rooms in enumerate(PYTHON_ROWS) if name in rooms), None)


def imported_modules(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, module below cpufree) for each import; package is the importer's package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            submodules = [f"{module}.{alias.name}" for alias in node.names]
            listed = [name for name in submodules if python_row(name.partition(".")[2]) is not None]
            names = listed if module == "cpufree" and listed else [module]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "cpufree":
                yield node.lineno, name.partition(".")[2]


def check_imports(root: Path) -> Iterator[Violation]:
    """Yield the imports under root/python/cpufree that point upwards in PYTHON_ROWS."""
    base = root / "python"
    for file in sorted((base / "cpufree").rglob("*.py")):
        parts = list(file.relative_to(base).with_suffix("").parts)
        own = python_row(parts[1])
        if own is None:
            yield file, 1, f"'{parts[1]}' is not a room of the layer table"
            continue
        for line, module in imported_modules(ast.parse(file.read_text()), parts[:-1]):
            other = python_row(module)
            if other is None or other > own:
                yield file, line, f"{parts[1]} may not import {module or 'cpufree'}"


def check_environment(root: Path) -> Iterator[Violation]:
    """Yield the lines that read environment variables outside the files made for it."""
    for pattern in ("cpufree/**/*.[hc]*", "python/**/*.py"):
        for file in sorted(root.glob(pattern)):
            if file.relative_to(root).as_posix() in ENVIRONMENT_READERS:
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if re.search(r"\bgetenv\s*\(|\bos\.environ\b|import .*\benviron\b", line):
                    yield file, number, "environment variables are read in env.hpp and env.py only"


def main(root: Path) -> int:
    """Print all violations below root; return the exit status."""
    violations = [*check_includes(root), *check_imports(root), *check_environment(root)]
    for file, line, reason in violations:
        print(f"{file.relative_to(root)}:{line}: {reason}")
    if not violations:
        print("layers: no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()))
