"""The compiled core, loaded when first needed so that importing cpufree stays quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UnsupportedError

if TYPE_CHECKING:
    from .._core import System


def system_class() -> type[System]:
    """Return the class System of the extension; UnsupportedError where that does not load."""
    try:
        from .._core import System
    except ImportError as error:
        raise UnsupportedError(
            f"the compiled part of cpufree does not load ({error}). Install the package with its "
            "compiler step: pip install . in the source tree"
        ) from error
    return System
