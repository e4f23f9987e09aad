"""That all ranks are given the same matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cpufree.distributed import Team
from cpufree.engines.digests import digest
from cpufree.solvers.setup.preparation import Prepared


def agree_on_matrix(team: Team, prepared: Prepared, sharing: Sequence[Any]) -> None:
    """Raise RankFailedError in all ranks unless all have the same matrix, and share it equally."""
    pattern, values = prepared.pattern, prepared.matrix.data
    facts = {
        "kind of matrix": "a whole one",
        "number of rows": pattern.rows,
        "number of nonzeros": pattern.nnz,
        "type of entries": str(values.dtype),
        "pattern of entries": list(pattern.digests or ()),
        "values of entries": digest(values),
        "partition and order": [_named(how) for how in sharing],
    }
    team.agree("matrix", facts)


def _named(how: Any) -> str:
    """Return a text for a choice of order, or for part numbers that are given."""
    return f"given {digest(how)}" if isinstance(how, np.ndarray) else str(how)


def agree_on_rows(team: Team, n: int, nnz: int | None, dtype: np.dtype[Any], check: bool) -> None:
    """Raise RankFailedError in all ranks unless all have rows of the same kind of matrix.

    `nnz` is the number of nonzeros of all of it, None where a rank does not know.
    """
    facts = {
        "kind of matrix": "own rows",
        "number of rows": n,
        "number of nonzeros": nnz,
        "type of entries": str(dtype),
        "choice of checking entries": check,
    }
    team.agree("matrix", facts)
