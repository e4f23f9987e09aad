"""Check the layer rules: who may include or import whom, that no imports run in a circle, who may
read the environment, and who may name a GPU vendor.

Usage: python tools/check_layers.py [ROOT]. Prints each violation as file:line: reason and exits
with 1 when there is one. The rules are the table of tools/layer_table.py.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, on any tree

from tools.layer_table import (
    CPP_MAY_INCLUDE,
    CPP_SPLIT_ROOMS,
    PYTHON_BASE,
    PYTHON_MAY_IMPORT,
    PYTHON_PROGRAMS,
)

# How much host code of the extension may see the port of kernels, the most costly header there is
# (tools/check_build.py counts what else makes a build long).
PORT = "cpufree/device/port.hpp"
MOST_THAT_SEE_THE_PORT = 35
# Of no usual build: engines and libraries of GPUs, baselines, and what CPUFREE_KERNELS=ALL adds.
NOT_IN_THE_EXTENSION = re.compile(
    r"cpufree/(bindings/(baselines|triggered/triggered_gpu)|baselines/"
    r"|engines/(cpu_fibers|gpu_p2p|remote)/"
    r"|triggered/nics/(libfabric|block|copy_engine|proxy|gpu_)"
    r"|(launch|solvers|multigrid|stencils|probes|programs|triggered)/gpu/(?!share_layout|plan/)"
    r"|plugins/(gpu/(?!loaded)|cpu/(all_kernels|linked))"
    r"|solvers/cpu/(other_kernel|remote_kernel|columns_kernel|study_kernel)"
    r"|stencils/cpu/cpu_stencil_kernel)"
)
ENVIRONMENT_READERS = {"cpufree/base/env.hpp", "python/cpufree/env.py"}

# Names of a GPU vendor's runtime, and the files that may use them: those that another vendor's
# stand beside. Of the vendor's other libraries, one file of wrappers.
VENDOR_NAMES = re.compile(
    r"\b(?:cuda|hip)[A-Z]\w*|\bcu(?:Mem|Launch|Module|Ctx|Device|Stream|Event|Graph)\w*"
    r"|\bcuda(?:_\w+)?\.h\b|\bCUDART_\w+|\bdim3\b|\bcu(?:blas|sparse)\w*"
)
VENDOR_FILES = ("cpufree/gpu/cuda/", "cpufree/gpu/hip/", "cpufree/baselines/cuda/gpu_libraries.hpp")
# The words of device code, which vendors share: in ports and kernels only, not in algorithms.
DEVICE_NAMES = re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim|__syncthreads|__shfl\w*)\b")
DEVICE_FILES = (".cu", ".cuh", "cpufree/baselines/cuda/gpu_launch.hpp")

# A type of a header at the beginning of a line: in a namespace, not in another type.
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class) (\w+)(?: final)?(?: : .*)? \{")

Violation = tuple[Path, int, str]


def cpp_row(path: str) -> str:
    """Return the row of the table for a path below cpufree/: "stencils/gpu/choice.hpp" -> ..."""
    rows = [row for row in CPP_MAY_INCLUDE if path.startswith(f"{row}/")]
    return max(rows, key=len, default=path.split("/")[0])


def cpp_room(path: str) -> str:
    """Return the room of a path below cpufree/: "engines/cpu_threads/launch.hpp" -> ..."""
    row = cpp_row(path)
    inside = path.removeprefix(f"{row}/").split("/")
    return f"{row}/{inside[0]}" if row in CPP_SPLIT_ROOMS and len(inside) > 1 else row


def check_includes(root: Path) -> Iterator[Violation]:
    """Yield the #include lines under root/cpufree that break CPP_MAY_INCLUDE."""
    for file in sorted((root / "cpufree").rglob("*.[hc]*")):
        path = file.relative_to(root / "cpufree").as_posix()
        room, row = cpp_room(path), cpp_row(path)
        if row not in CPP_MAY_INCLUDE:
            yield file, 1, f"'{row}' is not a room of the layer table"
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
            if other not in {room, "base"} and not {cpp_row(target), target} & CPP_MAY_INCLUDE[row]:
                yield file, number, f"{room} may not include {other}"


def python_room(module: str) -> str | None:
    """Return the room of a module: "cpufree.matrix.load" -> "matrix.load"; None: not listed."""
    parts = module.split(".")[1:] or ["__init__"]
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((n for n in names if n in PYTHON_MAY_IMPORT or n in PYTHON_PROGRAMS), None)


def python_modules(root: Path) -> dict[str, Path]:
    """Return the modules of the package by their full names, packages by that of __init__.py."""
    modules = {}
    for file in sorted((root / "python/cpufree").rglob("*.py")):
        parts = file.relative_to(root / "python").with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return modules


def imported_modules(module: str, file: Path, known: Container[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, module of cpufree) for each import, in functions and TYPE_CHECKING too."""
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            inner = [f"{home}.{alias.name}" for alias in node.names]
            # A name is that of a module, or is taken out of the module before it.
            names = [
                n if n in known or python_room(n) != python_room(home) else home for n in inner
            ]
        else:
            continue
        for name in dict.fromkeys(names):
            if name.split(".")[0] == "cpufree":
                yield node.lineno, name


def check_imports(root: Path) -> Iterator[Violation]:
    """Yield the imports under root/python/cpufree that break PYTHON_MAY_IMPORT."""
    modules = python_modules(root)
    for module, file in modules.items():
        own = python_room(module)
        if own is None:
            yield file, 1, f"'{module.split('.')[1]}' is not a room of the layer table"
            continue
        if own in PYTHON_PROGRAMS:
            continue
        for line, target in imported_modules(module, file, modules):
            other = python_room(target)
            if other not in {own, *PYTHON_BASE, *PYTHON_MAY_IMPORT[own]}:
                yield file, line, f"{own} may not import {other or target}"


def check_circles(root: Path) -> Iterator[Violation]:
    """Yield the import circles among the modules of the package, each once.

    All imports count, whenever they are done. That importing a module runs the __init__.py of its
    package does not count: those import nothing that needs them.
    """
    modules = python_modules(root)
    lines: dict[str, dict[str, int]] = {module: {} for module in modules}
    for module, file in modules.items():
        for line, target in imported_modules(module, file, modules):
            if target in modules and target != module:
                lines[module].setdefault(target, line)
    done: set[str] = set()
    for module in modules:
        circle = shortest_circle(module, lines, done)
        if circle:
            done.update(circle)
            path = " -> ".join([*circle, module])
            yield modules[module], lines[module][[*circle, module][1]], f"import circle: {path}"


def shortest_circle(start: str, graph: Mapping[str, Iterable[str]], done: set[str]) -> list[str]:
    """Return the modules of a shortest way from start back to it that avoids `done`, else []."""
    if start in done:
        return []
    before: dict[str, str] = {}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for target in graph[here]:
            if target == start:
                way = [here]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if target not in before and target not in done:
                before[target] = here
                queue.append(target)
    return []


def check_environment(root: Path) -> Iterator[Violation]:
    """Yield the lines that read environment variables outside the files made for it."""
    for pattern in ("cpufree/**/*.[hc]*", "python/**/*.py"):
        for file in sorted(root.glob(pattern)):
            if file.relative_to(root).as_posix() in ENVIRONMENT_READERS:
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if re.search(r"\bgetenv\s*\(|\bos\.environ\b|import .*\benviron\b", line):
                    yield file, number, "environment variables are read in env.hpp and env.py only"


def check_vendor(root: Path) -> Iterator[Violation]:
    """Yield the lines under root/cpufree that use a GPU vendor's names outside their files."""
    for file in sorted((root / "cpufree").rglob("*.[hc]*")):
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if (found := VENDOR_NAMES.search(line)) and not path.startswith(VENDOR_FILES):
                yield (
                    file,
                    number,
                    f"'{found[0]}': names of a GPU's vendor are for cpufree/gpu/cuda, hip",
                )
            if (found := DEVICE_NAMES.search(line)) and not path.endswith(DEVICE_FILES):
                yield file, number, f"'{found[0]}': algorithms ask the port"


def check_port(root: Path) -> Iterator[Violation]:
    """Yield a file where too many of the extension see the port."""
    sources = [
        file
        for file in sorted((root / "cpufree").rglob("*.cpp"))
        if not NOT_IN_THE_EXTENSION.match(file.relative_to(root).as_posix())
    ]
    see = [file for file in sources if PORT in headers_of(file, root)]
    if len(see) > MOST_THAT_SEE_THE_PORT:
        yield (
            see[-1],
            1,
            f"one of {len(see)} files of the extension that see {PORT}, of which there may be "
            f"{MOST_THAT_SEE_THE_PORT}",
        )


def check_types(root: Path) -> Iterator[Violation]:
    """Yield a type that another header of the same namespace has under the same name.

    C++ takes both for one, and a program that has both may do anything.
    """
    found: dict[tuple[str, str], Path] = {}
    headers = [*(root / "cpufree").rglob("*.hpp"), *(root / "cpufree").rglob("*.cuh")]
    for file in sorted(headers):
        spaces: list[str] = []
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if opened := re.match(r"namespace ([\w:]*) ?\{(?!.*\})", line):
                spaces.append(opened[1])
            elif line.startswith("}  // namespace") and spaces:
                spaces.pop()
            elif made := TYPE.match(line):
                other = found.setdefault(("::".join(spaces), made[1]), file)
                if other != file:
                    yield file, number, f"{made[1]} is a type of {other.relative_to(root)}, too"


def headers_of(file: Path, root: Path) -> set[str]:
    """Return the headers of the project that a file includes, and those that these include."""
    seen: set[str] = set()
    left = [file.relative_to(root).as_posix()]
    while left:
        name = left.pop()
        text = (root / name).read_text() if (root / name).exists() else ""
        found = set(re.findall(r'^\s*#\s*include\s+"(cpufree/[^"]+)"', text, re.M)) - seen
        seen |= found
        left += found
    return seen


def main(root: Path) -> int:
    """Print all violations below root; return the exit status."""
    violations = [
        *check_includes(root),
        *check_imports(root),
        *check_circles(root),
        *check_environment(root),
        *check_vendor(root),
        *check_port(root),
        *check_types(root),
    ]
    for file, line, reason in violations:
        print(f"{file.relative_to(root)}:{line}: {reason}")
    if not violations:
        print("layers: no violation")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()))
