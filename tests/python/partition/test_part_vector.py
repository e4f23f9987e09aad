"""Partitions that the user gives: as arrays, in files, and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runner import Run, runner
from ranks_here import launched, team, team_of

import cpufree
from cpufree import Solver
from cpufree.cli.distributed_input import DistributedInputOptions, choose_rows
from cpufree.errors import FileFormatError, InvalidInputError
from cpufree.matrix.load import as_csr
from cpufree.partition.files import load_partition, save_partition
from cpufree.partition.methods import metis_parts, partition
from cpufree.partition.part_vector import as_part_vector
from cpufree.solvers.setup.agreement import agree_on_matrix
from cpufree.solvers.setup.preparation import prepare

POISSON = "gen:poisson2d?nx=20,ny=20"
STRIPES = np.arange(400) % 3  # a bad partition: never chosen


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


@pytest.fixture(scope="module")
def poisson() -> sp.csr_array:
    return cpufree.generate.poisson2d(20, 20)


# -- arrays --


@pytest.mark.parametrize(
    ("values", "pes", "complaint"),
    [
        ([0, 1, 2, 3], 3, r"partition\[3\]: part 3, but for 3 PEs parts are 0 to 2"),
        ([0, -1], 2, r"partition\[1\]: part -1, but for 2 PEs"),
        ([0, 1], 1, r"partition\[1\]: part 1, but for 1 PE there is part 0 alone"),
        ([1, 2, 3], 3, r"numbered from 1: subtract 1 from all"),
        ([0, 5000], None, r"part 5000, but parts are numbered from 0 to at most 1023"),
        ([0.0, 1.0], 2, r"dtype float64: give the number of its part"),
        ([[0, 1]], 2, r"shape \(1, 2\)"),
        ([[0], [0, 1]], 2, r"no array"),
        (None, 2, r"shape \(\)"),
    ],
)
def test_what_are_no_part_numbers_is_refused(
    values: object, pes: int | None, complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        as_part_vector(values, pes)


def test_a_given_partition_is_taken_and_its_cost_told(poisson: sp.csr_array) -> None:
    found = partition(as_csr(poisson), 4, STRIPES)
    assert found.method == "given"
    assert found.part.tolist() == STRIPES.tolist()
    assert found.why == "1 of 4 PEs have no rows"
    assert found.report.rows == (134, 133, 133, 0)


def test_a_partition_of_another_length_is_refused(poisson: sp.csr_array) -> None:
    with pytest.raises(InvalidInputError, match="399 part numbers, but the matrix has 400 rows"):
        Solver(poisson, partition=STRIPES[1:])


@pytest.mark.cpu_only
def test_pes_have_the_rows_that_a_partition_gives_them(poisson: sp.csr_array) -> None:
    with Solver(poisson, partition=STRIPES) as solver:
        assert solver.plan["rows"] == [134, 133, 133]
        result = solver.solve(np.ones(400), rtol=1e-9)
    assert result.converged
    assert "given partition: every PE has rows" in result.why


@pytest.mark.cpu_only
def test_the_partition_of_metis_given_back_has_the_same_bits(poisson: sp.csr_array) -> None:
    part = metis_parts(as_csr(poisson), 3, pytest.importorskip("pymetis"))
    b = np.sin(np.arange(400.0))
    given = cpufree.solve(poisson, b, partition=part.tolist(), pes=3)
    assert given.x.tobytes() == cpufree.solve(poisson, b, partition="metis", pes=3).x.tobytes()


@pytest.mark.cpu_only
def test_a_pe_may_have_no_rows(poisson: sp.csr_array) -> None:
    result = cpufree.solve(poisson, np.ones(400), partition=2 * (STRIPES % 2), pes=4)
    assert (result.pes, result.converged) == (4, True)
    assert "2 of 4 PEs have no rows" in result.why


@pytest.mark.cpu_only
def test_more_parts_than_pes_are_refused(poisson: sp.csr_array) -> None:
    with pytest.raises(InvalidInputError, match="part 2, but for 2 PEs parts are 0 to 1"):
        Solver(poisson, partition=STRIPES, pes=2)


@pytest.mark.cpu_only
def test_a_solver_keeps_the_partition_that_it_was_given(poisson: sp.csr_array) -> None:
    part = STRIPES.astype(np.int32)
    b = np.ones(400)
    with Solver(poisson, partition=part) as solver:
        expected = solver.solve(b).x.tobytes()
        part[:] = 0
        solver.update(poisson)
        assert solver.solve(b).x.tobytes() == expected


def test_ranks_take_the_rows_that_a_partition_gives_them(place: str) -> None:
    ended = team("given_partition", place, ranks=2)
    assert [end.out for end in ended] == ["its rows\n"] * 2, ended


def test_ranks_with_other_partitions_are_told_apart(poisson: sp.csr_array) -> None:
    told: list[object] = []
    members = SimpleNamespace(agree=lambda what, facts: told.append(facts["partition and order"]))
    prepared, other = prepare(as_csr(poisson), None, None), np.zeros(5000, np.int32)
    other[2500] = 1  # in the middle, which texts of arrays leave out
    for part in (other, 0 * other, 0 * other):
        agree_on_matrix(members, prepared, (part, "auto"))
    assert told[0] != told[1] == told[2]


# -- files --


@pytest.mark.parametrize("name", ["A.mtx.part.3", "part.npy"])
def test_a_partition_comes_back_from_its_file(tmp_path: Path, name: str) -> None:
    save_partition(tmp_path / name, STRIPES)
    found = load_partition(tmp_path / name, 3)
    assert found.dtype == np.int32
    assert found.tolist() == STRIPES.tolist()


def test_the_text_has_one_part_number_a_line(tmp_path: Path) -> None:
    save_partition(tmp_path / "a.part.3", np.array([2, 0, 1]))
    assert (tmp_path / "a.part.3").read_bytes() == b"2\n0\n1\n"


def test_blank_lines_and_line_ends_of_dos_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"0\r\n 1\r\n\r\n+2\r\n")
    assert load_partition(tmp_path / "a.part").tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("0\n1\nx\n", "line 3: 'x' is not a part number"),
        ("0\n\n1.0\n", "line 3: '1.0' is not a part number"),
        ("0\n1e0\n", "line 2: '1e0' is not a part number"),
        ("0 1 1\n", "line 1: 3 words"),
        ("0\n1 1\n", "line 2: 2 words"),
        ("# parts\n0\n", "line 1: 2 words"),
        ("0\n\n1\n3\n", "line 4: part 3, but for 3 PEs parts are 0 to 2"),
        ("0\n-1\n", "line 2: part -1"),
        ("1\n2\n3\n", "line 3: part 3, .*numbered from 1"),
        (f"0\n{10**30}\n", "line 2: '10+' is not a part number"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "A.part.3"
    file.write_text(text)
    with pytest.raises(FileFormatError, match=rf"A\.part\.3: {complaint}"):
        load_partition(file, 3)


def test_an_array_of_other_numbers_is_refused_with_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.zeros(4))
    with pytest.raises(FileFormatError, match=r"p\.npy has shape \(4,\) and dtype float64"):
        load_partition(tmp_path / "p.npy")


# -- the command line --


@pytest.mark.cpu_only
def test_solve_takes_the_partition_that_info_has_saved(run: Run, tmp_path: Path) -> None:
    file, report = tmp_path / "A.part.3", tmp_path / "report.json"
    told = run("info", POISSON, "--pes", 3, "--partition", "metis", "--save-partition", file)
    assert told.code == 0, told
    assert f"partition in {file}" in told.out.replace("\n", "")
    ended = run("solve", POISSON, "--partition", file, "--json", report, "-q")
    assert ended.code == 0, ended
    facts = json.loads(report.read_text())
    assert facts["pes"] == 3
    assert "given partition" in str(facts["why"])


def test_info_shows_what_a_partition_in_a_file_costs(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", STRIPES)
    facts = json.loads(run("info", POISSON, "--partition", tmp_path / "p.npy", "--json", "-").out)
    assert facts["partition"]["method"] == "given"
    assert facts["partition"]["rows"] == [134, 133, 133]


def test_solve_names_the_line_of_a_part_that_no_pe_has(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "A.part.3"
    save_partition(file, STRIPES)
    ended = run("solve", POISSON, "--pes", 2, "--partition", file)
    assert ended.code == 3
    assert "line 3: part 2, but for 2 PEs parts are 0 to 1" in " ".join(ended.err.split())


def test_solve_tells_of_a_partition_that_is_not_there(run: Run) -> None:
    ended = run("solve", POISSON, "--partition", "metris")
    assert ended.code == 3
    assert "--partition metris: no such file, and none of auto, metis, contiguous" in ended.err


def test_solve_does_not_write_over_its_partition(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", STRIPES)
    ended = run("solve", POISSON, "--partition", tmp_path / "p.npy", "--out", tmp_path / "p.npy")
    assert ended.code == 3
    assert np.load(tmp_path / "p.npy").tolist() == STRIPES.tolist()


def test_ranks_read_a_partition_each(tmp_path: Path) -> None:
    file, report = tmp_path / "A.part.3", tmp_path / "report.json"
    save_partition(file, STRIPES)
    words = ("solve", POISSON, "--engine", "cpu_processes", "--blocks", "1", "--no-check")
    ended = launched(*words, "--partition", str(file), "--json", str(report))
    assert ended.code == 0, ended
    assert "given partition" in str(json.loads(report.read_text())["why"])


def test_own_rows_are_not_partitioned() -> None:
    around = DistributedInputOptions(team_of(), "auto", None, (None,), partition="A.part.3")
    with pytest.raises(InvalidInputError, match=r"has as a whole.*or use --input whole"):
        choose_rows(POISSON, "rows", around)
    assert choose_rows("gen:poisson1d?n=9000000", "auto", around) is None


@pytest.mark.timeout(600)
def test_text_without_line_ends_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    with open(tmp_path / "a.part", "wb") as file:
        file.truncate(3 << 30)  # a hole: takes no room on the disk
    with pytest.raises(FileFormatError, match="line 1: longer than 1048576 characters"):
        load_partition(tmp_path / "a.part")
