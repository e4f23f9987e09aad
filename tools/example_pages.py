"""Pages of the examples: their text and code, what they print, and their pictures.

Usage: python -m tools.example_pages --write|--check. `--write` runs the examples; one that is
skipped here keeps what it printed when it last ran.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PAGES = ROOT / "docs/examples"
PICTURES = ROOT / "docs/pictures/examples"
PROGRAM = "python -m tools.example_pages"
NOTE = f"<!-- {PROGRAM} --write makes this page. -->\n\n"
INTRODUCTION = """Short programs that run as they are, on the CPU unless the table says otherwise.
They are in the folder `examples` of the repository. Each page shows a program; most also show what
it printed on two cores, and a picture."""
LANGUAGES = {
    ".c": "c",
    ".cpp": "cpp",
    ".cu": "cpp",
    ".f90": "fortran",
    ".hpp": "cpp",
    ".txt": "cmake",
}
CELL = re.compile(r"^ *# %%( \[markdown\])?\n", re.MULTILINE)


def examples() -> list[Path]:
    """Return the examples in their order; one that is a folder is in other languages."""
    return sorted(path for path in EXAMPLES.iterdir() if path.name[0].isdigit())


def readme() -> str:
    """Return the page in the folder of the examples."""
    return (EXAMPLES / "README.md").read_text(encoding="utf-8")


def linked(text: str) -> str:
    """Return text in which names of pages are links."""
    return re.sub(r"\bdocs/((?:[\w-]+/)*([\w-]+\.md))", r"[\2](../\1)", text)


def cells(source: str) -> str:
    """Return the cells of a program as Markdown: text as text, code in fences."""
    _, *parts = CELL.split(source)
    shown = []
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        if kind:
            lines = [re.sub(r"^ *# ?", "", line) for line in body.strip("\n").splitlines()]
            shown.append(linked("\n".join(lines)) + "\n")
        else:
            shown.append("```python\n" + body.strip("\n") + "\n```\n")
    return "\n".join(shown)


def picture_of(example: Path) -> Path | None:
    """Return where the picture of an example lies, if it draws one."""
    draws = example.is_file() and "picture:" in example.read_text(encoding="utf-8")
    return PICTURES / f"{example.stem}.png" if draws else None


def page(example: Path, said: str) -> str:
    """Return the page of an example that has printed `said`."""
    text = NOTE + cells(example.read_text(encoding="utf-8"))
    text += f"\n## Run it\n\n```sh\npython examples/{example.name}\n```\n"
    if said:
        text += f"\n```text\n{said}```\n"
    if picture := picture_of(example):
        what = re.findall(r"^(A picture .*)\.$", text, re.MULTILINE)[-1]
        text += f"\n![{what}](../{picture.relative_to(ROOT / 'docs')})\n"
    return text


def page_of_folder(example: Path) -> str:
    """Return the page of an example in other languages: what README says, and its sources."""
    link = f"({example.name}/"
    section = next(part for part in readme().split("\n## ")[1:] if link in part)
    names = re.findall(rf"\({example.name}/([\w.]+)\)", section)
    text = NOTE + "# " + re.sub(r"\[([^\]]+)\]\([^)]*\)", r"`\1`", section).strip() + "\n"
    for name in [*names, "CMakeLists.txt"]:
        language = LANGUAGES[Path(name).suffix]
        source = (example / name).read_text(encoding="utf-8")
        text += f"\n## `{name}`\n\n```{language}\n{source}```\n"
    return text


def index() -> str:
    """Return the page that lists the examples, with their pictures."""
    table = "\n".join(re.findall(r"^\|.*$", readme(), re.MULTILINE))
    table = re.sub(r"\[([^\]]+)\]\((\w+?)(?:\.py)?\)", r"[\1](\2.md)", table)
    text = f"{NOTE}# Examples\n\n{INTRODUCTION}\n\n{table}\n\n"
    for example in examples():
        if picture := picture_of(example):
            path = picture.relative_to(ROOT / "docs")
            text += f"[![{example.name}](../{path})]({example.stem}.md)\n"
    names = "\n".join(example.stem for example in examples())
    return text + f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{names}\n```\n"


def run(example: Path) -> str:
    """Run an example and keep its picture; return what it printed, "" if it was skipped."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(example)],
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": folder, "MPLBACKEND": "agg"},
        )
        said = "" if done.stdout.startswith("skipped:") else done.stdout
        if found := re.search(r"^picture: (.*)\n", said, re.MULTILINE):
            PICTURES.mkdir(exist_ok=True)
            shutil.copyfile(found[1], PICTURES / f"{example.stem}.png")
            said = said.replace(found[0], "")
        return said


def printed(text: str) -> str:
    """Return what the program of a page has printed."""
    found = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return found[-1] if found else ""


def pages(write: bool) -> dict[Path, str]:
    """Return all pages as they are to be; with `write`, programs run again."""
    made = {PAGES / "index.md": index()}
    for example in examples():
        path = PAGES / f"{example.stem}.md"
        if example.is_dir():
            made[path] = page_of_folder(example)
            continue
        before = printed(path.read_text(encoding="utf-8")) if path.exists() else ""
        made[path] = page(example, (run(example) if write else "") or before)
    return made


def main() -> int:
    """Write the pages, or say which are out of date."""
    parser = argparse.ArgumentParser(prog=PROGRAM)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--write", action="store_true", help="run the examples and write their pages")
    how.add_argument("--check", action="store_true", help="fail where a page is out of date")
    write = parser.parse_args().write
    PAGES.mkdir(exist_ok=True)
    stale = False
    for path, text in pages(write).items():
        if write:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(
                f"{path.relative_to(ROOT)} is out of date: run {PROGRAM} --write", file=sys.stderr
            )
            stale = True
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
