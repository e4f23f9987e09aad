"""Where NCCL's library lies, for the host-driven baselines."""

from __future__ import annotations

import importlib.util
from pathlib import Path

NAME = "libnccl.so.2"


def find() -> str:
    """Return the path of NCCL's library in pip's package, "" where that is not installed.

    With "", the baselines look where the system looks.
    """
    try:
        spec = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:  # there is no package nvidia
        return ""
    for folder in (spec.submodule_search_locations or []) if spec else []:
        library = Path(folder) / "lib" / NAME
        if library.exists():
            return str(library)
    return ""
