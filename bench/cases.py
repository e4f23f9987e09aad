"""The matrices that are measured, and where they are kept between runs."""

from __future__ import annotations

import getpass
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import cpufree
import cpufree.generate

MOST_ROWS_OF_SMALL = 10_000


@dataclass(frozen=True)
class Case:
    """A large matrix: what it is called, how it is made, iterations that are timed."""

    name: str
    spec: str
    iterations: int = 100


LARGE = (
    Case("poisson3d", "poisson3d?nx=110,ny=110,nz=110"),
    Case("poisson2d", "poisson2d?nx=1024,ny=1024"),
    Case("ecology2", "ecology2?m=1001"),
    Case("parabolic_fem", "parabolic_fem?level=9"),
    Case("thermal2d", "thermal2d?m=1070"),
    Case("heart", "heart?m=140,mesh=bcc"),
    Case("flange_hex", "flange_hex?r_out=64,t=9,pipe=24"),
)
LARGE_QUICK = (
    Case("poisson3d", "poisson3d?nx=32,ny=32,nz=32", 20),
    Case("flange_hex", "flange_hex?r_out=20,t=4,pipe=10", 20),
)
SMALL = tuple(
    (f"poisson2d {nx}×{ny}", f"poisson2d?nx={nx},ny={ny}")
    for nx, ny in ((10, 10), (15, 20), (25, 40), (50, 60), (100, 100))
)
SMALL_QUICK = (SMALL[0], SMALL[2])


def scipy_form(A: sp.csr_array) -> sp.csr_array:
    """Return A in memory of its own with 32-bit indices, the form in which SciPy is fastest."""
    A = sp.csr_array(A)
    A.sort_indices()
    parts = (np.array(A.data), A.indices.astype(np.int32), A.indptr.astype(np.int32))
    return sp.csr_array(parts, shape=A.shape)


def default_cache() -> Path:
    """Return the folder in which generated matrices are kept."""
    return Path(tempfile.gettempdir()) / f"cpufree-bench-{getpass.getuser()}"


def kept_file(case: Case, cache: Path) -> Path:
    """Return the file of the matrix of a case in the folder `cache`; it is made once.

    Its name carries a hash of the generators: when these change, it is made anew.
    """
    key = hashlib.sha256(case.spec.encode())
    for source in sorted(Path(cpufree.generate.__file__).parent.glob("*.py")):
        key.update(source.read_bytes())
    file = cache / f"{case.name}-{key.hexdigest()[:16]}.cpufree"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        cpufree.save_matrix(file, cpufree.generate.from_spec(case.spec))
    return file


def load_large(case: Case, cache: Path) -> sp.csr_array:
    """Return the matrix of a case, from the folder `cache`, where it is made once."""
    return scipy_form(cpufree.load_matrix(kept_file(case, cache)))


def load_small(data: Path | None, quick: bool) -> dict[str, sp.csr_array]:
    """Return the small systems by name: Poisson-like ones, and the real ones of folder `data`."""
    generated = SMALL_QUICK if quick else SMALL
    matrices = {name: cpufree.generate.from_spec(spec) for name, spec in generated}
    for file in sorted(data.glob("*.mtx.gz")) if data else ():
        matrix = cpufree.load_matrix(file)
        if matrix.shape[0] <= MOST_ROWS_OF_SMALL:
            matrices[file.name.removesuffix(".mtx.gz")] = matrix
    return {name: scipy_form(matrix) for name, matrix in matrices.items()}
