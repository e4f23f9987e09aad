"""The compiled core, loaded when first needed so that importing cpufree stays quick."""

from __future__ import annotations

from types import ModuleType

from cpufree.errors import UnsupportedError


def load_core() -> ModuleType:
    """Return the extension; UnsupportedError where it does not load."""
    try:
        from cpufree import _core
    except ImportError as error:
        raise UnsupportedError(
            f"the compiled part of cpufree does not load ({error}). Install the package with its "
            "compiler step: pip install . in the source tree"
        ) from error
    return _core
