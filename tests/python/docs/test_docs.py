"""Code in the documentation runs: examples of public docstrings, and `>>>` blocks of pages."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from gpus_here import HERE

import cpufree

ROOT = Path(__file__).parents[3]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Public names whose docstring must have an example.
SHOWN: dict[str, Any] = {
    "cg": cpufree.cg,
    "solve": cpufree.solve,
    "Solver": cpufree.Solver,
    "Result": cpufree.Result,
    "Solver.update": cpufree.Solver.update,
    "Solver.solve": cpufree.Solver.solve,
    "stencil.jacobi": cpufree.stencil.jacobi,
}
# What examples of a page import and this machine may lack.
IMPORTS = re.compile(r"^>>> (?:import|from) (\w+)", re.MULTILINE)
PAGES = sorted(p for p in ROOT.glob("docs/**/*.md") if ">>>" in p.read_text(encoding="utf-8"))


def run(test: doctest.DocTest) -> doctest.TestResults:
    """Run the examples of a test; what failed goes to stdout."""
    return doctest.DocTestRunner(optionflags=FLAGS).run(test)


@pytest.mark.parametrize("name", SHOWN)
def test_example_of_docstring_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = doctest.DocTestParser()
    text = SHOWN[name].__doc__
    test = parser.get_doctest(text, {"cpufree": cpufree}, name, None, None)
    assert test.examples, f"{name} has no example"
    assert run(test).failed == 0, capsys.readouterr().out


def missing(code: str) -> list[str]:
    """Return what the examples of a page need and this machine lacks."""
    lacking = [name for name in IMPORTS.findall(code) if find_spec(name) is None]
    return lacking + (["a GPU"] if "cuda" in code and not HERE else [])


def test_page_that_needs_what_is_not_here_says_what() -> None:
    assert missing(">>> import numpy as np\n>>> from no_such_library import x") == [
        "no_such_library"
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # for the files that examples write
    blocks = re.findall(r"^```pycon\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    assert blocks
    code = "\n\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), 0)
    if lacking := missing(code):
        for one in test.examples:  # it is read, at least
            compile(one.source, page.name, "single")
        pytest.skip(f"needs {', '.join(lacking)}")
    assert run(test).failed == 0, capsys.readouterr().out


def test_every_public_name_is_in_the_reference() -> None:
    pages = ROOT.glob("docs/reference/*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    modules = {"errors", "generate", "stencil"}
    for name in set(cpufree.__all__) - {"__version__"} - modules:
        assert re.search(rf"cpufree\.(errors\.)?{name}\b", text), name


@pytest.mark.parametrize("function", [cpufree.solve, cpufree.Solver, cpufree.Solver.solve])
def test_every_option_is_on_the_page(function: Any) -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    section = page.partition("\n## Options\n")[2].partition("\n## ")[0]
    for name in inspect.signature(function).parameters:
        assert name in ("self", "A", "b") or name[0] == "_" or f"`{name}`" in section, name


def test_every_attribute_of_a_result_is_on_the_page() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    section = page.partition("\n## Result\n")[2].partition("\n## ")[0]
    for field in dataclasses.fields(cpufree.Result):
        assert f"`{field.name}`" in section, field.name


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_column_of_a_table_has_a_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for heads in re.findall(r"^\|(.*)\|\n\|[-:| ]+\|$", text, re.MULTILINE):
        assert all(head.strip() for head in heads.split("|")), heads


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_kernel_of_the_page_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs/own-kernel.md").read_text(encoding="utf-8")
    code = re.search(r"^```cpp\n(.*?)^```", text, re.M | re.S)
    command = re.search(r"^(c\+\+ .*)$", text, re.M)
    assert code and command
    (tmp_path / "own.cpp").write_text(code[1], encoding="utf-8")
    line = command[1].replace("own.cpp", str(tmp_path / "own.cpp")).replace("-O2", "-O0")
    line = line.replace("-o own", f"-o {tmp_path / 'own'}")
    subprocess.run(["bash", "-c", line], cwd=ROOT, check=True)
    done = subprocess.run([tmp_path / "own"], capture_output=True, text=True, check=True)
    assert done.stdout == "10\n"
