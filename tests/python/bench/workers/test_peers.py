"""Adapters of other solvers: what they are given, what they answer, what they refuse."""

from __future__ import annotations

import importlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import peer_problem
import pytest
import scipy.sparse as sp
from paths import ROOT

from cpufree.errors import FileFormatError, InvalidInputError, UnsupportedError

pytestmark = pytest.mark.cpu_only
PEERS = ROOT / "bench" / "peers"
BUILD = PEERS / "build_petsc.sh"
NAMES = ("problem_folder", "petsc_layout", "cupy_worker")


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """The adapters' modules by name; they are scripts, on no path of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PEERS))
        yield {name: importlib.import_module(name) for name in NAMES}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A problem on three PEs, whose rows lie anywhere."""
    return peer_problem.write(tmp_path / "problem", pes=3)


def read(modules: dict[str, ModuleType], folder: Path) -> Any:
    return modules["problem_folder"].read_problem(folder)


def replace(folder: Path, name: str, values: Any) -> None:
    np.save(folder / f"{name}.npy", values)


# What every worker reads


def test_missing_file_is_named(modules: dict[str, ModuleType], folder: Path) -> None:
    (folder / "data.npy").unlink()
    with pytest.raises(FileFormatError, match=r"data\.npy"):
        read(modules, folder)


def test_folder_without_problem_is_refused(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"problem\.json"):
        read(modules, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("indptr", lambda a: a + 1, "indptr does not start at 0"),
        ("indptr", lambda a: a[[0, 2, 1, *range(3, len(a))]], "indptr decreases"),
        ("data", lambda a: a[:-1], "data is not"),
        ("data", lambda a: a.astype(np.int64), "data is not"),
        ("indices", lambda a: a + 1, "indices are not all between"),
        ("part", lambda a: a - 1, "part is not"),
        ("order", lambda a: a * 0, "order is not a permutation"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    modules: dict[str, ModuleType], folder: Path, name: str, change: Any, complaint: str
) -> None:
    replace(folder, name, change(np.load(folder / f"{name}.npy")))
    with pytest.raises(InvalidInputError, match=complaint):
        read(modules, folder)


def test_diagonal_is_that_of_the_matrix(modules: dict[str, ModuleType], folder: Path) -> None:
    A, _ = peer_problem.system(folder)
    np.testing.assert_array_equal(read(modules, folder).diagonal(), A.diagonal())


def test_jacobi_needs_positive_diagonal(modules: dict[str, ModuleType], folder: Path) -> None:
    A, _ = peer_problem.system(folder)
    A[4, 4] = -1
    replace(folder, "data", A.data)
    with pytest.raises(InvalidInputError, match="row 4"):
        modules["problem_folder"].inverse_diagonal(read(modules, folder))


def test_other_preconditioner_is_unsupported(modules: dict[str, ModuleType]) -> None:
    with pytest.raises(UnsupportedError, match="ilu"):
        modules["problem_folder"].jacobi_asked({"preconditioner": "ilu"})


def limits(modules: dict[str, ModuleType], **request: Any) -> Any:
    return modules["problem_folder"].read_limits({"method": "cg", **request}, ("cg",), "it")


def test_fixed_iterations_switch_the_tolerance_off(modules: dict[str, ModuleType]) -> None:
    found = limits(modules, iterations=7, rtol=1e-3, max_iterations=99)
    assert (found.most, found.rtol, found.exact) == (7, 0.0, True)


@pytest.mark.parametrize("request_", [{"method": "prcg"}, {"variant": "no-comm"}])
def test_methods_and_variants_it_lacks_are_unsupported(
    modules: dict[str, ModuleType], request_: dict[str, str]
) -> None:
    with pytest.raises(UnsupportedError, match="only"):
        limits(modules, iterations=7, **request_)


@pytest.mark.parametrize(
    "request_", [{}, {"iterations": 0}, {"rtol": 1.0, "max_iterations": 9}, {"iterations": "x"}]
)
def test_senseless_limits_are_refused(
    modules: dict[str, ModuleType], request_: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError, match="iterations"):
        limits(modules, **request_)


@pytest.mark.parametrize(
    ("exact", "done", "converged", "finite", "reason"),
    [
        (True, 9, False, True, "CONVERGED_ITS"),
        (True, 8, True, True, "CONVERGED_ATOL"),
        (False, 9, True, True, "CONVERGED_RTOL"),
        (False, 9, False, True, "DIVERGED_ITS"),
        (False, 9, True, False, "DIVERGED_NANORINF"),
    ],
)
def test_reasons(
    modules: dict[str, ModuleType],
    exact: bool,
    done: int,
    converged: bool,
    finite: bool,
    reason: str,
) -> None:
    given = modules["problem_folder"].Limits(0.0, 9, exact)
    assert given.reason(done, converged, finite) == reason


# PETSc's rows and options


def test_every_rank_owns_its_part_in_the_given_order(
    modules: dict[str, ModuleType], folder: Path
) -> None:
    problem = read(modules, folder)
    numbers = modules["petsc_layout"].numbering(problem, 3)
    place = np.argsort(problem.order)
    for rank in range(3):
        mine = numbers.old_of_new[numbers.first[rank] : numbers.first[rank + 1]]
        assert set(mine) == set(np.flatnonzero(problem.part == rank))
        assert np.all(np.diff(place[mine]) > 0)


def test_rows_of_all_ranks_make_the_permuted_matrix(
    modules: dict[str, ModuleType], folder: Path
) -> None:
    problem, layout = read(modules, folder), modules["petsc_layout"]
    numbers = layout.numbering(problem, 3)
    blocks = []
    for rank in range(3):
        indptr, indices, data = layout.rows_of(problem, numbers, rank)
        block = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, problem.rows))
        assert block.has_sorted_indices
        blocks.append(block)
    A, _ = peer_problem.system(folder)
    wanted = A[numbers.old_of_new][:, numbers.old_of_new]
    assert abs(sp.vstack(blocks) - wanted).max() == 0


def test_rank_without_rows_gets_an_empty_block(
    modules: dict[str, ModuleType], folder: Path
) -> None:
    problem, layout = read(modules, folder), modules["petsc_layout"]
    indptr, indices, data = layout.rows_of(problem, layout.numbering(problem, 4), 3)
    assert (list(indptr), len(indices), len(data)) == ([0], 0, 0)


def test_partition_for_more_ranks_is_refused(modules: dict[str, ModuleType], folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="PE 2, but there are 2 ranks"):
        modules["petsc_layout"].numbering(read(modules, folder), 2)


def test_ranks_need_a_partition(modules: dict[str, ModuleType], folder: Path) -> None:
    (folder / "part.npy").unlink()
    with pytest.raises(InvalidInputError, match=r"part\.npy"):
        modules["petsc_layout"].numbering(read(modules, folder), 2)


def petsc_options(modules: dict[str, ModuleType], jacobi: bool, exact: bool) -> dict[str, str]:
    given = modules["problem_folder"].Limits(1e-8, 50, exact)
    options: dict[str, str] = modules["petsc_layout"].solve_options("cg", jacobi, given)
    return options


def test_petsc_norm_of_the_stopping_rule_is_that_of_r(modules: dict[str, ModuleType]) -> None:
    assert petsc_options(modules, jacobi=True, exact=False)["ksp_norm_type"] == "unpreconditioned"
    # sqrt(r.z), and z is r.
    plain = petsc_options(modules, jacobi=False, exact=False)
    assert (plain["pc_type"], plain["ksp_norm_type"]) == ("none", "natural")


def test_petsc_fixed_iterations_have_no_stopping_test(modules: dict[str, ModuleType]) -> None:
    assert petsc_options(modules, jacobi=True, exact=True)["ksp_convergence_test"] == "skip"
    assert petsc_options(modules, jacobi=True, exact=False)["ksp_convergence_test"] == "default"


def test_petsc_is_told_whether_mpi_takes_gpu_memory(modules: dict[str, ModuleType]) -> None:
    start = modules["petsc_layout"].start_options
    assert start(True, False, 5)[-4:] == ["-use_gpu_aware_mpi", "0", "-device_select_cuda", "5"]
    assert not {"-use_gpu_aware_mpi", "-device_select_cuda"} & set(start(False, False, 5))


def test_petsc_options_of_the_user_are_pairs(modules: dict[str, ModuleType]) -> None:
    given = modules["petsc_layout"].given_options
    found = given(["-ksp_norm_type", "natural", "-log_view", "-shift", "-1.5"])
    assert found == {"ksp_norm_type": "natural", "log_view": "", "shift": "-1.5"}
    with pytest.raises(InvalidInputError, match="'natural' is no option"):
        given(["natural"])


def test_petsc_reasons_have_the_contract_s_names(modules: dict[str, ModuleType]) -> None:
    class Reasons:
        ITERATING = 0
        CONVERGED_RTOL = 2
        DIVERGED_MAX_IT = -3

    name = modules["petsc_layout"].reason_name
    assert [name(n, Reasons) for n in (2, -3, 77)] == [
        "CONVERGED_RTOL",
        "DIVERGED_ITS",
        "REASON_77",
    ]


# The list of peers, and the script that builds PETSc


def test_listed_commands_exist(modules: dict[str, ModuleType]) -> None:
    listed = json.loads((PEERS / "peers.json").read_text())
    for name, peer in listed.items():
        scripts = [word for word in peer["command"] if word.endswith(".py")]
        assert len(scripts) == 1, name
        assert (PEERS.parents[1] / scripts[0]).is_file(), name
        assert peer["needs"], name
    assert set(listed["petsc"]["methods"]) == set(modules["petsc_layout"].METHODS)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "where to?"),
        (["--turbo", "x"], "unknown option --turbo"),
        (["--jobs", "many", "x"], "--jobs"),
        (["--cuda", "perhaps", "x"], "'perhaps'"),
        (["--cuda"], "--cuda needs a value"),
        (["x", "y"], "one folder"),
        (["--python", "/no/python", "x"], "/no/python"),
    ],
)
def test_build_script_refuses_with_reason(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    command = ["bash", str(BUILD), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert not list(tmp_path.iterdir()), "nothing is made before the options are checked"


@pytest.fixture
def slow_build(tmp_path: Path) -> Iterator[Any]:
    """A build on stand-ins for all tools, whose first download never ends; starts it."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("gcc", "g++", "make", "mpicc", "mpicxx", "python"):
        tool = tools / name
        tool.write_text(
            f'#!/bin/sh\ncase "$*" in *download*) echo $$ >{tmp_path}/pid; sleep 600; esac\n'
        )
        tool.chmod(0o755)
    path = f"{tools}:/usr/bin:/bin"
    started = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = ["bash", str(BUILD), "--cuda", "no", "--mpi", "system"]
        command += ["--python", str(tools / "python"), *options, str(tmp_path / "out")]
        run = subprocess.Popen(command, env={"PATH": path}, stderr=subprocess.PIPE, text=True)
        started.append(run)
        return run

    yield start
    for run in started:
        run.kill()
        run.communicate()


def wait_until(true: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:  # it has ended, perhaps just now
        return False


def test_build_step_past_its_limit_is_an_error(slow_build: Any) -> None:
    build = slow_build("--limit", "1")
    _, stderr = build.communicate(timeout=120)
    assert build.returncode == 1
    assert "fetch took more than 1 s" in stderr


def test_stopped_build_leaves_nothing_running(slow_build: Any, tmp_path: Path) -> None:
    build, file = slow_build(), tmp_path / "pid"
    wait_until(lambda: file.exists() and file.read_text())
    download = int(file.read_text())
    assert lives(download)
    build.terminate()
    build.communicate(timeout=120)
    wait_until(lambda: not lives(download))


def test_finished_build_is_not_overwritten_with_other_options(
    slow_build: Any, tmp_path: Path
) -> None:
    source = next(line for line in BUILD.read_text().splitlines() if line.startswith("version="))
    begun = tmp_path / "out/src" / f"petsc-{source.removeprefix('version=')}"
    begun.mkdir(parents=True)
    (begun / "configured").write_text("--with-cuda=1")
    (begun / "configure").touch(0o755)
    (tmp_path / "out/petsc").mkdir()
    build = slow_build()
    _, stderr = build.communicate(timeout=120)
    assert build.returncode == 1
    assert "begun with other options" in stderr
    assert "--with-cuda=1" in stderr
    assert (tmp_path / "out/petsc").is_dir()
