"""Scripts of bench/ as modules, for tests of what they compute."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from paths import ROOT

BENCH = ROOT / "bench"


def load(name: str) -> ModuleType:
    """Return bench/NAME.py as a module; its folder is on the path meanwhile, as for a script."""
    file = BENCH / f"{name}.py"
    sys.path.insert(0, str(file.parent))
    try:
        spec = importlib.util.spec_from_file_location(f"bench_{file.stem}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module
