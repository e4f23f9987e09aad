"""What is a sparse matrix of SciPy: asked without loading SciPy, which takes a tenth of a second.

Modules that a solve from a file of ours loads import `scipy.sparse` in the functions that use it.
"""

from __future__ import annotations

import sys
from typing import Any


def issparse(A: Any) -> bool:
    """Return whether A is a sparse matrix or array of SciPy: nothing is before it is loaded."""
    loaded = sys.modules.get("scipy.sparse")
    known = getattr(loaded, "issparse", None)  # None: another thread loads it just now
    return known is not None and bool(known(A))
