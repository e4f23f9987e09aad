"""The host-driven baselines on real GPUs. Skipped where there are none, or no extension."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from gpus_here import HERE, NUMBERS, needs_gpu, several, true_residual
from reference_cg import rhs

import cpufree
from cpufree.bench.contenders import nvshmem
from cpufree.bench.contenders.nvshmem_contender import NvshmemContender
from cpufree.errors import InvalidInputError, UnsupportedError

baselines = pytest.importorskip("cpufree._baselines", reason="no baselines in this build")
pytestmark = needs_gpu

METHODS = ["cg", "prcg", "pipecg"]
AVAILABLE = [kind["name"] for kind in baselines.kinds() if kind["available"]] if HERE else []
KINDS = [name for name in AVAILABLE if name != "nvshmem_on_stream"]  # whose PEs are processes
SEVERAL = [name for name in KINDS if not name.startswith("single_gpu")]
COUNTS = [count for count in (1, 2, 3, 4, 8) if count <= len(HERE)] or [1]


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson3d(20, 19, 18)


def parts_of(n: int, pes: int) -> dict[str, np.ndarray]:
    """Return partitions: slabs, and one in which everybody needs something of everybody."""
    return {
        "slabs": (np.arange(n, dtype=np.int64) * pes // n).astype(np.int32),
        "scattered": np.random.default_rng(3).integers(0, pes, n, dtype=np.int32),
    }


def make(A: sp.csr_array, kind: str, pes: int = 1, part: Any = None, **options: Any) -> Any:
    """Return a baseline on the first `pes` GPUs."""
    A = sp.csr_array(A)
    A.sort_indices()
    if part is None and pes > 1:
        part = parts_of(A.shape[0], pes)["slabs"]
    arrays = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data
    pc = options.pop("preconditioner", "jacobi")
    return baselines.Baseline(kind, *arrays, part, None, pes, NUMBERS[:pes], pc, options)


def solve(baseline: Any, b: np.ndarray, method: str, rtol: float = 1e-9, **how: Any) -> Any:
    x = np.full_like(b, np.nan)
    how = {"max_iterations": 5000, "x_out": x, **how}
    return baseline.solve(b, method, rtol, **how), x


@pytest.mark.parametrize("method", METHODS)
def test_baseline_on_one_gpu_solves(poisson: sp.csr_array, method: str) -> None:
    b = rhs(poisson)
    result, x = solve(make(poisson, "single_gpu"), b, method)
    assert result["reason"] == "CONVERGED_RTOL"
    assert result["seconds"] > 0.0
    assert true_residual(poisson, x, b) <= 1.01e-9


def test_textbook_takes_the_iterations_of_the_solver(poisson: sp.csr_array) -> None:
    b = rhs(poisson)
    result, x = solve(make(poisson, "single_gpu_textbook"), b, "cg")
    expected = cpufree.solve(poisson, b, rtol=1e-9, method="cg", engine="cpu_threads")
    assert abs(result["iterations"] - expected.iterations) <= 2
    assert true_residual(poisson, x, b) <= 1.01e-9


@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", SEVERAL)
@pytest.mark.parametrize("name", ["slabs", "scattered"])
def test_baseline_on_several_gpus_solves(
    poisson: sp.csr_array, kind: str, method: str, pes: int, name: str
) -> None:
    b = rhs(poisson)
    part = parts_of(poisson.shape[0], pes)[name]
    result, x = solve(make(poisson, kind, pes, part), b, method)
    assert result["reason"] == "CONVERGED_RTOL"
    assert true_residual(poisson, x, b) <= 1.01e-9
    expected = cpufree.solve(poisson, b, rtol=1e-9, method="cg", engine="cpu_threads")
    assert abs(result["iterations"] - expected.iterations) <= 3


@pytest.mark.parametrize("kind", KINDS)
def test_baseline_repeats_itself_bitwise(poisson: sp.csr_array, kind: str) -> None:
    pes = COUNTS[-1] if kind in SEVERAL else 1
    baseline = make(poisson, kind, pes, spmv="warp_slices")
    b = rhs(poisson)
    _, first = solve(baseline, b, "cg")
    for _ in range(5):
        _, again = solve(baseline, b, "cg")
        assert again.tobytes() == first.tobytes()


@pytest.mark.parametrize(
    "spmv", ["auto", "warp_slices", "vendor_default", "vendor_alg1", "vendor_alg2"]
)
def test_every_product_solves(poisson: sp.csr_array, spmv: str) -> None:
    b = rhs(poisson)
    baseline = make(poisson, SEVERAL[0], COUNTS[-1], spmv=spmv)
    assert spmv in ("auto", baseline.facts()["spmv"])
    for method in METHODS:
        assert true_residual(poisson, solve(baseline, b, method)[1], b) <= 1.01e-9


@pytest.mark.parametrize("kind", SEVERAL)
def test_single_precision_solves(poisson: sp.csr_array, kind: str) -> None:
    A, b = poisson.astype(np.float32), rhs(poisson).astype(np.float32)
    result, x = solve(make(A, kind, COUNTS[-1]), b, "prcg", 1e-4)
    assert result["reason"] == "CONVERGED_RTOL"
    assert true_residual(A, x, b) <= 1.05e-4


@pytest.mark.parametrize("kind", SEVERAL)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("variant", ["full", "no-compute", "no-comm"])
def test_variants_take_exactly_their_iterations(
    poisson: sp.csr_array, kind: str, method: str, variant: str
) -> None:
    baseline = make(poisson, kind, COUNTS[-1])
    b = rhs(poisson)
    for count in (0, 1, 30, 31):
        result = baseline.solve(b, method, 0.0, count, True, variant, None)
        assert result["iterations"] == count
        assert result["reason"] == "CONVERGED_ITS"


@several
def test_one_thread_drives_all_gpus_through_nccl(poisson: sp.csr_array) -> None:
    if "nccl" not in KINDS:
        pytest.skip("no NCCL")
    b = rhs(poisson)
    _, one = solve(make(poisson, "nccl", 2, threads=False), b, "cg")
    _, each = solve(make(poisson, "nccl", 2, threads=True), b, "cg")
    assert np.linalg.norm(one - each) <= 1e-12 * np.linalg.norm(each)


def test_gpu_that_is_not_there_is_refused(poisson: sp.csr_array) -> None:
    A = sp.csr_array(poisson)
    arrays = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data
    with pytest.raises(InvalidInputError, match="was asked for, but there"):
        baselines.Baseline("single_gpu", *arrays, None, None, 1, [1000])


def test_library_that_is_not_there_is_named(poisson: sp.csr_array) -> None:
    with pytest.raises(UnsupportedError, match=r"NCCL was not found.*nowhere"):
        make(poisson, "nccl", nccl_library="/nowhere/libnccl.so.2")


def write_problem(folder: Path, A: sp.csr_array, b: np.ndarray, part: np.ndarray) -> None:
    """Write the folder that workers are given."""
    arrays = {"indptr": A.indptr.astype(np.int64), "indices": A.indices.astype(np.int32)}
    arrays |= {"data": A.data, "b": b, "part": part}
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)


def options_for(pes: int) -> dict[str, Any]:
    return {"pes": pes, "gpus": NUMBERS[:pes], "preconditioner": "jacobi", "tuning": {}}


@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.parametrize("kind", ["mpi", "nccl_mpi"])
def test_mpi_worker_solves(poisson: sp.csr_array, kind: str, pes: int, tmp_path: Path) -> None:
    pytest.importorskip("cpufree._baselines_mpi", reason="no baselines over MPI in this build")
    pytest.importorskip("cpufree.bench.worker", reason="no harness in this build")
    if shutil.which("mpirun") is None:
        pytest.skip("no mpirun")
    if kind == "nccl_mpi" and "nccl" not in KINDS:
        pytest.skip("no NCCL")
    A, b = sp.csr_array(poisson), rhs(poisson)
    write_problem(tmp_path, A, b, parts_of(A.shape[0], pes)["slabs"])
    solve_it = {"do": "solve", "method": "cg", "variant": "full", "iterations": None}
    solve_it |= {"rtol": 1e-9, "max_iterations": 5000, "save": str(tmp_path / "x.npy")}
    requests = [{"do": "load", "folder": str(tmp_path), "options": options_for(pes)}, solve_it]
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(pes)]
    done = subprocess.run(
        [*command, sys.executable, "-m", "cpufree.bench.contenders.mpi_worker", kind],
        input="".join(json.dumps(r) + "\n" for r in [*requests, {"do": "quit"}]),
        capture_output=True,
        text=True,
        timeout=500,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["ok"] for answer in answers] == [True, True, True], done.stderr
    assert true_residual(A, np.load(tmp_path / "x.npy"), b) <= 1.01e-9


@pytest.fixture(scope="module")
def needs_nvshmem() -> None:
    if why := nvshmem.problem():
        pytest.skip(why)


@pytest.mark.usefixtures("needs_nvshmem")
@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.parametrize("name", ["slabs", "scattered", "uneven"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_nvshmem_worker_solves_and_repeats_itself(
    poisson: sp.csr_array, pes: int, name: str, kind: Any, tmp_path: Path
) -> None:
    A, b = sp.csr_array(poisson).astype(kind), rhs(poisson).astype(kind)
    n = A.shape[0]
    uneven = np.minimum(np.arange(n) // 7, pes - 1).astype(np.int32)  # the last one has most
    part = uneven if name == "uneven" else parts_of(n, pes)[name]
    write_problem(tmp_path, A, b, part)
    rtol, slack = (1e-4, 1.2) if kind is np.float32 else (1e-9, 1.01)
    save = tmp_path / "x.npy"
    contender = NvshmemContender()
    try:
        facts = contender.load(tmp_path, options_for(pes))
        assert facts["versions"]["nvshmem"]
        for method in METHODS:
            found = []
            for _ in range(3):
                how = {"method": method, "rtol": rtol, "max_iterations": 5000, "save": str(save)}
                assert contender.solve(how)["reason"] == "CONVERGED_RTOL"
                found.append(np.load(save))
            assert true_residual(A, found[0], b) <= slack * rtol
            assert all(again.tobytes() == found[0].tobytes() for again in found)
    finally:
        contender.close()


@several
@pytest.mark.usefixtures("needs_nvshmem")
@pytest.mark.parametrize("method", METHODS)
def test_nvshmem_variants_take_exactly_their_iterations(
    poisson: sp.csr_array, method: str, tmp_path: Path
) -> None:
    pes = COUNTS[-1]
    A, b = sp.csr_array(poisson), rhs(poisson)
    write_problem(tmp_path, A, b, parts_of(A.shape[0], pes)["scattered"])
    contender = NvshmemContender()
    try:
        contender.load(tmp_path, options_for(pes))
        for variant in ("full", "no-compute", "no-comm"):
            for count in (1, 30, 31):
                how = {"method": method, "variant": variant, "iterations": count}
                answer = contender.solve({**how, "max_iterations": 100})
                assert (answer["iterations"], answer["reason"]) == (count, "CONVERGED_ITS")
    finally:
        contender.close()


@several
@pytest.mark.usefixtures("needs_nvshmem")
def test_nvshmem_rank_that_cannot_be_set_up_ends_all(poisson: sp.csr_array, tmp_path: Path) -> None:
    A, b = sp.csr_array(poisson), rhs(poisson)
    write_problem(tmp_path, A, b, parts_of(A.shape[0], 2)["slabs"])
    contender = NvshmemContender()
    with pytest.raises(cpufree.errors.CpufreeError, match="GPU 1000 was asked for"):
        contender.load(tmp_path, {**options_for(2), "gpus": [NUMBERS[0], 1000]})
