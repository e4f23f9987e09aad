"""Check that the files named in comments, docstrings and pages exist.

Usage: python tools/check_names.py [ROOT]. Prints each name without a file as file:line: reason and
exits with 1 when there is one. A name with folders must end the path of a file in the repository,
or lead to one from the folder of the text; a bare name needs one file of that name. Names of
sources, pages and records in bench/results count; others (A.mtx) are those of users' files.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

# A file of source or text by its extension, and any record of a benchmark; no pattern like *.hpp.
NAME = re.compile(
    r"(?<![\w./{}*<>$-])(?:(?:[\w.-]+/)*\w[\w.-]*"
    r"\.(?:hpp|cpp|cuh|cu|pyi|py|cmake|sh|in|md|toml|yml|yaml)"
    r"|bench/results/[\w./-]*\.(?:jsonl|json|csv|png|txt))(?![\w*/{(-]|\.\w)"
)
# FILE.py and OUT.cpp stand for a user's file; README.md does not.
PLACEHOLDER = re.compile(r"(?:.*/)?[A-Z]+\.(?!md)\w+")
# Named, and rightly not in the repository: name -> reason.
ALLOWED: dict[str, str] = {
    "csv.py": "example of a user's file",
    "env.sh": "made by bench/peers/build_petsc.sh",
    "mine.py": "example of a user's file",
    "own.cpp": "example of a user's file",
    "petsc-peer/env.sh": "made by bench/peers/build_petsc.sh",
    "reduce.cuh": "a header of NVSHMEM",
    "s4u.hpp": "a header of SimGrid",
    "wave.py": "example of a user's file",
    "waves.py": "example of a user's file",
}
# It tells what was, so that it names files of the past.
HISTORY = "CHANGELOG.md"

Text = tuple[int, str]  # first line and words of a comment, a docstring or a page
Violation = tuple[Path, int, str]

CPP_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)


def cpp_comments(source: str) -> Iterator[Text]:
    """Yield the comments of a C++ source; strings may hold // without beginning one."""
    for found in CPP_TEXT.finditer(source):
        if found[0].startswith("/"):
            yield source.count("\n", 0, found.start()) + 1, found[0]


def python_comments(source: str) -> Iterator[Text]:
    """Yield the comments and docstrings of a Python source."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            yield first.lineno, "\n".join(source.splitlines()[first.lineno - 1 : first.end_lineno])


def hash_comments(source: str) -> Iterator[Text]:
    """Yield the comments of a shell script, a makefile or a CMake file."""
    for number, line in enumerate(source.splitlines(), 1):
        if found := re.search(r"(?:^|\s)#(.*)", line):
            yield number, found[1]


def page(source: str) -> Iterator[Text]:
    """Yield a Markdown page as it stands."""
    yield 1, source


READERS: dict[str, Callable[[str], Iterator[Text]]] = {
    **dict.fromkeys((".hpp", ".cpp", ".cu", ".cuh"), cpp_comments),
    **dict.fromkeys((".py", ".pyi"), python_comments),
    **dict.fromkeys((".cmake", ".sh", ".in", ".toml", "Makefile", "CMakeLists.txt"), hash_comments),
    ".md": page,
}


def repository_files(root: Path) -> list[str]:
    """Return the paths of the files that git tracks or would add; outside git, of all files."""
    if not (root / ".git").exists():
        return [file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file()]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (root / name).is_file()]


def path_ends(files: Iterable[str]) -> set[str]:
    """Return all ends of the paths: base/env.hpp has those two parts together and the last one."""
    parts = (name.split("/") for name in files)
    return {"/".join(each[start:]) for each in parts for start in range(len(each))}


def missing_names(folder: Path, texts: Iterable[Text], known: set[str]) -> Iterator[Text]:
    """Yield (line, name) for each file named in texts of a file in `folder` that does not exist."""
    for start, text in texts:
        for found in NAME.finditer(text):
            name = found[0]
            if name in known or name in ALLOWED or PLACEHOLDER.fullmatch(name):
                continue
            if not (name.startswith("../") and (folder / name).is_file()):
                yield start + text.count("\n", 0, found.start()), name


def check_names(root: Path) -> Iterator[Violation]:
    """Yield the names of missing files in comments, docstrings and pages below root."""
    files = repository_files(root)
    known = path_ends(files)
    for name in sorted(set(files) - {HISTORY}):
        file = root / name
        reader = READERS.get(file.suffix) or READERS.get(file.name)
        if reader is None or not NAME.search(source := file.read_text()):
            continue
        for line, missing in missing_names(file.parent, reader(source), known):
            yield file, line, f"'{missing}': no such file in the repository"


def main(root: Path) -> int:
    """Print all violations below root; return the exit status."""
    violations = list(check_names(root))
    for file, line, reason in violations:
        print(f"{file.relative_to(root)}:{line}: {reason}")
    if not violations:
        print("names: all files exist")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()))
