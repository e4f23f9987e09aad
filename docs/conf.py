"""Sphinx configuration. `make docs` builds the site into build/docs."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

project = "cpufree"
author = "The cpufree authors"
copyright = "The cpufree authors, Apache-2.0"  # Sphinx's name for it
version = release = re.search(  # type: ignore[union-attr]
    r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M
)[1]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types stand in the docstrings
# Extras that are not installed with the tools of the site.
autodoc_mock_imports = [name for name in ("jax", "torch") if find_spec(name) is None]
autodoc_preserve_defaults = True
napoleon_use_ivar = True
napoleon_use_rtype = False

# What is copied can be run: prompts and what has been printed stay behind.
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = f"cpufree {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "navbar_center": [],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"**": ["globaltoc.html"]}

# There is no network where the site is built: links within it are checked, others are not.
linkcheck_ignore = [r"https?://"]


def _outside(app: Any, docname: str, source: list[str]) -> None:
    """Make pages of files at the root, and links to Markdown files outside docs/ plain text."""
    if docname in PAGES_OF_ROOT:
        text = (ROOT / PAGES_OF_ROOT[docname]).read_text(encoding="utf-8")
        text = re.sub(r"\]\((?!docs/|https?:|#)", "](../../", text)
        source[0] = text.replace("](docs/", "](../")
    here = (DOCS / docname).parent

    def link(found: re.Match[str]) -> str:
        target = (here / found[2]).resolve()
        page = next((p for p, f in PAGES_OF_ROOT.items() if target == ROOT / f), None)
        if page:
            return f"[{found[1]}]({os.path.relpath(DOCS / page, here)}.md{found[3] or ''})"
        return found[0] if target.is_relative_to(DOCS) else found[1]

    source[0] = re.sub(r"\[([^\]]+)\]\(([^)#:\s]+\.md)(#[^)]*)?\)", link, source[0])


# Files at the root that are pages of the site, too.
PAGES_OF_ROOT = {"project/contributing": "CONTRIBUTING.md", "project/changelog": "CHANGELOG.md"}


def setup(app: Any) -> None:
    """Connect what is above to Sphinx."""
    app.connect("source-read", _outside)
