"""The documentation keeps its promises: links lead somewhere, commands and code run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT

import cpufree
from cpufree.generate import parse_spec
from tools.results.timeline import description

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def blocks(language: str, page: str = "README.md") -> list[str]:
    """Return the code blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def commands(word: str) -> list[list[str]]:
    """Return the command lines of README's shell blocks that begin with a word, as words."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    split = [shlex.split(line, comments=True) for line in lines]
    return [words for words in split if words and words[0].split("/")[-1] == word]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_make_commands_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"`make (\S+)`", (ROOT / "README.md").read_text())
    assert {"demo", "test", "docs"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_addresses_are_those_of_the_package() -> None:
    urls = re.findall(
        r'^\w+ = "(https://cpufree\S+)"$', (ROOT / "pyproject.toml").read_text(), re.M
    )
    text = (ROOT / "README.md").read_text()
    assert len(urls) == 2
    assert re.findall(r"https://cpufree\S+", text) == urls[:1]


def demo_words() -> list[str]:
    """Return the command of the demo as the README shows it."""
    return next(words for words in commands("cpufree") if "convergence.png" in words)


def test_demo_is_the_command_the_readme_shows() -> None:
    demo = re.search(r"^DEMO \?= (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    assert demo
    shown = demo_words()
    assert shown == ["cpufree", "solve", demo[1], "--plot", "convergence.png"]
    name, params = parse_spec(demo[1])
    assert name in cpufree.generate.names()
    assert params


def parts(words: list[str]) -> list[tuple[str, list[str]]]:
    """Return the commands in `cpufree COMMAND ...`, with their words; `run` has one within."""
    if words[1] != "run":
        return [(words[1], words[2:])]
    begin = next(k for k, word in enumerate(words) if word in ("solve", "stencil", "doctor"))
    return [("run", words[2:begin]), (words[begin], words[begin + 1 :])]


def test_first_command_solves_files_of_the_user(own_system: Path) -> None:
    words = next(words for words in commands("cpufree") if words[1:3] == ["solve", "A.mtx"])
    program = [sys.executable, "-c", "from cpufree.cli.app import main; main()", *words[1:]]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    matrix = cpufree.load_matrix("A.mtx")
    b = np.load("b.npy")
    residual = b - matrix @ np.load("x.npy")
    assert np.linalg.norm(residual) <= 1.01e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("words", commands("cpufree"), ids=" ".join)
def test_command_line_options_exist(words: list[str]) -> None:
    for command, given in parts(words):
        done = subprocess.run(
            [sys.executable, "-c", "from cpufree.cli.app import main; main()", command, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "/usr/bin:/bin", "COLUMNS": "120"},
        )
        for word in given:
            if word.startswith("--"):
                assert word in done.stdout


@pytest.fixture
def own_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with the matrix and the right-hand side of a reader who goes on."""
    monkeypatch.chdir(tmp_path)
    matrix = cpufree.load_matrix("gen:flange_hex?r_out=20,t=4,pipe=10")
    cpufree.save_matrix("A.mtx", matrix)
    np.save("b.npy", np.ones(matrix.shape[0]))
    return tmp_path


def test_examples_run_at_once_and_print_what_the_readme_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, Any] = {}
    for code in blocks("python"):  # one after the other, as they are read
        exec(code, names)
        residual = np.linalg.norm(names["b"] - names["A"] @ names["x"])
        assert residual <= 1.01e-8 * np.linalg.norm(names["b"])
    assert names["info"] == 0
    told, shown = capsys.readouterr().out.splitlines(), blocks("text")[0].splitlines()
    number = r"[-+.e0-9]+"
    assert len(shown) >= 6
    for line, expected in zip(told, shown, strict=False):
        # Where it runs, and digits that rounding changes, differ from machine to machine.
        if not line.startswith("  engine"):
            assert re.sub(number, "#", line) == re.sub(number, "#", expected)


def test_pages_are_reached_from_the_readme() -> None:
    assert "docs/index.md" in (ROOT / "README.md").read_text()
    index = (ROOT / "docs/index.md").read_text()
    design = (ROOT / "docs/design/index.md").read_text()
    for page in (
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/solving/*.md"),
        *ROOT.glob("docs/project/*.md"),
    ):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        assert re.search(rf"^{name}$", index, re.M) or page.stem == "index", page.name
    for page in ROOT.glob("docs/design/*.md"):
        assert f"]({page.name})" in design or page.stem == "index", page.name
    for folder in ("tutorials", "examples", "reference"):
        listed = (ROOT / "docs" / folder / "index.md").read_text()
        for page in ROOT.glob(f"docs/{folder}/*.md"):
            assert f"]({page.name})" in listed or page.stem == "index", page.name


def test_times_of_the_page_on_gpus_are_those_of_the_records() -> None:
    results = (ROOT / "docs/results.md").read_text()
    rows = re.findall(
        r"^\| (\w+-like) \| [\d.]+ M \| (.+) \|$", (ROOT / "docs/gpus.md").read_text(), re.M
    )
    assert len(rows) == 3
    for matrix, cells in rows:
        for time in cells.split(" | "):
            assert re.search(rf"\| {matrix} \| .* \| {time} `", results), (matrix, time)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_picture_is_described_by_the_figures_of_its_records(page: str) -> None:
    told = re.search(r"^!\[(.*)\]\(.*timeline.svg\)$", (ROOT / page).read_text(), re.M)
    assert told
    times = [f"{float(time):.1f}" for time in re.findall(r"([\d.]+) us", description())]
    assert re.findall(r"([\d.]+) µs", told[1]) == times


@pytest.mark.slow
def test_demo_converges(tmp_path: Path) -> None:
    words = demo_words()
    program = [sys.executable, "-c", "from cpufree.cli.app import main; main()", *words[1:]]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Converged after" in done.stdout
    assert (tmp_path / "convergence.png").exists()
