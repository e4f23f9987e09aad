"""Multigrid of other libraries: AmgX on a stand-in, and what is said where there is none."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from paths import ROOT, SUPPORT

from cpufree.errors import UnsupportedError
from cpufree.generate import generate

pytestmark = pytest.mark.cpu_only
PEERS = ROOT / "bench" / "peers"
A = generate("poisson2d", nx=20, ny=15)
B = np.random.default_rng(1).standard_normal(300)


def of_peers(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PEERS))
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library with AmgX's calls, which solves on the host."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("amgx") / "libamgxsh.so"
    source = SUPPORT / "fake_amgx.c"
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    return str(library)


def residual(x: np.ndarray) -> float:
    return float(np.linalg.norm(B - A @ x) / np.linalg.norm(B))


def test_amgx_solves_and_frees_what_it_has_made(fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    amgx_library = of_peers("amgx_library", monkeypatch)
    amgx = amgx_library.Amgx(fake)
    for configuration in amgx_library.CONFIGURATIONS.values():
        found = amgx.solve(A, B, configuration, rtol=1e-9)
        assert found["reason"] == "converged"
        assert residual(found["x"]) <= 1e-9
        assert found["iterations"] > 10
        assert found["seconds"] >= found["setup_seconds"] >= found["upload_seconds"] > 0.0
    loose = amgx.solve(A, B, amgx_library.CONFIGURATIONS["classical"], rtol=1e-2)
    assert loose["iterations"] < found["iterations"]
    assert ctypes.c_int.in_dll(ctypes.CDLL(fake), "fake_alive").value == 0


def test_a_call_of_amgx_that_fails_is_named(fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    amgx_library = of_peers("amgx_library", monkeypatch)
    amgx = amgx_library.Amgx(fake)
    with pytest.raises(amgx_library.AmgxError, match=r"AMGX_config_create.*configuration.*12"):
        amgx.solve(A, B, "nonsense", rtol=1e-8)
    assert ctypes.c_int.in_dll(ctypes.CDLL(fake), "fake_alive").value == 0


@pytest.mark.parametrize("named", ["/nowhere/libamgxsh.so", None])
def test_without_amgx_it_says_what_is_needed(
    named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    amgx_library = of_peers("amgx_library", monkeypatch)
    monkeypatch.delenv(amgx_library.VARIABLE, raising=False)
    monkeypatch.setattr(amgx_library.ctypes.util, "find_library", lambda name: None)
    with pytest.raises(UnsupportedError, match=amgx_library.VARIABLE):
        amgx_library.Amgx(named)


@pytest.mark.skipif(bool(importlib.util.find_spec("petsc4py")), reason="PETSc is installed")
@pytest.mark.parametrize("name", ["gamg", "hypre"])
def test_without_petsc_it_says_what_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match=r"build_petsc\.sh"):
        of_peers("petsc_multigrid", monkeypatch).solve(A, B, name, rtol=1e-8)


@pytest.mark.skipif(not importlib.util.find_spec("petsc4py"), reason="PETSc is not installed")
def test_petsc_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_peers("petsc_multigrid", monkeypatch).solve(A, B, "gamg", rtol=1e-9)
    assert found["reason"] == "converged"
    assert residual(found["x"]) <= 1e-8
