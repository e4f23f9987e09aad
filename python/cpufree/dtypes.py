"""Types of numbers: which ones matrices are solved in, and what they are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpufree.errors import MatrixError

# float16 is exact in float32; whole numbers beyond 2**53 and long doubles are rounded.
_FLOAT_OF: dict[str, type[np.float64] | type[np.float32]] = {
    "f2": np.float32,
    "f4": np.float32,
    "f8": np.float64,
}


COMPLEX_ADVICE = (
    "if all imaginary parts are zero, pass A.real. If A is Hermitian positive definite, solve the "
    "equivalent real system of twice the size, scipy.sparse.block_array([[A.real, -A.imag], "
    "[A.imag, A.real]]) with right-hand side numpy.concatenate((b.real, b.imag)): its solution is "
    "numpy.concatenate((x.real, x.imag))"
)


def float_type(dtype: np.dtype[Any]) -> type[np.float64] | type[np.float32]:
    """Return the type in which values of `dtype` are solved.

    Raises:
        MatrixError: complex, or not numbers.
    """
    if dtype.kind == "c":
        raise MatrixError(
            f"the matrix is complex ({dtype}), but only real systems are solved; {COMPLEX_ADVICE}"
        )
    if dtype.kind not in "fiub":
        raise MatrixError(
            f"the matrix has dtype {dtype}; it must hold real numbers, such as "
            "float64: try A.astype(float)"
        )
    return _FLOAT_OF.get(dtype.str[1:], np.float64)


def dtype_name(array: Any) -> str:
    """Return the type of an array's numbers as NumPy names it, "" where it has none.

    PyTorch's types are not NumPy's; `torch.float32` is named like the `float32` that it is, and so
    is that of another order of bytes.
    """
    dtype = getattr(array, "dtype", "")
    return dtype.name if isinstance(dtype, np.dtype) else str(dtype).removeprefix("torch.")
