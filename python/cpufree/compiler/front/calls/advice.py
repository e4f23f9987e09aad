"""What to write instead of functions that programs do not take."""

from __future__ import annotations

_GATHER = "which points are needed must be known before the run: choose with np.where or masks"
_SHAPE = "make the whole array before, np.empty(shape), and assign to its parts"
_TURNED = "A.T @ B is taken; else pass an array that is transposed before the call"

_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("argsort", "sort", "take", "searchsorted", "nonzero", "argwhere"), _GATHER),
    **dict.fromkeys(("vstack", "hstack", "append", "tile"), _SHAPE),
    **dict.fromkeys(("block", "insert", "delete", "split"), _SHAPE),
    **dict.fromkeys(("transpose", "swapaxes", "moveaxis"), _TURNED),
    **dict.fromkeys(("ravel", "flatten"), "reductions take all axes: np.sum(u)"),
    **dict.fromkeys(("argmax", "argmin"), "write u == np.max(u) for where it is"),
    **dict.fromkeys(
        ("cumsum", "cumprod"), "loop over an axis that is not divided: u[:, j] += u[:, j - 1]"
    ),
    "unique": "the shape of its result is known only in the run: use masks and np.count_nonzero",
    "print": "print between calls of some turns each (docs/compiler.md, Progress)",
    "convolve": "write the sum of slices: w[0] * u[2:] + w[1] * u[1:-1] + w[2] * u[:-2]",
}


def instead_of(name: str, else_: str = "docs/compiler.md has the list of functions") -> str:
    """Return what to write instead of a function or method that is not taken."""
    return _INSTEAD.get(name, else_)
