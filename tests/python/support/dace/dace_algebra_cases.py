"""Arguments of the kernels of dace_algebra.py: of those that run, and of those that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
from dace_algebra import (
    adi,
    atax,
    azimint_hist,
    azimint_naive,
    bicg,
    cholesky,
    contour_integral,
    conv2d,
    correlation,
    covariance,
    crc16,
    deriche,
    doitgen,
    durbin,
    gemm,
    gemver,
    gesummv,
    gramschmidt,
    k2mm,
    k3mm,
    lenet,
    lu,
    ludcmp,
    mandelbrot1,
    mandelbrot2,
    mlp,
    mvt,
    nbody,
    nussinov,
    resnet,
    scattering,
    softmax,
    spmv,
    stockham_fft,
    symm,
    syr2k,
    syrk,
    trisolv,
    trmm,
    vadv,
)


def grid(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def whole(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(0, 20, shape)


POSITIVE = 40.0 * np.eye(99) + 0.5 * (grid(1, 99, 99) + grid(1, 99, 99).T)
RUNS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "gemm": (gemm, (grid(1, 20, 40), grid(2, 40, 15), grid(3, 20, 15))),
    "gesummv": (gesummv, (grid(1, 50, 50), grid(2, 50, 50), grid(3, 50), grid(4, 50))),
    "k2mm": (k2mm, (grid(1, 20, 50), grid(2, 50, 40), grid(3, 40, 30), grid(4, 20, 30))),
    "k3mm": (
        k3mm,
        (grid(1, 20, 40), grid(2, 40, 35), grid(3, 35, 45), grid(4, 45, 30), grid(5, 20, 30)),
    ),
    "atax": (atax, (grid(1, 50, 40), grid(2, 40), grid(3, 40))),
    "bicg": (bicg, (grid(1, 50, 40), grid(2, 40), grid(3, 50), grid(4, 50), grid(5, 40))),
    "mvt": (mvt, (grid(1, 50, 50), *(grid(k, 50) for k in range(2, 6)))),
    "gemver": (gemver, (grid(1, 50, 50), *(grid(k, 50) for k in range(2, 10)))),
    "doitgen": (doitgen, (grid(1, 6, 7, 40), grid(2, 40, 40))),
    "covariance": (covariance, (grid(1, 60, 40), grid(2, 40, 40))),
    "correlation": (correlation, (grid(1, 60, 40), grid(2, 40, 40))),
    "softmax": (softmax, (grid(1, 3, 2, 10, 50), grid(2, 3, 2, 10, 50))),
    "mlp": (
        mlp,
        (grid(1, 20, 40), grid(2, 40, 50), grid(3, 50), grid(4, 50, 45), grid(5, 45),
         grid(6, 20, 45)),
    ),
    "azimint_naive": (azimint_naive, (grid(1, 500), np.abs(grid(2, 500)), grid(3, 16))),
    "nbody": (nbody, (3, np.abs(grid(1, 50)), *(grid(k, 50) for k in range(2, 6)))),
    "mandelbrot1": (
        mandelbrot1,
        (np.linspace(-2, 1, 30), np.linspace(-1, 1, 20), np.zeros((20, 30)), np.zeros((20, 30)),
         np.zeros((20, 30), np.int64)),
    ),
    "conv2d": (conv2d, (grid(1, 2, 12, 11, 3), grid(2, 3, 3, 3, 4), grid(3, 4),
                        grid(4, 2, 10, 9, 4))),
    "scattering": (scattering, (grid(1, 3, 2, 12, 12), grid(2, 3, 2), grid(3, 3, 2, 12, 12))),
    "lenet": (lenet, (grid(1, 3, 22, 18), grid(2, 3, 3), grid(3, 3, 10, 8))),
    "syrk": (syrk, (grid(1, 70, 50), grid(2, 70, 70))),
    "syr2k": (syr2k, (grid(1, 50, 35), grid(3, 50, 35), grid(2, 50, 50))),
    "symm": (symm, (grid(1, 40, 40), grid(2, 40, 50), grid(3, 40, 50))),
    "trmm": (trmm, (grid(1, 65, 65), grid(2, 65, 80))),
    "trisolv": (trisolv, (POSITIVE, grid(1, 99), grid(2, 99))),
    "cholesky": (cholesky, (POSITIVE,)),
    "lu": (lu, (POSITIVE[:60, :60],)),
    "ludcmp": (ludcmp, (POSITIVE[:60, :60], grid(1, 60), grid(2, 60))),
    "durbin": (durbin, (0.01 * grid(1, 99), grid(2, 99))),
    "gramschmidt": (gramschmidt, (grid(1, 70, 60), grid(2, 60, 60), grid(3, 70, 60))),
    "adi": (adi, (5, *(np.abs(grid(k, 100, 100)) for k in range(3)))),
    "deriche": (deriche, (grid(1, 99, 80), grid(2, 99, 80))),
    "vadv": (vadv, tuple(np.abs(grid(k, 20, 20, 40)) for k in range(3))),
    "nussinov": (nussinov, (whole(1, 60), whole(2, 60, 60))),
    "crc16": (crc16, (whole(1, 160), whole(2, 1))),
    "resnet": (resnet, (grid(1, 2, 5, 6, 35), grid(2, 35, 35), grid(3, 2, 5, 6, 35))),
}  # fmt: skip
"""Kernels that run, with arguments."""

_COMPLEX = "holds complex128"
REFUSED: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "spmv": (
        spmv,
        (np.arange(0, 397, 4), whole(1, 396) * 4, grid(1, 396), grid(2, 99), grid(3, 99)),
        "known only in the run",
    ),
    "azimint_hist": (
        azimint_hist,
        (grid(1, 500), np.random.default_rng(1).random(500), grid(3, 16)),
        "the index place is a value of an array",
    ),
    "mandelbrot2": (mandelbrot2, tuple(grid(k, 20, 30) + 1j for k in range(2)), _COMPLEX),
    "contour_integral": (
        contour_integral,
        (grid(1, 20, 20) + 1j, grid(2, 20, 30) + 1j, grid(3, 20, 30) + 1j),
        _COMPLEX,
    ),
    "stockham_fft": (stockham_fft, tuple(grid(k, 64) + 1j for k in range(2)), _COMPLEX),
}
"""Kernels that are refused, with what the message says."""
