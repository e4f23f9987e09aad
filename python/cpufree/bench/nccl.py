"""Where NCCL's library lies, for the host-driven baselines."""

from __future__ import annotations

import importlib.util
from pathlib import Path

NAME = "libnccl.so.2"


def find() -> str:
    """Return the path of NCCL's library in pip's package, "" where that is not installed.

    With "", the baselines look where the system looks.
    """
    return in_package("nvidia.nccl", NAME)


def in_package(package: str, name: str) -> str:
    """Return the path of a library in one of pip's packages of NVIDIA, "" where it is not there."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # there is no package nvidia
        return ""
    for folder in (spec.submodule_search_locations or []) if spec else []:
        library = Path(folder) / "lib" / name
        if library.exists():
            return str(library)
    return ""
