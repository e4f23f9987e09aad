"""`cpufree bench stencil` from end to end on the CPU engine, its workers, and its report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from cpufree.bench.contenders import registry as shared
from cpufree.bench.core import processes, rates
from cpufree.bench.measuring import Measuring
from cpufree.bench.stencil import contenders, problem, solvers
from cpufree.bench.stencil.plan import Case, Configuration, check_grids, parse_cases
from cpufree.bench.stencil.results import StencilResults
from cpufree.cli import app as cli
from cpufree.errors import InvalidInputError, OutOfMemoryError, UnsupportedError
from cpufree.stencil import jacobi, reference

pytestmark = pytest.mark.cpu_only
needs_proc = pytest.mark.skipif(not processes.PROC.is_dir(), reason="needs /proc")
Lines = list[dict[str, Any]]
Run = Callable[..., tuple[int, Lines]]


@pytest.fixture(autouse=True)
def no_triad(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the triad, which takes seconds and half a gigabyte."""
    rate = {"what": "triad", "bytes_per_second": [1e9]}
    monkeypatch.setattr(rates, "measure_rate", lambda gpus, cores: rate)


def of_kind(lines: Lines, kind: str) -> Lines:
    """Return the lines of a kind."""
    return [line for line in lines if line["kind"] == kind]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs `cpufree bench stencil`; it returns exit code and lines."""
    out = tmp_path / "results.jsonl"

    def call(*words: str) -> tuple[int, Lines]:
        files = ["--out", str(out), "--cache", str(tmp_path / "cache"), "--engine", "cpu_threads"]
        with pytest.raises(SystemExit) as ended:
            cli.main(["bench", "stencil", *words, *files])
        lines = out.read_text().splitlines() if out.exists() else []
        return int(ended.value.code or 0), [json.loads(line) for line in lines]

    return call


# Grids


def test_grids_grow_along_their_axes_in_turn() -> None:
    case = Case("", (256, 100), per_pe=True)
    assert [case.shape_for(p) for p in (1, 2, 4, 8)] == [
        (256, 100),
        (512, 100),
        (512, 200),
        (1024, 200),
    ]
    assert case.shape_for(3) == (768, 100) and case.shape_for(6) == (1536, 100)
    assert Case("", (8, 8, 8), per_pe=True).shape_for(8) == (16, 16, 16)
    assert Case("", (8, 8, 8), per_pe=False).shape_for(8) == (8, 8, 8)


def test_lists_of_grids_are_read() -> None:
    found = parse_cases("64x48, 16^3", "256^2")
    assert [case.name for case in found] == ["64x48", "16x16x16", "256x256 per PE"]
    assert [case.per_pe for case in found] == [False, False, True]


@pytest.mark.parametrize("text", ["64", "4x4x4x4", "ax3", "0x5", "64x48,64x48", "7^4"])
def test_grids_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        parse_cases(text, "")


def test_a_wrong_grid_is_told_with_its_option() -> None:
    with pytest.raises(typer.BadParameter) as error:
        parse_cases("8x8", "8y8x8")
    assert error.value.param_hint == "--per-gpu"


def configured(*grids: str, per_pe: str = "", boundaries: tuple[str, ...]) -> Configuration:
    """Return a configuration on 1 and 2 PEs."""
    options = Measuring(pes="1,2").plan([], None)
    return Configuration(
        cases=parse_cases(",".join(grids), per_pe),
        precisions=("single",),
        boundaries=boundaries,
        iterations=1,
        **options,
    )


@pytest.mark.parametrize("grids", [{"grid": "9x9,2x2"}, {"grid": "9x9x1"}, {"per_pe": "2x8"}])
def test_grid_without_points_to_compute_is_refused_with_its_option(grids: dict[str, str]) -> None:
    both = ("periodic", "dirichlet")
    asked = configured(grids.get("grid", ""), per_pe=grids.get("per_pe", ""), boundaries=both)
    with pytest.raises(typer.BadParameter, match="none to compute") as error:
        check_grids(asked, 0)
    assert error.value.param_hint == ("--grid" if "grid" in grids else "--per-gpu")


def test_small_grids_that_are_periodic_have_points_to_compute() -> None:
    check_grids(configured("2x2", boundaries=("periodic",)), 0)


def test_grid_that_the_machine_cannot_hold_is_refused() -> None:
    asked = configured(per_pe="100x100", boundaries=("dirichlet",))
    check_grids(asked, 80_000)
    with pytest.raises(OutOfMemoryError, match="on 2 PEs has"):
        check_grids(asked, 79_999)


# Contenders

SHAPES = [(9, 12), (6, 5, 7), (3, 3)]


@pytest.mark.parametrize("boundary", ["dirichlet", "periodic"])
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["cpufree", "numpy"])
def test_contender_gives_the_bits_of_the_reference(
    tmp_path: Path, name: str, shape: tuple[int, ...], precision: str, boundary: str
) -> None:
    folder = problem.make_folder(tmp_path, shape, precision)
    solver = contenders.make(name)
    solver.load(folder, {"pes": 1, "gpus": None, "boundary": boundary, "tuning": {}})
    answer = solver.solve({"iterations": 11, "check": True})
    assert answer["seconds"] > 0 and answer["iterations"] == 11
    values = reference(np.load(folder / "u0.npy"), 11, boundary=boundary)
    assert answer["checksum"] == problem.checksum(values)
    assert solver.solve({"iterations": 3})["checksum"] is None
    solver.close()
    with pytest.raises(InvalidInputError, match="before load"):
        solver.solve({"iterations": 3})


def test_contender_cpufree_runs_without_computing_or_communication(tmp_path: Path) -> None:
    folder = problem.make_folder(tmp_path, (19, 12), "single")
    solver = contenders.make("cpufree")
    solver.load(folder, {"pes": 2, "gpus": None, "boundary": "periodic", "tuning": {}})
    first = problem.checksum(np.load(folder / "u0.npy"))
    answer = solver.solve({"iterations": 100, "variant": "no-compute", "check": True})
    assert answer["iterations"] == 100 and answer["checksum"] == first
    answer = solver.solve({"iterations": 100, "variant": "no-comm", "check": True})
    assert answer["checksum"] != first
    assert answer["checksum"] != solver.solve({"iterations": 100, "check": True})["checksum"]


def test_numpy_has_no_variants(tmp_path: Path) -> None:
    folder = problem.make_folder(tmp_path, (9, 12), "single")
    solver = contenders.make("numpy")
    solver.load(folder, {"pes": 1, "gpus": None, "boundary": "periodic", "tuning": {}})
    with pytest.raises(UnsupportedError, match="variants"):
        solver.solve({"iterations": 3, "variant": "no-comm"})


def test_baseline_is_told_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    class Extension:
        """Stands in for the compiled baselines."""

        def StencilBaseline(self, *words: Any) -> Any:
            told.append(words)
            return self

        def facts(self) -> dict[str, Any]:
            return {"staging": "peer"}

        def run(self, iterations: int, variant: str, start: Any, out: Any) -> float:
            told.append((iterations, variant, start is None))
            if out is not None:
                out[:] = reference(start, iterations)
            return 0.5

    monkeypatch.setattr(solvers, "load_baselines", Extension)
    folder = problem.make_folder(tmp_path, (8, 6), "single")
    solver = contenders.make("p2p")
    with pytest.raises(UnsupportedError, match="needs GPUs"):
        solver.load(folder, {"pes": 2, "gpus": None, "boundary": "periodic"})
    options = {"pes": 2, "gpus": [3, 4, 5], "boundary": "periodic", "tuning": {"depth": 4}}
    assert solver.load(folder, options)["staging"] == "peer"
    assert told[0] == ("p2p", [8, 6], [True, True], "single", 2, [3, 4], {"depth": 4})
    answer = solver.solve({"iterations": 5, "variant": "full", "check": True})
    assert answer["seconds"] == 0.5
    assert answer["checksum"] == problem.checksum(reference(np.load(folder / "u0.npy"), 5))
    solver.solve({"iterations": 7, "variant": "no-compute"})
    assert told[1:] == [(5, "full", False), (7, "no-compute", True)]


def test_every_contender_is_listed() -> None:
    found = contenders.find(["mine=python mine.py"])
    assert list(found) == ["cpufree", *contenders.BASELINES, "numpy", "mine"]
    assert found["p2p"].family == shared.BASELINE and found["numpy"].cpu_only
    with pytest.raises(InvalidInputError, match="no built-in contender"):
        contenders.make("nobody")


# Reference


def test_reference_is_chosen_by_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = problem.make_folder(tmp_path, (20, 30), "double")
    serial = problem.expected(folder, (20, 30), "dirichlet", 8)
    assert serial["by"] == "the serial reference"
    monkeypatch.setattr(problem, "MOST_SERIAL", 100)
    engine = problem.expected(folder, (20, 30), "dirichlet", 8)
    assert engine["by"] == "the CPU engine" and engine["checksum"] == serial["checksum"]
    monkeypatch.setattr(problem, "MOST_ENGINE", 100)
    assert problem.expected(folder, (20, 30), "dirichlet", 8)["checksum"] is None
    assert problem.check_iterations((20, 30), 1000) == problem.FEW_ITERATIONS
    assert problem.check_iterations((2, 3), 10) == 10


# Runs


@needs_proc
def test_run_measures_checks_and_writes(run: Run) -> None:
    code, lines = run(
        *("--grid", "24x20", "--per-gpu", "8^3", "--pes", "1,2", "--precision", "single,double"),
        *("--boundary", "periodic", "--iterations", "12", "--repeats", "2"),
    )
    assert code == 0
    header = lines[0]
    assert header["benchmark"] == "stencil" and header["configuration"]["iterations"] == 12
    problems = {
        (x["case"], x["pes"]): (x["shape"], x["updates"]) for x in of_kind(lines, "problem")
    }
    assert problems["24x20", 2] == ([24, 20], 480)
    assert problems["8x8x8 per PE", 2] == ([16, 8, 8], 1024)
    references = {
        (x["case"], x["pes"], x["precision"]): x["checksum"] for x in of_kind(lines, "reference")
    }
    checks = of_kind(lines, "check")
    assert len(references) == 8 and len(checks) == 8 + 4  # NumPy on one PE only
    for check in checks:
        assert check["checksum"] == references[check["case"], check["pes"], check["precision"]]
    measured = of_kind(lines, "measurement")
    assert len(measured) == 2 * len(checks)
    assert all(x["iterations"] == 12 and x["seconds"] > 0 for x in measured)
    assert {x["unsupported"] for x in of_kind(lines, "failure")} == {True}


@needs_proc
def test_run_goes_on_where_it_has_stopped(run: Run, tmp_path: Path) -> None:
    words = ("--grid", "9x9", "--iterations", "5", "--repeats", "3")
    _, whole = run(*words)
    path = tmp_path / "results.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(kept) if b'"round": 1' in line)
    path.write_bytes(b"".join(kept[: cut + 1]) + b'{"kind": "meas')
    code, lines = run(*words)
    assert code == 0 and lines[: cut + 1] == whole[: cut + 1]
    keys = [
        [(x["contender"], x["round"]) for x in of_kind(found, "measurement")]
        for found in (whole, lines)
    ]
    assert keys[0] == keys[1]
    assert len(of_kind(lines, "reference")) == 1
    code, _ = run("--grid", "9x9", "--iterations", "6", "--repeats", "3")
    assert code == 3  # another configuration


@needs_proc
def test_wrong_values_do_not_count(run: Run, tmp_path: Path) -> None:
    worker = tmp_path / "wrong.py"
    worker.write_text(
        "from cpufree.bench.stencil.solvers import NumpySolver\n"
        "from cpufree.bench.worker import serve\n"
        "class Wrong(NumpySolver):\n"
        "    def run(self, start, iterations, variant, check):\n"
        "        return super().run(start, iterations + 1, variant, check)\n"
        "serve(Wrong())\n"
    )
    code, _ = run(
        *("--grid", "9x9", "--iterations", "5", "--repeats", "1", "--contenders", "cpufree,wrong"),
        *("--peer", f"wrong={{python}} {worker}"),
    )
    assert code == 0
    results = StencilResults([tmp_path / "results.jsonl"])
    (group,) = results.groups()
    assert [series.name for series in results.valid(group)] == ["cpufree"]
    wrong = next(series for series in results.of(group) if series.name == "wrong")
    assert "not those of the serial reference" in wrong.problems()[0]


@pytest.mark.parametrize(
    "words",
    [
        ("--grid", "9"),
        ("--grid", "9x9", "--boundary", "robin"),
        ("--grid", "9x9", "--variant", "half"),
        ("--grid", "9x9", "--tuning", "nobody.x=1"),
        ("--grid", "9x9", "--tuning", "cpufree.role=tiles"),
        ("--grid", "2x2"),
        ("--grid", ","),
    ],
    ids=str,
)
def test_options_that_are_none_are_refused(run: Run, words: tuple[str, ...]) -> None:
    code, lines = run(*words)
    assert code == 2 and not lines


def test_first_values_are_the_same_every_time(tmp_path: Path) -> None:
    first = problem.read_folder(problem.make_folder(tmp_path / "a", (5, 6), "single"))
    again = problem.read_folder(problem.make_folder(tmp_path / "b", (5, 6), "single"))
    assert first.dtype == np.float32 and first.tobytes() == again.tobytes()
    assert jacobi(first, 0, engine="cpu_threads").u.tobytes() == first.tobytes()
