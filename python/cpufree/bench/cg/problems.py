"""The systems that are measured: made or read once, and laid out in folders for the contenders.

The right-hand side is manufactured, as in Trotter et al. 2025, section 4.1.4: x* is uniform in
[-1, 1], scaled to norm 1, and b = A x*.
"""

from __future__ import annotations

import functools
import getpass
import glob
import hashlib
import importlib
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cpufree import generate
from cpufree.errors import InvalidInputError, MatrixError
from cpufree.matrix.distinct import distinct_values
from cpufree.matrix.load import MATRIX_SUFFIXES, as_csr
from cpufree.matrix.problem import CsrMatrix
from cpufree.matrix.validate import check_spd_input
from cpufree.output_file import write_text
from cpufree.partition.methods import choose_order, contiguous, partition, report
from cpufree.solvers.setup.preparation import with_dtype

LAYOUT = 2  # of the folders; another number makes them again
SEED = 1  # of x*
DTYPES = {"double": np.float64, "single": np.float32}
# Beyond this many nonzeros a graph partition takes longer than the measurements.
MOST_NNZ_OF_METIS = 150_000_000


@dataclass(frozen=True)
class Case:
    """A matrix: what it is called, and a `gen:` text or a file that it comes from."""

    name: str
    source: str


def cases(texts: Sequence[str]) -> list[Case]:
    """Return the cases of texts.

    Args:
        texts: `suite:NAME`, `suite:NAME/MATRIX`, `gen:NAME?key=value`, a file, `files:FOLDER` for
            all matrix files of a folder, or `files:PATTERN` with wildcards (`**`: of all folders).

    Raises:
        InvalidInputError: suites, matrices, generators and files that are not there, and where two
            have the same name.
    """
    found: list[Case] = []
    for text in texts:
        if text.startswith("suite:"):
            found += _of_suite(text.removeprefix("suite:"))
        elif text.startswith("gen:"):
            generate.parse_spec(text)
            found.append(Case(text.removeprefix("gen:"), text))
        elif text.startswith("files:"):
            found += _of_files(text.removeprefix("files:"))
        elif Path(text).is_file():
            found.append(_of_file(Path(text)))
        else:
            raise InvalidInputError(f"there is no matrix file '{text}'{_hint(text)}")
    names = [case.name for case in found]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise InvalidInputError(
            f"'{double}' is there twice: name each matrix once (suites that share names, and files "
            "of one name in several folders, need a run for each)"
        )
    return found


def _of_suite(text: str) -> list[Case]:
    """Return the cases of NAME or NAME/MATRIX."""
    suite, slash, one = text.partition("/")
    entries = generate.suite(suite)
    if slash and one not in (entry.name for entry in entries):
        there = ", ".join(entry.name for entry in entries)
        raise InvalidInputError(f"suite {suite} has no matrix '{one}': it has {there}")
    mine = [entry for entry in entries if not slash or entry.name == one]
    return [Case(entry.name, f"gen:{entry.spec}") for entry in mine]


def _of_files(text: str) -> list[Case]:
    """Return the matrix files of a folder, or those that a pattern finds, by their names."""
    place = Path(text).expanduser()
    paths = place.iterdir() if place.is_dir() else map(Path, glob.glob(str(place), recursive=True))
    files = [path for path in paths if path.is_file()]
    files = [path for path in files if path.name.lower().endswith(MATRIX_SUFFIXES)]
    if not files:
        raise InvalidInputError(
            f"files:{text} finds no matrix files: name a folder or a pattern, such as "
            f"'files:matrices/*.mtx'; matrix files end in {', '.join(MATRIX_SUFFIXES)}"
        )
    return sorted(map(_of_file, files), key=lambda case: case.name)


def _of_file(path: Path) -> Case:
    return Case(path.name.partition(".")[0], str(path.resolve()))


def _hint(text: str) -> str:
    """Return what may have been meant by a name that is no file."""
    if text in generate.suite_names():
        return f"; for the suite write suite:{text}"
    if text.partition("?")[0] in generate.names():
        return f"; for the generator write gen:{text}"
    if Path(text).is_dir():
        return f"; for all matrix files of the folder write files:{text}"
    return ""


def default_cache() -> Path:
    """Return the folder in which matrices are kept between runs."""
    return Path(tempfile.gettempdir()) / f"cpufree-bench-{getpass.getuser()}"


@functools.cache
def sources_hash(module: str) -> str:
    """Return a hash of a module's or package's sources: when they change, files are made again."""
    file = Path(str(importlib.import_module(module).__file__))
    sources = sorted(file.parent.glob("*.py")) if file.name == "__init__.py" else [file]
    key = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    return key.hexdigest()[:16]


class Problem:
    """A case in one precision, in a folder of the cache: made where it is not there yet."""

    def __init__(self, case: Case, precision: str, cache: Path, method: str = "auto") -> None:
        """Make or find the folder. `method`: of the partitions, as `partition` takes them."""
        self.case, self.precision, self.method = case, precision, method
        self.new = False
        """Whether anything had to be made."""
        self.folder = cache / f"{_slug(case.name)}-{precision}-{_key(case)}"
        if not (self.folder / "problem.json").exists():
            self._make()
        self.facts: dict[str, Any] = json.loads((self.folder / "problem.json").read_text())

    def _make(self) -> None:
        begin, self.new = time.perf_counter(), True
        A = as_csr(self.case.source)
        if not self.case.source.startswith("gen:"):
            try:
                check_spd_input(A)  # generated ones are symmetric; it takes long to see
            except MatrixError as error:
                error.args = (f"{self.case.source}: {error}",)  # one of several
                raise
        A = with_dtype(A, DTYPES[self.precision])
        n = A.shape[0]
        solution = np.random.default_rng(SEED).uniform(-1.0, 1.0, n)
        solution /= np.linalg.norm(solution)
        b = (exact(A) @ solution).astype(A.dtype)
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = {"indptr": A.indptr, "indices": A.indices, "data": A.data, "b": b}
        for name, array in {**arrays, "solution": solution}.items():
            np.save(self.folder / f"{name}.npy", array)
        facts = {"name": self.case.name, "source": self.case.source, "rows": n, "nnz": int(A.nnz)}
        facts["distinct"] = distinct_values(A.data)
        facts["zeros"] = int(A.nnz) - int(np.count_nonzero(A.data))
        facts["make_seconds"] = time.perf_counter() - begin
        write_text(self.folder / "problem.json", json.dumps(facts, indent=1) + "\n")

    def read(self, name: str) -> Any:
        """Map an array of the folder."""
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    @functools.cached_property
    def _exact(self) -> Any:
        return exact(self.matrix())

    def matrix(self) -> CsrMatrix:
        """Map the matrix."""
        return CsrMatrix(self.read("indptr"), self.read("indices"), self.read("data"))

    def for_pes(self, pes: int) -> Path:
        """Return the folder for N PEs, which refers to the arrays of this one."""
        shares = sources_hash("cpufree.partition.methods")
        folder = self.folder / f"pes{pes}-{self.method}-{shares}"
        if not (folder / "problem.json").exists():
            self.new = True
            folder.mkdir(exist_ok=True)
            for name in ("indptr", "indices", "data", "b"):
                link = folder / f"{name}.npy"
                link.unlink(missing_ok=True)
                link.symlink_to(Path("..") / link.name)
            facts = {key: self.facts[key] for key in ("name", "rows", "nnz")}
            facts = {**facts, "pes": pes, **self._share(pes, folder)}
            write_text(folder / "problem.json", json.dumps(facts, indent=1) + "\n")
        return folder

    def _share(self, pes: int, folder: Path) -> dict[str, Any]:
        """Write part.npy and order.npy as the solver itself would choose; return what they cost."""
        A = self.matrix()
        begin = time.perf_counter()
        part: NDArray[np.int32] | None = None
        facts: dict[str, Any] = {"partition": "one PE"}
        if pes > 1:
            if self.method == "auto" and A.nnz > MOST_NNZ_OF_METIS:
                part = contiguous(A, pes)
                facts, cost = {"partition": "contiguous"}, report(A, part, pes)
            else:
                found = partition(A, pes, self.method)
                part, facts, cost = found.part, {"partition": found.method}, found.report
            facts |= {"imbalance": cost.imbalance, "halo_values": cost.halo_values}
            np.save(folder / "part.npy", part)
        ordering = choose_order(A, part)
        if ordering.order is not None:
            np.save(folder / "order.npy", ordering.order.astype(np.int32))
        return {**facts, "order": ordering.why, "partition_seconds": time.perf_counter() - begin}

    def check(self, x: NDArray[Any]) -> dict[str, Any]:
        """Return ‖b - A x‖ / ‖b‖ and ‖x - x*‖ (‖x*‖ is 1), computed in double precision."""
        b, solution = np.array(self.read("b"), np.float64), self.read("solution")
        if x.shape != b.shape:
            raise InvalidInputError(f"the saved x has shape {x.shape} instead of {b.shape}")
        with np.errstate(all="ignore"):  # a wrong x is a result
            x = x.astype(np.float64)
            residual = np.linalg.norm(b - self._exact @ x) / np.linalg.norm(b)
            error = np.linalg.norm(x - solution)
        return {"true_residual": float(residual), "error": float(error)}


def exact(A: CsrMatrix) -> Any:
    """Return A in double precision as SciPy's, which wants indices of one type."""
    kind = np.int32 if A.nnz < 2**31 else np.int64
    parts = (A.data.astype(np.float64, copy=False), A.indices, A.indptr.astype(kind))
    return sp.csr_array(parts, shape=A.shape)


def _key(case: Case) -> str:
    """Return what tells a version of a matrix from others."""
    if case.source.startswith("gen:"):
        origin = f"{case.source} {sources_hash('cpufree.generate')}"
    else:
        stat = Path(case.source).stat()
        origin = f"{case.source} {stat.st_size} {stat.st_mtime_ns}"
    return hashlib.sha256(f"{LAYOUT} {SEED} {origin}".encode()).hexdigest()[:16]


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)[:40]
