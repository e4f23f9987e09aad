"""What the contender cpufree tells of its time, and its variants, on the CPU engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpufree.bench.cg.problems import Case, Problem
from cpufree.bench.contenders.engine_contender import EngineContender
from cpufree.errors import InvalidInputError, UnsupportedError

pytestmark = pytest.mark.cpu_only
METHODS = ("cg", "prcg", "pipecg")
PHASES = {"spmv", "vector", "halo_wait", "reduction_wait"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for matrices."""
    return tmp_path_factory.mktemp("cache")


def loaded(
    cache: Path, pes: int, pc: str = "none", precision: str = "double", size: int = 61
) -> tuple[EngineContender, dict[str, Any]]:
    """Return the contender with a grid of size x 47, and its facts."""
    case = Case(f"p{size}", f"gen:poisson2d?nx={size},ny=47")
    contender = EngineContender()
    options = {"pes": pes, "gpus": None, "preconditioner": pc, "tuning": {}}
    folder = Problem(case, precision, cache).for_pes(pes)
    return contender, contender.load(folder, options)


def ask(contender: EngineContender, method: str, **changes: Any) -> dict[str, Any]:
    """Return the answer to a solve of 30 iterations."""
    request = {"method": method, "variant": "full", "iterations": 30, "rtol": 1e-6}
    return contender.solve({**request, "max_iterations": 100, "save": None, **changes})


def assert_alike(one: Path, other: Path) -> None:
    """Compare two x up to rounding: compilers fuse operations as they like in each kernel."""
    x, y = np.load(one), np.load(other)
    assert np.linalg.norm(x - y) <= 1e-12 * np.linalg.norm(x) and np.any(x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pes", [1, 2, 3, 4])
def test_split_is_told_when_asked_for_of_the_same_solve(
    cache: Path, tmp_path: Path, pes: int, method: str
) -> None:
    contender, facts = loaded(cache, pes)
    assert facts["tells_split"]
    files = tmp_path / "x.npy", tmp_path / "y.npy"
    plain = ask(contender, method, save=str(files[0]))
    timed = ask(contender, method, save=str(files[1]), split=True)
    assert plain["split"] is None
    assert timed["split"].keys() == PHASES and min(timed["split"].values()) >= 0.0
    assert sum(timed["split"].values()) <= timed["seconds"]
    assert timed["iterations"] == plain["iterations"]
    assert timed["residual"] == pytest.approx(plain["residual"], rel=1e-9)
    assert_alike(*files)


def test_split_adds_up_to_the_time_of_the_solve(cache: Path) -> None:
    contender, _ = loaded(cache, 1, size=4001)

    def missing() -> float:
        answer = ask(contender, "prcg", iterations=100, split=True)
        return 1.0 - sum(answer["split"].values()) / float(answer["seconds"])

    # The best of some: threads may start late where other programs have the cores.
    assert 0.0 <= min(missing() for _ in range(5)) <= 0.05


def test_split_is_told_of_solves_to_a_tolerance(cache: Path) -> None:
    answer = ask(loaded(cache, 2)[0], "prcg", iterations=None, max_iterations=1000, split=True)
    assert answer["reason"] == "CONVERGED_RTOL" and answer["split"].keys() == PHASES


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("variant", ["no-compute", "no-comm"])
@pytest.mark.parametrize("pes", [1, 2, 4])
def test_variants_take_the_iterations_asked_for(
    cache: Path, pes: int, variant: str, method: str
) -> None:
    contender, _ = loaded(cache, pes, size=3)  # converges long before
    for iterations in (1, 10, 400):
        answer = ask(contender, method, variant=variant, iterations=iterations)
        assert (answer["iterations"], answer["reason"]) == (iterations, "CONVERGED_ITS")
        assert answer["seconds"] > 0
        assert answer["residual"] is None and answer["split"] is None


def test_without_other_pes_one_pe_finds_the_same_x(cache: Path, tmp_path: Path) -> None:
    contender, _ = loaded(cache, 1)
    for method in METHODS:
        ask(contender, method, save=str(tmp_path / "full.npy"))
        ask(contender, method, variant="no-comm", save=str(tmp_path / "alone.npy"))
        assert_alike(tmp_path / "full.npy", tmp_path / "alone.npy")


@pytest.mark.parametrize(("pc", "precision"), [("jacobi", "double"), ("none", "single")])
def test_studies_that_are_not_compiled_are_told(cache: Path, pc: str, precision: str) -> None:
    contender, facts = loaded(cache, 2, pc, precision)
    assert not facts["tells_split"]
    assert ask(contender, "cg", split=True)["split"] is None
    for variant in ("no-compute", "no-comm"):
        with pytest.raises(UnsupportedError, match="double precision without a preconditioner"):
            ask(contender, "cg", variant=variant)


def test_variants_need_a_number_of_iterations(cache: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no-comm has no residual .* give iterations"):
        ask(loaded(cache, 1)[0], "cg", variant="no-comm", iterations=None)
