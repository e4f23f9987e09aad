"""The command line."""

from __future__ import annotations

VERSION_WORDS = ("--version", "-V")


def version_line() -> str:
    """Return what `cpufree --version` prints."""
    import cpufree

    return f"cpufree {cpufree.__version__}"
