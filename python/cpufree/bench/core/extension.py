"""The extension with the host-driven baselines."""

from __future__ import annotations

import importlib
from types import ModuleType

from cpufree.errors import UnsupportedError


def load_baselines() -> ModuleType:
    """Return the extension with the baselines; UnsupportedError where it does not load."""
    try:
        return importlib.import_module("cpufree._baselines")
    except ImportError as error:
        why = "" if isinstance(error, ModuleNotFoundError) else f" that loads ({error})"
        raise UnsupportedError(
            f"this build has no host-driven baselines{why}; they need CUDA: make gpu"
        ) from None
