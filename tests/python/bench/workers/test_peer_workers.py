"""Workers of other solvers as the harness meets them: lines in, lines out."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import peer_problem
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from paths import ROOT

from cpufree.errors import InvalidInputError, UnsupportedError

pytestmark = pytest.mark.cpu_only
PEERS = ROOT / "bench" / "peers"
QUIT = {"do": "quit"}
SOLVE = {"do": "solve", "method": "cg", "variant": "full", "iterations": None}
TO_TOLERANCE = {**SOLVE, "rtol": 1e-10, "max_iterations": 500}


def ask(command: list[str], *requests: Any) -> list[dict[str, Any]]:
    """Return a worker's answers to requests; text goes to it as it is."""
    lines = [line if isinstance(line, str) else json.dumps(line) for line in requests]
    # Open MPI refuses to run as root, which is what one is in a container.
    root = {f"{who}_ALLOW_RUN_AS_ROOT{how}": "1" for who in ("OMPI",) for how in ("", "_CONFIRM")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **root, "JAX_PLATFORMS": "cpu"},
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def load(folder: Path, pes: int = 1, preconditioner: str = "none") -> dict[str, Any]:
    options = {"pes": pes, "gpus": None, "preconditioner": preconditioner, "tuning": {}}
    return {"do": "load", "folder": str(folder), "options": options}


def command_of(name: str, pes: int) -> list[str]:
    """The command of peers.json."""
    listed = json.loads((PEERS / "peers.json").read_text())[name]["command"]
    return [word.format(pes=pes, python=sys.executable) for word in listed]


def error_of(file: Path | str, folder: Path) -> float:
    """Return how far the saved x is from that of a direct solver, relative to it."""
    A, b = peer_problem.system(folder)
    wanted = np.asarray(sla.spsolve(sp.csc_array(A), b))
    return float(np.linalg.norm(np.load(file) - wanted) / np.linalg.norm(wanted))


def norm_of_b(folder: Path) -> float:
    return float(np.linalg.norm(peer_problem.system(folder)[1]))


def scipy_iterations(folder: Path, jacobi: bool, rtol: float) -> int:
    """Iterations of SciPy's cg, which has the same stopping rule."""
    A, b = peer_problem.system(folder)
    M = sp.diags_array(1 / A.diagonal()) if jacobi else None
    steps: list[int] = []
    sla.cg(A, b, rtol=rtol, M=M, callback=lambda x: steps.append(0))
    return len(steps)


# A package that is missing


@pytest.mark.parametrize(
    ("script", "module", "hint"),
    [
        ("cupy_worker.py", "cupy", "pip install cupy"),
        ("jax_worker.py", "jax", "pip install 'jax"),
        ("petsc_worker.py", "mpi4py", "build_petsc.sh"),
    ],
)
def test_worker_without_its_package_says_what_to_install(
    tmp_path: Path, script: str, module: str, hint: str
) -> None:
    hide = f"import runpy, sys; sys.path[0] = {str(PEERS)!r}; sys.argv = ['w']; "
    hide += f"sys.modules[{module!r}] = None; "
    hide += f"runpy.run_path({str(PEERS / script)!r}, run_name='__main__')"
    folder = peer_problem.write(tmp_path / "problem")
    answers = ask([sys.executable, "-c", hide], load(folder), QUIT)
    assert [answer["ok"] for answer in answers] == [False, True]
    assert answers[0]["unsupported"]
    assert hint in answers[0]["error"]


# JAX

needs_jax = pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX is not installed")


@needs_jax
def test_jax_answers(tmp_path: Path) -> None:
    folder, file = peer_problem.write(tmp_path / "problem"), tmp_path / "x.npy"
    answers = ask(
        command_of("jax", 1),
        SOLVE | {"iterations": 3},
        load(folder, preconditioner="jacobi"),
        SOLVE | {"iterations": 7},
        TO_TOLERANCE | {"save": str(file)},
        TO_TOLERANCE | {"max_iterations": 5},
        TO_TOLERANCE | {"method": "pipecg"},
        "not JSON",
        load(folder, pes=2),
        QUIT,
    )
    early, facts, exact, solved, short, lacking, garbage, two, end = answers
    assert (early["ok"], early["unsupported"]) == (False, False)
    assert facts["facts"]["spmv"] in facts["facts"]["spmv_seconds"]
    assert facts["facts"]["compile_seconds"] > 0
    assert (exact["iterations"], exact["reason"]) == (7, "CONVERGED_ITS")
    assert solved["iterations"] == scipy_iterations(folder, True, TO_TOLERANCE["rtol"])
    assert solved["reason"] == "CONVERGED_RTOL"
    assert solved["residual"] <= 2 * TO_TOLERANCE["rtol"] * norm_of_b(folder)
    assert error_of(file, folder) < 1e-6
    assert (short["iterations"], short["reason"]) == (5, "DIVERGED_ITS")
    assert lacking["unsupported"]
    assert not garbage["ok"]
    assert two["unsupported"]
    assert end == {"ok": True}


@needs_jax
def test_every_jax_product_is_the_matrix_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PEERS))
    jax, products = importlib.import_module("jax"), importlib.import_module("jax_products")
    folder = peer_problem.write(tmp_path / "problem", dtype=np.float32)
    A, b = peer_problem.system(folder)
    problem = importlib.import_module("problem_folder").read_problem(folder)
    found = products.candidates(problem)
    assert set(found) == {"BCOO", "BCSR", "segment_sum", "padded rows"}
    for name, (product, matrix) in found.items():
        y = np.asarray(jax.jit(product)(matrix, b))
        np.testing.assert_allclose(y, A @ b, rtol=1e-5, atol=1e-4, err_msg=name)


@needs_jax
def test_jax_product_that_fails_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PEERS))
    products = importlib.import_module("jax_products")

    def fails(matrix: Any, x: Any) -> Any:
        raise NotImplementedError("not here")

    found = {"bad": (fails, None), "good": (lambda matrix, x: matrix * x, 2.0)}
    chosen, seconds, failed = products.fastest(found, np.ones(3))
    assert (chosen, set(seconds), failed) == ("good", {"good"}, {"bad": "not here"})
    with pytest.raises(UnsupportedError, match="not here"):
        products.fastest({"bad": found["bad"]}, np.ones(3))


# CuPy, on a stand-in for its modules: NumPy and SciPy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A worker of CuPy without GPU."""

    class Device:
        def __init__(self, number: int) -> None:
            self.number = number

        def __enter__(self) -> Device:
            return self

        def __exit__(self, *_: Any) -> None: ...

        def synchronize(self) -> None: ...

    runtime = SimpleNamespace(getDeviceCount=lambda: 1, runtimeGetVersion=lambda: 13000)
    names = {name: getattr(np, name) for name in ("asarray", "isfinite")}
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    fake = SimpleNamespace(
        **names,
        asnumpy=np.asarray,
        linalg=np.linalg,
        cuda=SimpleNamespace(Device=Device, runtime=runtime),
        get_default_memory_pool=lambda: pool,
        __version__="14.2.0",
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setitem(
        sys.modules, "cupyx.scipy.sparse", SimpleNamespace(csr_matrix=sp.csr_matrix)
    )
    linalg = SimpleNamespace(cg=sla.cg, LinearOperator=_linear_operator)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse.linalg", linalg)
    monkeypatch.syspath_prepend(str(PEERS))
    worker = importlib.import_module("cupy_worker").Cupy()
    yield worker
    worker.close()


def _linear_operator(shape: Any, matvec: Any, dtype: Any) -> Any:
    return sla.LinearOperator(shape, matvec=matvec, dtype=dtype)


@pytest.mark.parametrize("preconditioner", ["none", "jacobi"])
def test_cupy_solves_to_the_tolerance(cupy: Any, tmp_path: Path, preconditioner: str) -> None:
    folder, file = peer_problem.write(tmp_path / "problem"), tmp_path / "x.npy"
    facts = cupy.load(folder, load(folder, preconditioner=preconditioner)["options"])
    answer = cupy.solve(TO_TOLERANCE | {"save": str(file)})
    assert facts["preconditioner"] == preconditioner
    jacobi = preconditioner == "jacobi"
    assert answer["iterations"] == scipy_iterations(folder, jacobi, TO_TOLERANCE["rtol"])
    assert answer["reason"] == "CONVERGED_RTOL"
    assert answer["residual"] <= 2 * TO_TOLERANCE["rtol"] * norm_of_b(folder)
    assert error_of(file, folder) < 1e-6


def test_cupy_does_the_iterations_asked_for(cupy: Any, tmp_path: Path) -> None:
    folder = peer_problem.write(tmp_path / "problem")
    cupy.load(folder, load(folder)["options"])
    answer = cupy.solve(SOLVE | {"iterations": 7})
    assert (answer["iterations"], answer["reason"]) == (7, "CONVERGED_ITS")


def test_cupy_uses_one_gpu_only(cupy: Any, tmp_path: Path) -> None:
    folder = peer_problem.write(tmp_path / "problem", pes=2)
    with pytest.raises(UnsupportedError, match="one GPU"):
        cupy.load(folder, load(folder, pes=2)["options"])
    with pytest.raises(InvalidInputError, match="nothing is loaded"):
        cupy.solve(TO_TOLERANCE)


# PETSc

needs_petsc = pytest.mark.skipif(
    not (importlib.util.find_spec("petsc4py") and shutil.which("mpirun")),
    reason="petsc4py or mpirun is missing: bench/peers/build_petsc.sh DIR, then . DIR/env.sh",
)


@needs_petsc
@pytest.mark.parametrize(("pes", "preconditioner"), [(1, "none"), (2, "jacobi")])
def test_petsc_answers(tmp_path: Path, pes: int, preconditioner: str) -> None:
    if pes > len(os.sched_getaffinity(0)):
        pytest.skip(f"{pes} ranks need as many cores")
    folder = peer_problem.write(tmp_path / "problem", pes=pes)
    files = {method: str(tmp_path / f"{method}.npy") for method in ("cg", "prcg", "pipecg")}
    answers = ask(
        command_of("petsc_cpu", pes),
        TO_TOLERANCE,
        load(folder, pes=pes + 1),
        load(folder, pes=pes, preconditioner=preconditioner),
        *(TO_TOLERANCE | {"method": name, "save": file} for name, file in files.items()),
        *(SOLVE | {"method": name, "iterations": 7} for name in files),
        TO_TOLERANCE | {"max_iterations": 5},
        TO_TOLERANCE | {"variant": "no-comm"},
        load(tmp_path / "nowhere", pes=pes),
        QUIT,
    )
    early, ranks, facts, *rest = answers
    assert "nothing is loaded" in early["error"]
    assert f"{pes} ranks" in ranks["error"]
    assert facts["facts"]["mat_type"] == ("mpiaij" if pes > 1 else "seqaij")
    assert facts["facts"]["staging"] == "none"
    solved, exact, (short, lacking, nowhere, end) = rest[:3], rest[3:6], rest[6:]
    wanted = scipy_iterations(folder, preconditioner == "jacobi", TO_TOLERANCE["rtol"])
    for answer, file in zip(solved, files.values(), strict=True):
        assert answer["reason"] == "CONVERGED_RTOL"
        assert answer["residual"] <= TO_TOLERANCE["rtol"] * norm_of_b(folder)
        assert abs(answer["iterations"] - wanted) <= 2
        assert error_of(file, folder) < 1e-6
    assert [(one["iterations"], one["reason"]) for one in exact] == [(7, "CONVERGED_ITS")] * 3
    assert (short["iterations"], short["reason"]) == (5, "DIVERGED_ITS")
    assert lacking["unsupported"]
    assert "problem.json" in nowhere["error"]
    assert end == {"ok": True}
