"""The programs of bench/ablations compile where nvcc is; tests/cpp runs their kernels."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

import pytest
from paths import ROOT

FOLDER = ROOT / "bench/ablations"
NVCC = Path("/usr/local/cuda/bin/nvcc")


@pytest.mark.skipif(not NVCC.exists(), reason="needs nvcc")
@pytest.mark.parametrize("name", ["cg", "jacobi", "launches", "stores"])
def test_programs_compile(name: str, tmp_path: Path) -> None:
    words = [str(NVCC), "-std=c++20", "-arch=sm_90", "-cubin", "-o", str(tmp_path / "out.cubin")]
    done = subprocess.run(
        [*words, str(FOLDER / f"{name}.cu")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


def test_declarations_ask_for_variants_that_there_are() -> None:
    cg, sums = (runpy.run_path(str(FOLDER / f"{name}.py")) for name in ("cg", "nvshmem_sums"))
    known = re.findall(r'^ +{"([^"]+)", \w+_kernel<', (FOLDER / "cg.cu").read_text("utf-8"), re.M)
    assert {*cg["VARIANTS"], *cg["PIPELINED"], *cg["PARTS"]} - {"cg managed"} == set(known)
    names = re.search(r"kNames\[\] = {([^}]*)}", (FOLDER / "nvshmem_sums.cu").read_text("utf-8"))
    assert names
    assert set(sums["WHAT"]) == set(re.findall(r'"(\w+)"', names[1]))
