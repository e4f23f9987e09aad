"""`cpufree bench prepare`: what is made, found again, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpufree.bench.cg import prepare
from cpufree.bench.cg.problems import Problem, cases
from cpufree.cli import app as cli

pytestmark = pytest.mark.cpu_only
SMALL = ("gen:poisson2d?nx=12,ny=10", "gen:poisson2d?nx=13,ny=10")


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Return exit code, output and messages of the command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "prepare", *map(str, arguments)])
    said = capfd.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_what_is_prepared_is_what_a_benchmark_looks_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = run(capfd, *SMALL, "--pes", "1,3", "--cache", tmp_path, "--jobs", 2)
    assert code == 0
    for case in cases(SMALL):
        problem = Problem(case, "double", tmp_path)
        for pes in (1, 3):
            problem.for_pes(pes)
        assert not problem.new


def test_another_number_of_pes_is_made_beside_what_is_there(tmp_path: Path) -> None:
    Problem(cases(SMALL[:1])[0], "double", tmp_path).for_pes(2)
    again = Problem(cases(SMALL[:1])[0], "double", tmp_path)
    assert not again.new
    again.for_pes(3)
    assert again.new


def test_the_second_time_all_is_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for expected in ("ms", "is there already"):
        code, out, _ = run(capfd, SMALL[0], "--pes", 2, "--cache", tmp_path)
        assert code == 0
        assert expected in out


def test_a_file_that_is_no_matrix_does_not_keep_the_others_from_being_made(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.mtx"
    bad.write_text("this is no matrix")
    cache = tmp_path / "cache"
    code, out, err = run(capfd, bad, SMALL[0], "--pes", 2, "--cache", cache)
    assert code == 3
    assert "bad, double" in err
    assert "first line must read" in err
    assert "poisson2d" in out
    assert not Problem(cases(SMALL[:1])[0], "double", cache).new


@pytest.mark.parametrize(
    ("cores", "gigabytes", "jobs"), [(2, 4, 1), (2, 64, 2), (128, 560, 46), (128, 10_000, 128)]
)
def test_jobs_are_bounded_by_cores_and_memory(cores: int, gigabytes: int, jobs: int) -> None:
    assert prepare.jobs_here(cores, gigabytes << 30) == jobs
