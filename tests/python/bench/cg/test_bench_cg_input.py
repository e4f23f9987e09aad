"""`cpufree bench cg`: which files and words it takes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench_cases import SMALL, Run, of_kind

from cpufree.bench import commands
from cpufree.bench.cg.problems import cases
from cpufree.bench.core import processes
from cpufree.cli import app as cli
from cpufree.errors import NotEnoughGpusError

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.skipif(not processes.PROC.is_dir(), reason="needs /proc"),
]


def test_file_of_a_user_is_measured_under_its_name(run: Run, tmp_path: Path) -> None:
    import scipy.sparse as sp

    from cpufree import save_matrix

    save_matrix(tmp_path / "mine.mtx", sp.csr_array(np.diag([1.0, 2.0, 4.0])))
    _, lines = run(str(tmp_path / "mine.mtx"), "--methods", "cg", "--repeats", "1", peers=("good",))
    assert {x["case"] for x in of_kind(lines, "measurement")} == {"mine"}


def save_diagonals(folder: Path, **diagonals: list[float]) -> None:
    """Write small matrices as Matrix Market files, of which a name may say more."""
    import scipy.sparse as sp

    from cpufree import save_matrix

    folder.mkdir(exist_ok=True)
    for name, diagonal in diagonals.items():
        save_matrix(folder / f"{name}.mtx.gz", sp.csr_array(np.diag(diagonal)))


def test_matrix_files_of_a_folder_are_measured_and_nothing_else_of_it(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "matrices"
    save_diagonals(folder, b=[1.0, 2.0, 4.0], a=[3.0, 3.0])
    (folder / "index.csv").write_text("name,rows\n")
    words = ["--contenders", "cpufree", "--methods", "cg", "--repeats", "1"]
    code, lines = run(f"files:{folder}", *words)
    assert code == 0
    assert [(x["case"], x["distinct"]) for x in of_kind(lines, "problem")] == [("a", 1), ("b", 3)]
    assert [x["zeros"] for x in of_kind(lines, "problem")] == [0, 0]


def test_pattern_finds_matrix_files_in_folders(tmp_path: Path) -> None:
    save_diagonals(tmp_path / "one", a=[1.0])
    save_diagonals(tmp_path / "two", b=[1.0])
    found = cases([f"files:{tmp_path}/**/*.mtx.gz"])
    assert [case.name for case in found] == ["a", "b"]


def test_matrix_that_cannot_be_solved_is_recorded_and_the_others_go_on(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "matrices"
    save_diagonals(folder, a=[1.0, -1.0], c=[2.0, 1.0])
    (folder / "b.mtx").write_text("not a matrix\n")
    words = ["--contenders", "cpufree,scipy", "--methods", "cg", "--repeats", "1"]
    code, lines = run(f"files:{folder}", *words)
    assert code == 0
    assert {x["case"] for x in of_kind(lines, "measurement")} == {"c"}
    why = {(x["case"], x["contender"]): x["error"] for x in of_kind(lines, "failure")}
    assert why.keys() == {(case, name) for case in "ab" for name in ("cpufree", "scipy")}
    assert "a.mtx.gz" in why["a", "cpufree"] and "diagonal" in why["a", "cpufree"]
    assert "b.mtx" in why["b", "scipy"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["no-such.mtx"], 3, "there is no matrix file 'no-such.mtx'"),
        (["heart"], 3, "for the suite write suite:heart"),
        (["poisson2d?nx=3"], 3, "for the generator write gen:poisson2d?nx=3"),
        (["suite:paper19"], 3, "the suites are paper18"),
        (["suite:paper18/"], 3, "suite paper18 has no matrix '': it has"),
        (["suite:paper18/Flan"], 3, "suite paper18 has no matrix 'Flan': it has Queen_4147-like"),
        (["files:/no/such/folder"], 3, "files:/no/such/folder finds no matrix files"),
        (["suite:structured", "suite:paper18"], 3, "suites that share names"),
        (["."], 3, "for all matrix files of the folder write files:."),
        ([SMALL, SMALL], 3, "is there twice"),
        ([SMALL, "--contenders", "cupfree"], 3, "no contender 'cupfree'"),
        ([SMALL, "--contenders", "nccl"], 4, "contender 'nccl' is not available"),
        ([SMALL, "--methods", "cg,bicg"], 2, "'bicg': choose from cg, prcg, pipecg"),
        ([SMALL, "--methods", "cg,cg"], 2, "'cg' is there twice"),
        ([SMALL, "--methods", ""], 2, "has an empty place"),
        ([SMALL, "--pes", "1,x"], 2, "'x': give numbers"),
        ([SMALL, "--engine", "auto,cuda_p2p"], 2, "choose from auto, cuda_p2p, cpu_threads"),
        ([SMALL, "--partition", "scotch"], 2, "choose from auto, metis, contiguous"),
        ([SMALL, "--iterations", "5", "--rtol", "1e-3"], 2, "not both"),
        ([SMALL, "--peer", "petsc"], 3, "give NAME=COMMAND"),
        ([SMALL, "--tuning", "cpufree"], 2, "give NAME.KEY=VALUE"),
        (
            [SMALL, "--tuning", "nccl.threads=2", "--contenders", "scipy"],
            2,
            "'nccl' is not measured",
        ),
        ([SMALL, "--tuning", "cpufree.treads=2"], 2, "did you mean threads?"),
        ([SMALL, "--variant", "no-comm", "--rtol", "1e-3"], 2, "give --iterations"),
        ([SMALL, "--gpus", "0", "--engine", "cpu_threads"], 2, "cpu_threads uses none"),
        ([SMALL, "--gpus", "0"], 4, "cannot be used here"),
        ([SMALL, "--out", "/no/such/folder/a.jsonl"], 3, "there is no directory"),
        ([SMALL, "--out", "/proc/cpufree.jsonl"], 3, "cannot write '/proc/cpufree.jsonl'"),
        ([SMALL, "--out", "."], 3, "cannot write '.': it is a directory"),
    ],
)
def test_wrong_words_are_told(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    told: str,
) -> None:
    monkeypatch.setattr("cpufree._core.gpus", lambda: [])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "cg", *words])
    assert ended.value.code == code
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "preset", "expected"),
    [
        (("auto", "auto"), {}, (0, 1, 2)),
        (("auto", "1,2"), {}, (1, 2)),
        (("auto", "auto"), {"CPUFREE_GPUS": "2"}, (2,)),
        (("cuda_p2p", "auto"), {"CPUFREE_GPUS": "2"}, (2,)),
        (("auto", "0"), {"CPUFREE_ENGINE": "cpu_threads"}, (0,)),
        (("auto", "auto"), {"CPUFREE_ENGINE": "cpu_threads"}, None),
        (("cpu_threads", "auto"), {"CPUFREE_GPUS": "2"}, None),
    ],
)
def test_gpus_are_those_of_the_call_before_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, str],
    preset: dict[str, str],
    expected: tuple[int, ...] | None,
) -> None:
    gpu = {"name": "H200", "memory_bytes": 2**37, "compute_capability": (9, 0)}
    monkeypatch.setattr("cpufree._core.gpus", lambda: [{**gpu, "index": k} for k in range(3)])
    for name in ("CPUFREE_ENGINE", "CPUFREE_GPUS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in preset.items():
        monkeypatch.setenv(name, value)
    assert commands.find_gpus(*words) == expected
    assert commands.parse_pes("auto", expected) == ((1, 2) if len(expected or ()) > 1 else (1,))


def test_more_pes_than_gpus_are_refused() -> None:
    with pytest.raises(NotEnoughGpusError, match="--pes 4: 3 GPUs can be used here"):
        commands.parse_pes("1,4", (0, 1, 2))
