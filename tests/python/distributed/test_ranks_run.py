"""Solves in several processes: the launcher, results, and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from ranks_here import (
    LIMIT,
    PATIENCE,
    PROGRAM,
    SMALL,
    children,
    clean,
    cli,
    finish,
    launched,
    start,
    wait_until,
    wait_until_at_work,
)

from cpufree.distributed.launch import program


def test_run_solves_in_processes_and_rank_0_alone_reports(tmp_path: Path) -> None:
    ended = launched("solve", SMALL, "--out", str(tmp_path / "x.npy"))
    assert ended.code == 0
    assert ended.out.count("Converged after") == 1
    assert "cpu_processes: 3 PEs × 1 block" in ended.out
    assert (tmp_path / "x.npy").exists()


def test_ranks_write_one_file_together_where_nobody_needs_all_of_x(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.npy", tmp_path / "parts.NPY"
    (tmp_path / "parts.NPY.part").symlink_to(tmp_path / "victim")
    assert launched("solve", SMALL, "--out", str(whole)).code == 0
    ended = launched("solve", SMALL, "--no-check", "--out", str(parts))
    assert ended.code == 0, ended
    assert "written by 3 ranks" in ended.out
    assert np.load(parts).tobytes() == np.load(whole).tobytes()
    assert not (tmp_path / "victim").exists()
    assert not list(tmp_path.glob(".*"))


def test_run_gives_the_exit_code_of_the_solve() -> None:
    assert launched("solve", SMALL, "--maxiter", "2", "-q").code == 10


def test_files_of_a_user_are_not_taken_for_modules_of_python(tmp_path: Path) -> None:
    for name in ("csv.py", "random.py", "cpufree.py"):
        (tmp_path / name).write_text("raise RuntimeError('mine')\n")
    command = program(["solve", SMALL, "-q"], ["solve"])
    ended = subprocess.run(command, cwd=tmp_path, env=clean(), capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_run_tells_once_what_is_wrong_with_an_option() -> None:
    ended = launched("solve", SMALL, "--rtol", "-1")
    assert ended.code == 2
    assert ended.err.count("--rtol is '-1'") == 1


def test_run_tells_once_of_a_file_that_is_not_there() -> None:
    ended = launched("solve", "nowhere.mtx")
    assert ended.code == 3
    assert ended.err.count("cpufree: error:") == 1
    assert "nowhere.mtx: no such file" in ended.err


def test_run_tells_of_a_matrix_that_cannot_be_solved_by_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "A.mtx"
    file.write_text("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2\n1 2 1\n2 2 2\n")
    ended = launched("solve", str(file))
    assert ended.code == 3, ended
    assert ended.err.count("cpufree: error:") == 1


def test_run_refuses_commands_of_one_process() -> None:
    ended = launched("info", SMALL)
    assert ended.code == 2
    assert "works in one process" in ended.err


def test_run_tells_of_a_program_that_cannot_be_started() -> None:
    ended = launched("/no/such/program")
    assert ended.code == 4
    assert "rank 0 cannot be started" in ended.err


def test_run_starts_any_program() -> None:
    ended = launched(sys.executable, str(PROGRAM), "talk")
    assert (ended.code, ended.out) == (0, "talked\n" * 3)


def test_an_engine_of_one_process_keeps_ranks_apart(place: str) -> None:
    words = cli(["solve", SMALL, "--engine", "cpu_threads"])
    ended = finish([start(words, rank, 2, place) for rank in range(2)])
    assert [end.out.count("Converged after") for end in ended] == [1, 1]


def test_commands_with_different_options_end_with_one_message(place: str) -> None:
    ended = finish(
        [start(cli(["solve", SMALL, "--rtol", f"1e-{3 + k}"]), k, 2, place) for k in range(2)]
    )
    assert [end.code for end in ended] == [4, 4]
    said = "".join(end.err for end in ended)
    assert said.count("cpufree: error:") == 1
    assert "rank 1 has another option rtol than rank 0" in said


def test_a_rank_killed_in_mid_solve_ends_all_with_one_message(place: str) -> None:
    words = cli(["solve", "gen:poisson1d?n=400000", "--rtol", "1e-10", "--pc", "none"])
    processes = [start(words, rank, 3, place) for rank in range(3)]
    wait_until_at_work(lambda: [process.pid for process in processes], 3)
    assert all(process.poll() is None for process in processes)
    processes[1].kill()
    ended = finish(processes)
    assert [end.code for end in ended] == [4, -9, 4]
    said = "".join(end.err for end in ended)
    assert said.count("cpufree: error:") == 1
    assert "rank 1 (" in said


def test_ctrl_c_ends_all_ranks_and_keeps_the_x_so_far(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    words = [
        "solve",
        "gen:poisson1d?n=400000",
        "--rtol",
        "1e-10",
        "--pc",
        "none",
        "--out",
        str(file),
    ]
    environment = clean() | {"CPUFREE_JOIN_LIMIT": LIMIT}
    launcher = subprocess.Popen(
        [sys.executable, *cli(["run", "-n", "2", *words])],
        env=environment,
        start_new_session=True,  # so that the signal reaches it and its ranks, as from a terminal
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_at_work(lambda: children(launcher.pid), 2)
    os.killpg(launcher.pid, signal.SIGINT)
    _, said = launcher.communicate(timeout=PATIENCE)
    assert launcher.returncode == 130, said
    assert file.exists()


def test_run_leaves_no_process_behind_when_it_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    program = (
        f"import os, time; open({str(file)!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(600)"
    )
    words = cli(["run", "-n", "2", sys.executable, "-c", program])
    launcher = start(words, 0, 1, "", CPUFREE_RANK="")
    wait_until(lambda: file.exists() and len(file.read_text().splitlines()) == 2)
    launcher.kill()
    launcher.wait()
    pids = [int(line) for line in file.read_text().splitlines()]
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
