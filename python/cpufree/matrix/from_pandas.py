"""Tables of pandas as matrices. pandas is not imported: methods of the tables are all it takes."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_table(A: Any) -> bool:
    """Say whether A is a DataFrame or Series of pandas."""
    homes = (kind.__module__.partition(".")[0] for kind in type(A).__mro__)
    return "pandas" in homes and hasattr(A, "to_numpy")


def entries_of(A: Any) -> Any:
    """Return the values of a table: SciPy sparse where all columns are sparse, else NumPy.

    The labels of rows and columns are not looked at.
    """
    if A.ndim == 2 and all(hasattr(dtype, "fill_value") for dtype in A.dtypes):
        return A.sparse.to_coo()
    return np.asarray(A.to_numpy())
