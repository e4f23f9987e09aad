"""Distributed programs of DaCe give the bits of plain NumPy, on any number of ranks."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("dace", reason="DaCe is not installed: pip install 'cpufree[dace]'")

import dace_cases
import nvrtc
import ranks_on_cpu
from dace_grids import CASES, GRIDS, whole_of
from dace_programs import PROGRAMS

import cpufree.dace
from cpufree.compiler import ir
from cpufree.compiler.ranks.grants import check_grants
from cpufree.compiler.ranks.on_cpu import cpu_runner_of_ranks, rows_passes
from cpufree.compiler.ranks.on_gpu import grid_programs, kernel_of_ranks
from cpufree.dace.program import DaceProgram
from cpufree.errors import EngineError, InvalidInputError, WaitTimeoutError
from cpufree.extension import load_core

# A C++ compiler takes seconds for each kernel; ranks that differ in numbers only share one.
QUICK = {"jacobi_2d_signals": (2, 4), "heat_3d": (1, 2, 4, 8)}
ALL = [
    pytest.param(n, p, marks=() if p in QUICK.get(n, case[3]) else pytest.mark.slow)
    for n, case in CASES.items()
    for p in case[3]
]
COMPILED = {name: dace_cases.compiled(name) for name in PROGRAMS}


def called(name: str, ranks: int, steps: int = 6) -> list[dict[str, Any]]:
    """Run a case; return the arguments of all ranks."""
    of, _, points, _ = CASES[name]
    given = [of(points, steps)(r, ranks) for r in range(ranks)]
    COMPILED[name].run_ranks(lambda r, n: given[r], ranks, engine="cpu_threads", wait_limit=300)
    return given


def assert_plain(name: str, ranks: int, given: list[dict[str, Any]], steps: int = 6) -> None:
    _, plain, points, grids = CASES[name]
    for key, wanted in zip(("lA", "lB"), plain(points, steps, ranks), strict=True):
        found = whole_of([a[key] for a in given], grids[ranks])
        np.testing.assert_array_equal(found, wanted, err_msg=f"{name} on {ranks} ranks, {key}")


@pytest.mark.parametrize(("name", "ranks"), ALL)
@pytest.mark.few(3)
def test_ranks_give_the_bits_of_plain_numpy(name: str, ranks: int) -> None:
    assert_plain(name, ranks, called(name, ranks))


@pytest.mark.parametrize("name", CASES)
def test_all_runs_in_one_launch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launches, run = [], load_core().run_program

    def counted(*args: Any, **more: Any) -> Any:
        launches.append(len(args[1]))
        return run(*args, **more)

    monkeypatch.setattr("cpufree._core.run_program", counted)
    called(name, 4)
    assert launches == [4]


@pytest.mark.parametrize(
    ("name", "ranks", "points"),
    [
        ("jacobi_1d", 4, 13),
        ("jacobi_2d", 2, (9, 14)),
        ("jacobi_2d", 2, (9, 1100)),  # rows are sent in three slices
        pytest.param("jacobi_2d_signals", 4, (9, 14), marks=pytest.mark.slow),
        pytest.param("heat_3d", 4, (7, 5, 6), marks=pytest.mark.slow),
    ],
)
def test_kernels_of_many_blocks_give_the_bits_of_plain_numpy(
    name: str, ranks: int, points: Any
) -> None:
    of, plain, _, grids = CASES[name]
    program = COMPILED[name]
    lowered = program._lowered_ranks(program._of_ranks(of(points, 6), ranks))
    for blocks in (1, 3):
        given = [of(points, 6)(r, ranks) for r in range(ranks)]
        ranks_on_cpu.run(lowered, [_arrays(a) for a in given], blocks)
        for key, wanted in zip(("lA", "lB"), plain(points, 6, ranks), strict=True):
            found = whole_of([a[key] for a in given], grids[ranks])
            np.testing.assert_array_equal(found, wanted)


def _arrays(arguments: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in arguments.items() if isinstance(v, np.ndarray)}


@pytest.mark.skipif(not nvrtc.find(), reason="NVRTC is not installed")
@pytest.mark.parametrize(("name", "ranks"), [("jacobi_2d", 4), ("heat_3d", 2)])
@pytest.mark.few(1)
def test_kernels_compile_for_gpus(name: str, ranks: int) -> None:
    made = dace_cases.load(dace_cases.path(name, ranks))
    text = kernel_of_ranks(made, 132).text
    assert len(nvrtc.compile_text(text.on_gpu())) > 1000


@pytest.mark.parametrize(("name", "ranks"), dace_cases.SAVED)
def test_saved_programs_are_those_of_the_front_end(name: str, ranks: int) -> None:
    made = dace_cases.load(dace_cases.path(name, ranks))
    assert made == dace_cases.lowered(name, ranks), "python tests/python/support/dace/dace_cases.py"


# --- what is made ---


def _count(program: ir.Program, kind: type) -> int:
    return sum(isinstance(s, kind) for s in ir.walk(program.body))


def test_a_step_has_one_barrier_for_each_update() -> None:
    made = dace_cases.load(dace_cases.path("jacobi_2d", 4))
    for program in grid_programs(made):
        loop = next(s for s in program.body if isinstance(s, ir.For))
        assert [type(s).__name__ for s in loop.body] == 2 * [
            "Barrier", "Grant", "Start", "Finish", "Group",
        ]  # fmt: skip


def test_ranks_alike_share_a_variant() -> None:
    of = CASES["jacobi_1d"][0](13, 3)
    made = COMPILED["jacobi_1d"].lower_ranks(of, 8)
    assert made.variant_of == (0, 1, 1, 1, 1, 1, 1, 2)
    assert "ranks 1, 2, 3, 4, 5, 6:" in str(COMPILED["jacobi_1d"].explain_ranks(of, 8))


@pytest.mark.parametrize("name", ["jacobi_1d", "jacobi_2d", "heat_3d"])
def test_a_grant_too_early_is_found(name: str) -> None:
    made = dace_cases.load(dace_cases.path(name, 2))
    for program in rows_passes(made):
        assert check_grants(program) > 0
        (loop,) = (s for s in program.body if isinstance(s, ir.For))
        moved = 0
        for k, s in enumerate(loop.body):
            if isinstance(s, ir.Grant):
                others = [x for x in loop.body if x is not s]
                # In front of the group that still reads the region.
                place = max(0, [i for i, x in enumerate(others[:k]) if isinstance(x, ir.Group)][-1])
                body = (*others[:place], s, *others[place:])
                wrong = tuple(replace(x, body=body) if x is loop else x for x in program.body)
                with pytest.raises(EngineError, match="while others may write it"):
                    check_grants(replace(program, body=wrong))
                moved += 1
        assert moved > 0


def test_a_grant_that_is_missing_is_found() -> None:
    made = dace_cases.load(dace_cases.path("jacobi_2d", 2))
    (program, *_) = rows_passes(made)
    body = tuple(s for s in program.body if not isinstance(s, ir.Grant))
    with pytest.raises(EngineError, match="grant"):
        check_grants(replace(program, body=body))


def test_runs_within_one_another_have_memory_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner, run = [], load_core().run_program

    def within(*args: Any, **more: Any) -> Any:
        if not inner:
            inner.append(None)
            inner[0] = called("jacobi_1d", 4, 3)
        return run(*args, **more)

    monkeypatch.setattr("cpufree._core.run_program", within)
    assert_plain("jacobi_1d", 4, called("jacobi_1d", 4))
    assert_plain("jacobi_1d", 4, inner[0], 3)


# --- errors of a run ---


def test_a_rank_that_waits_in_vain_gives_up() -> None:
    """Rank 1 turns less often than rank 0, which cannot be known before the run."""
    of, _, points, _ = CASES["jacobi_2d"]
    program = COMPILED["jacobi_2d"]
    made = program.lower_ranks(of(points, 9), 2)
    loop = next(s for s in made.variants[1].body if isinstance(s, ir.For))
    shorter = replace(loop, start=ir.Literal(3, "int64"))
    body = tuple(shorter if s is loop else s for s in made.variants[1].body)
    broken = replace(made, variants=(made.variants[0], replace(made.variants[1], body=body)))
    from cpufree.engines.watch import Watch
    from cpufree.laps import Laps

    given = dace_cases.arguments("jacobi_2d", 2, 9)
    kernel, watch = cpu_runner_of_ranks(broken), Watch(None)
    before = given[0].arrays["lA"].copy()
    with watch, pytest.raises(WaitTimeoutError):
        kernel.run(given, {}, {"TSTEPS": 9}, 0.5, watch, Laps())
    np.testing.assert_array_equal(given[0].arrays["lA"], before)


def test_an_array_of_two_ranks_is_refused() -> None:
    of = CASES["jacobi_2d"][0]((9, 14), 3)
    shared = of(0, 2)["lA"]
    with pytest.raises(InvalidInputError, match="ranks 0 and 1 have the same array"):
        COMPILED["jacobi_2d"].run_ranks(lambda r, n: {**of(r, n), "lA": shared}, 2)


# --- samples of DaCe's, as they are installed ---


def _sample(name: str) -> Any:
    import dace

    folder = Path(dace.__file__).resolve().parents[1] / "samples/distributed"
    if not (folder / f"{name}.py").exists():
        pytest.skip("DaCe's samples are not installed")
    spec = importlib.util.spec_from_file_location(f"sample_{name}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # It imports mpi4py, which its program does not need.
    stand_in: Any = type(sys)("mpi4py")
    stand_in.MPI = None
    with mock.patch.dict(sys.modules, {"mpi4py": stand_in}):
        spec.loader.exec_module(module)
    return module


# DaCe parses the sample for 3 seconds each time.
@pytest.mark.parametrize(
    "ranks", [pytest.param(p, marks=() if p == 4 else pytest.mark.slow) for p in (1, 2, 4, 8)]
)
def test_unmodified_sample_jacobi_2d(ranks: int) -> None:
    module = _sample("jacobi_2d")
    n, steps = 24, 5
    (px, py), program = GRIDS[ranks], cpufree.dace.compile(module.jacobi_2d_dist)

    def of(rank: int, size: int) -> dict[str, Any]:
        given = CASES["jacobi_2d"][0]((n // px, n // py), steps)(rank, size)
        A, B = module.init_data(n, np.float64)
        places = {"rank": rank, "size": size, "Px": px, "Py": py, "pi": rank // py, "pj": rank % py}
        symbols = {k: v for k, v in given.items() if k not in ("lA", "lB")}
        return {**symbols, **places, "A": A, "B": B}

    given = [of(r, ranks) for r in range(ranks)]
    program.run_ranks(lambda r, size: given[r], ranks, engine="cpu_threads", wait_limit=300)
    assert_sample(module.init_data(n, np.float64), given, steps)


def assert_sample(start: tuple[Any, Any], given: list[dict[str, Any]], steps: int) -> None:
    A, B = start
    for _ in range(1, steps):
        for x, y in ((A, B), (B, A)):
            if A.ndim == 1:
                y[1:-1] = 0.33333 * (x[:-2] + x[1:-1] + x[2:])
                continue
            y[1:-1, 1:-1] = 0.2 * (
                x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]
            )
    np.testing.assert_array_equal(given[0]["A"], A)
    np.testing.assert_array_equal(given[0]["B"], B)


@pytest.mark.parametrize("ranks", [2, 5, 8])
@pytest.mark.few(1)
def test_unmodified_sample_jacobi_1d(ranks: int) -> None:
    module = _sample("jacobi_1d")
    n, steps = 40, 7
    program: DaceProgram = cpufree.dace.compile(module.jacobi_1d_dist)

    def of(rank: int, size: int) -> dict[str, Any]:
        A, B = module.init_data(n, np.float64)
        return {"A": A, "B": B, "TSTEPS": steps, "lN": n // size, "rank": rank, "size": size}

    given = [of(r, ranks) for r in range(ranks)]
    program.run_ranks(lambda r, size: given[r], ranks, engine="cpu_threads", wait_limit=300)
    assert_sample(module.init_data(n, np.float64), given, steps)
