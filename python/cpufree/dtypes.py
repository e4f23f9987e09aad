"""Types of numbers: which ones matrices are solved in, and what they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cpufree.errors import MatrixError

# float16 is exact in float32; whole numbers beyond 2**53 and long doubles are rounded.
_FLOAT_OF: dict[str, type[np.float64] | type[np.float32]] = {
    "f2": np.float32,
    "f4": np.float32,
    "f8": np.float64,
}


COMPLEX_ADVICE = "if all imaginary parts are zero, pass the real part"
"""For what takes real matrices alone."""


COMPLEX_FILE = (
    "complex, and such matrices are read of Matrix Market, .npz and .npy files: write one with "
    "scipy.io.mmwrite or scipy.sparse.save_npz"
)


def float_type(dtype: np.dtype[Any]) -> type[np.float64] | type[np.float32]:
    """Return the type in which values of `dtype` are solved.

    Raises:
        MatrixError: complex, or not numbers.
    """
    if dtype.kind == "c":
        raise MatrixError(
            f"the matrix is complex ({dtype}), and real numbers are needed here; {COMPLEX_ADVICE}"
        )
    if dtype.kind not in "fiub":
        raise MatrixError(
            f"the matrix has dtype {dtype}; it must hold real numbers, such as "
            "float64: try A.astype(float)"
        )
    return _FLOAT_OF.get(dtype.str[1:], np.float64)


def number_type(dtype: np.dtype[Any]) -> type[np.inexact[Any]]:
    """Return the type in which values of `dtype` are solved, complex ones included.

    Raises:
        MatrixError: not numbers.
    """
    if dtype.kind == "c":
        return np.complex64 if dtype.itemsize == 8 else np.complex128
    return float_type(dtype)


def vector_type(real: Any, of_complex: bool) -> np.dtype[Any]:
    """Return the type of numbers whose parts are float32 or float64: `real`, or complex."""
    kind = np.dtype(real)
    return np.result_type(kind, np.complex64) if of_complex else kind


def parts_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the type of the parts of a complex type; that of a real one is itself."""
    kind = np.dtype(dtype)
    return np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind


def is_complex(v: Any) -> bool:
    """Return whether an array, of NumPy, SciPy, CuPy or PyTorch, or a list has complex numbers."""
    if isinstance(v, (list, tuple)):
        try:
            return np.asarray(v).dtype.kind == "c"
        except (ValueError, TypeError):
            return False  # who reads it says what is wrong
    return dtype_name(v).startswith("complex")


def dtype_name(array: Any) -> str:
    """Return the type of an array's numbers as NumPy names it, "" where it has none.

    PyTorch's types are not NumPy's; `torch.float32` is named like the `float32` that it is, and so
    is that of another order of bytes.
    """
    dtype = getattr(array, "dtype", "")
    return dtype.name if isinstance(dtype, np.dtype) else str(dtype).removeprefix("torch.")
