"""The extension with the host-driven baselines."""

from __future__ import annotations

from types import ModuleType

from cpufree.extension import load_part


def load_baselines() -> ModuleType:
    """Return the extension with the baselines; UnsupportedError where it does not load."""
    return load_part("_baselines", "host-driven baselines", "they need CUDA and nvcc: make gpu")
