"""What systems are said to take of GPUs, on a machine without any."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_runner import Run, runner

import cpufree
from cpufree.errors import InvalidInputError
from cpufree.generate import generate

A = generate("poisson3d", nx=24, ny=24, nz=24)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


@pytest.mark.parametrize("pes", [1, 2, 3])
@pytest.mark.parametrize("pc", ["jacobi", "fsai", "amg"])
def test_each_gpu_has_its_parts(pes: int, pc: str) -> None:
    found = cpufree.Solver.estimate(A, pes=pes, pc=pc)
    assert len(found.gpus) == pes
    for gpu in found.gpus:
        rows, entries = A.shape[0] / pes, A.nnz / pes
        assert 1.5 * entries < gpu.matrix < 16 * entries + 132 * 2000
        assert 5 * 8 * rows < gpu.vectors < 14 * 8 * (rows + 1000) + 2e6
        assert (gpu.factors > 0) == (pc == "fsai")
        assert (gpu.levels > 6 * entries) == (pc == "amg")
        assert gpu.total == pytest.approx(gpu.needed + gpu.kept)
        assert gpu.peak >= gpu.total
    assert found.needed == max(gpu.needed for gpu in found.gpus)


def test_float32_takes_less_and_more_gpus_less_each() -> None:
    whole = cpufree.Solver.estimate(A)
    assert cpufree.Solver.estimate(A, dtype=np.float32).needed < 0.75 * whole.needed
    assert cpufree.Solver.estimate(A, pes=4).needed < whole.needed
    assert "GPU" in str(whole)


def test_auto_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInputError, match="estimate pc='jacobi' and pc='amg'"):
        cpufree.Solver.estimate(A, pc="auto")


def test_info_tells_the_memory_of_each_gpu(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "info.json"
    spec = "gen:poisson2d?nx=60,ny=60"
    told = run("info", spec, "--pes", 2, "--pc", "amg", "--json", file)
    assert told.code == 0
    assert "Memory of 2 GPUs, pc amg" in told.out
    memory = json.loads(file.read_text())["memory"]
    assert set(memory) == {"jacobi", "amg"}
    assert memory["amg"][1]["levels"] > 0 == memory["jacobi"][1]["levels"]
