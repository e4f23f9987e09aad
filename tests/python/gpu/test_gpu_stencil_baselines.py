"""The host-driven baselines of stencils on real GPUs. Skipped where there are none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpus_here import COUNTS, HERE, NUMBERS, needs_gpu, several

from cpufree import stencil
from cpufree.bench.contenders import nvshmem
from cpufree.bench.stencil.nvshmem_solver import NvshmemSolver
from cpufree.bench.stencil.problem import checksum, make_folder, read_folder
from cpufree.cli import app as cli
from cpufree.errors import EngineError, InvalidInputError, UnsupportedError

baselines = pytest.importorskip("cpufree._baselines", reason="no baselines in this build")
pytestmark = needs_gpu

AVAILABLE = [kind["name"] for kind in baselines.stencil_kinds() if kind["available"]]
KINDS = [name for name in AVAILABLE if name != "nvshmem" and HERE]  # whose PEs are processes
EXCHANGES = ("meet", "signal", "meet_beside", "signal_beside", "put_beside")
PRECISIONS = {"single": np.float32, "double": np.float64}
SHAPES = [(37, 70), (300, 1111), (64, 2048), (21, 34, 45), (40, 64, 260)]


def values(shape: tuple[int, ...], precision: str = "single", seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, dtype=PRECISIONS[precision])


def make(
    kind: str,
    shape: tuple[int, ...],
    pes: int,
    precision: str = "single",
    periodic: bool = False,
    **options: Any,
) -> Any:
    """Return a baseline on the first `pes` GPUs."""
    wraps = [periodic] * len(shape)
    return baselines.StencilBaseline(
        kind, list(shape), wraps, precision, pes, NUMBERS[:pes], options
    )


@pytest.mark.parametrize("periodic", [False, True], ids=["dirichlet", "periodic"])
@pytest.mark.parametrize("precision", list(PRECISIONS))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("pes", COUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_baseline_gives_the_bits_of_the_reference(
    kind: str, pes: int, shape: tuple[int, ...], precision: str, periodic: bool
) -> None:
    start = values(shape, precision)
    boundary = "periodic" if periodic else "dirichlet"
    baseline = make(kind, shape, pes, precision, periodic)
    for iterations in (1, 37, 64):  # some graphs are not filled
        out = np.full_like(start, np.nan)
        assert baseline.run(iterations, "full", start, out) > 0.0
        expected = stencil.reference(start, iterations, boundary=boundary)
        assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_baseline_repeats_itself_for_many_iterations(kind: str) -> None:
    shape, pes = (512, 512), COUNTS[-1]
    start = values(shape)
    baseline = make(kind, shape, pes)
    expected = stencil.jacobi(start, 3001, engine="cpu_threads").u
    for _ in range(3):
        out = np.empty_like(start)
        baseline.run(3001, "full", start, out)
        assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_persistent_kernel_gives_the_same_bits(kind: str) -> None:
    shape, pes = (96, 130, 260), COUNTS[-1]
    start = values(shape, "double")
    out = np.empty_like(start)
    make(kind, shape, pes, "double", True).run(50, "full", start, out)
    ours = stencil.jacobi(start, 50, boundary="periodic", engine="cuda_p2p", gpus=NUMBERS[:pes])
    assert out.tobytes() == ours.u.tobytes()


@pytest.mark.parametrize("depth", [1, 3, 32, 1000])
def test_chunks_of_any_depth_give_the_same_bits(depth: int) -> None:
    start = values((130, 70, 90))
    out = np.empty_like(start)
    make("p2p", start.shape, COUNTS[-1], depth=depth).run(20, "full", start, out)
    assert out.tobytes() == stencil.reference(start, 20).tobytes()


@several
@pytest.mark.parametrize("variant", ["no-compute", "no-comm"])
@pytest.mark.parametrize("kind", KINDS)
def test_variants_run_and_leave_full_runs_right(kind: str, variant: str) -> None:
    start = values((100, 200))
    baseline = make(kind, start.shape, 2)
    for count in (1, 31, 32, 200):
        assert baseline.run(count, variant) > 0.0
        out = np.empty_like(start)
        baseline.run(count, "full", start, out)
        assert out.tobytes() == stencil.reference(start, count).tobytes()


@several
@pytest.mark.parametrize("kind", [k for k in KINDS if not k.endswith("_graph")])
def test_one_thread_drives_all_gpus(kind: str) -> None:
    start = values((100, 200))
    out = np.empty_like(start)
    make(kind, start.shape, 2, threads=False).run(100, "full", start, out)
    assert out.tobytes() == stencil.reference(start, 100).tobytes()


def test_more_pes_than_planes_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="use fewer PEs"):
        make("p2p", (2 + len(HERE), 8), len(HERE) + 1)


def test_library_that_is_not_there_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"NCCL was not found.*nowhere"):
        make("nccl", (8, 8), 1, nccl_library="/nowhere/libnccl.so.2")


@pytest.fixture
def solver() -> Iterator[NvshmemSolver]:
    """Return the contender of NVSHMEM; end its processes."""
    if why := nvshmem.problem():
        pytest.skip(why)
    solver = NvshmemSolver()
    yield solver
    solver.close()


def load(solver: NvshmemSolver, folder: Path, pes: int, boundary: str, **tuning: Any) -> Any:
    """Set the contender up on the first `pes` GPUs; return its facts."""
    options = {"pes": pes, "gpus": NUMBERS, "boundary": boundary, "tuning": tuning}
    return solver.load(folder, options)


# A load takes seconds: the trial on every number of GPUs, what it chooses from on the most.
PES_AND_EXCHANGES = [(pes, "auto") for pes in COUNTS]
PES_AND_EXCHANGES += [(COUNTS[-1], exchange) for exchange in EXCHANGES]


@pytest.mark.parametrize(
    "case",
    [("dirichlet", (300, 1111), "single"), ("periodic", (21, 34, 45), "double")],
    ids=lambda c: c[0],
)
@pytest.mark.parametrize(("pes", "exchange"), PES_AND_EXCHANGES)
def test_nvshmem_gives_the_bits_of_the_reference(
    solver: NvshmemSolver, pes: int, exchange: str, case: tuple[Any, ...], tmp_path: Path
) -> None:
    boundary, shape, precision = case
    folder = make_folder(tmp_path, shape, precision)
    start = read_folder(folder)
    facts = load(solver, folder, pes, boundary, exchange=exchange)
    if pes > 1:
        assert facts["exchange"] in (EXCHANGES if exchange == "auto" else (exchange,))
    for iterations in (1, 37, 300):
        for variant in ("no-comm", "no-compute") if pes > 1 else ():
            solver.solve({"iterations": iterations, "variant": variant})
        answer = solver.solve({"iterations": iterations, "check": True})
        expected = stencil.reference(start, iterations, boundary=boundary)
        assert answer["checksum"] == checksum(expected)
        assert answer["seconds"] > 0.0


@several
@pytest.mark.parametrize("exchange", ["meet", "signal_beside"])
def test_nvshmem_process_that_is_killed_ends_the_others(
    solver: NvshmemSolver, exchange: str, tmp_path: Path
) -> None:
    load(solver, make_folder(tmp_path, (64, 64), "single"), 2, "periodic", exchange=exchange)
    solver._ranks._processes[1].kill()  # type: ignore[union-attr]
    with pytest.raises(EngineError, match="PE 1: ended without an answer"):
        solver.solve({"iterations": 1000})


def test_benchmark_measures_all_of_them(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    words = ["--per-gpu", "128x128", "--grid", "32^3", "--iterations", "100", "--repeats", "5"]
    words += ["--variant", "full,no-compute,no-comm", "--quiet"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "stencil", *words, "--out", str(out), "--cache", str(tmp_path)])
    assert not ended.value.code
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    references = {(x["case"], x["pes"]): x["checksum"] for x in lines if x["kind"] == "reference"}
    checks = [x for x in lines if x["kind"] == "check"]
    with_processes = () if nvshmem.problem() else ("nvshmem",)
    assert {x["contender"] for x in checks} == {"cpufree", *KINDS, *with_processes}
    assert all(x["checksum"] == references[x["case"], x["pes"]] for x in checks)
    assert all(x["unsupported"] for x in lines if x["kind"] == "failure")
