"""The commands beside `cpufree solve`: what they print and write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_runner import Run, runner
from ranks_here import launched

from cpufree import __main__


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


def test_info_describes_matrix_and_partition(run: Run) -> None:
    ended = run("info", "gen:poisson2d?nx=20,ny=30", "--pes", 4)
    assert ended.code == 0
    text = " ".join(ended.out.split())
    assert "rows 600" in text
    assert "nonzeros 2 900" in text
    assert "3 least, 4.8 mean, 5 most" in text
    assert "diagonal 4 to 4" in text
    assert "dominant rows 100.0%" in text
    assert "Accepted: finite, symmetric, and the diagonal is positive." in text
    assert "Whether it is positive definite was not checked" in text
    for word in ("edge cut", "halo volume", "imbalance", "neighbours"):
        assert word in text


def test_info_json_holds_facts_and_partition(run: Run) -> None:
    facts = json.loads(run("info", "gen:poisson1d?n=100", "--pes", 2, "--json", "-").out)
    assert (facts["rows"], facts["nnz"], facts["bandwidth"]) == (100, 298, 1)
    assert facts["rejected"] is None
    assert sum(facts["partition"]["rows"]) == 100
    assert (facts["partition"]["edge_cut"], facts["partition"]["halo_values"]) == (1, 2)


def test_info_takes_as_many_pes_as_solve(run: Run) -> None:
    ended = run("info", "gen:poisson1d?n=9", "--pes", 10**11)
    assert ended.code == 2
    assert "--pes" in ended.err


def test_info_tells_why_solve_would_refuse(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "A.npz"
    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(np.array([[1.0, 2.0], [3.0, 4.0]])))
    ended = run("info", path, "--json", tmp_path / "facts.json")
    assert ended.code == 3
    assert "Refused by solve:" in ended.out
    assert json.loads((tmp_path / "facts.json").read_text())["rejected"]


def test_generate_lists_generators_with_what_they_are(run: Run) -> None:
    ended = run("generate", "--list")
    assert ended.code == 0
    for name in ("poisson2d", "flange_hex", "heart"):
        assert re.search(rf"^ *{name} +\w+", ended.out, re.M), name


def test_generate_describes_parameters(run: Run) -> None:
    out = run("generate", "flange_hex", "--describe").out
    assert "r_out" in out
    assert "pipe" in out


def test_generate_writes_matrix_with_numbers(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "A.npz"
    ended = run("generate", "poisson1d?n=50", "--out", path)
    assert "50 rows, 148 nonzeros" in ended.out
    matrix = scipy.sparse.load_npz(path)
    assert matrix.shape == (50, 50)
    assert matrix.nnz == 148


def test_suite_lists_entries_with_what_they_imitate(run: Run) -> None:
    ended = run("suite", "paper18-small")
    assert ended.code == 0
    assert "imitates" in ended.out
    assert len(ended.out.splitlines()) >= 18


def test_doctor_is_healthy_here_and_prints_engines(run: Run) -> None:
    ended = run("doctor")
    assert ended.code == 0, ended.out
    assert "cpu_threads" in ended.out
    assert "error" in ended.out  # of the self test


def test_doctor_json_is_only_json(run: Run) -> None:
    sections = json.loads(run("doctor", "--json", "-").out)
    assert set(sections) == {"machine", "gpus", "engines", "versions"}


def test_version_is_that_of_the_package(run: Run) -> None:
    from importlib.metadata import version

    for flag in ("--version", "-V"):
        assert run(flag).out == f"cpufree {version('cpufree')}\n"


def test_completion_can_be_installed_and_offers_choices(run: Run) -> None:
    assert "--install-completion" in run("--help").out
    program = "from cpufree.__main__ import main; main()"
    asked = {"_CPUFREE_COMPLETE": "complete_bash", "COMP_WORDS": "cpufree solve A --method p"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked, "COMP_CWORD": "4"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["prcg", "pipecg"], done.stderr


def test_doctor_of_several_processes_prints_once() -> None:
    ended = [launched("doctor", ranks=2), launched("doctor", "--distributed", ranks=2)]
    for one in ended:
        assert one.code == 0, one
        assert one.out.count("Machine") == 1


@pytest.mark.parametrize("command", ["solve", "info", "convert", "generate", "suite"])
def test_help_shows_examples(run: Run, command: str) -> None:
    ended = run(command, "--help")
    assert ended.code == 0
    assert re.search(rf"Examples?\s+cpufree {command}", ended.out)


def test_ctrl_c_while_the_command_line_loads_ends_it_with_130(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted:
        def find_spec(self, *_: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "cpufree.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupted()])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 130


def test_help_does_not_load_numpy_heavy_parts() -> None:
    program = (
        "import sys, cpufree.cli.app\n"
        "heavy = {'matplotlib', 'scipy.sparse', 'pymetis', 'cpufree._core'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
