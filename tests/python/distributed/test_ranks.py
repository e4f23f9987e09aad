"""Teams of processes: they meet, talk, agree, and end together."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hub_here import hello, hub, member
from ranks_here import (
    LIMIT,
    PATIENCE,
    PROGRAM,
    SMALL,
    all_say,
    clean,
    cli,
    finish,
    free_port,
    start,
    team,
    wait_until,
)

import cpufree.solvers.once
from cpufree.cli import rank_commands, rank_doctor, solve_command
from cpufree.cli.commands import Outputs
from cpufree.cli.doctor import Status
from cpufree.distributed import wire
from cpufree.errors import RankFailedError
from cpufree.solvers.result import Reason


def test_members_exchange_bytes_arrays_and_facts(place: str) -> None:
    assert [end.out for end in team("talk", place)] == ["talked\n"] * 3


def test_members_meet_through_a_shared_file(tmp_path: Path) -> None:
    file = tmp_path / "meet"
    file.write_text('{"job": "left over", "machine": "", "host": "127.0.0.1", "port": 1}')
    assert [end.code for end in team("talk", f"file:{file}")] == [0, 0, 0]
    assert not file.exists()


def variables(launcher: str, rank: int) -> dict[str, str]:
    """Return what a launcher says to one of two ranks of this machine."""
    me, job = str(rank), str(os.getpid())
    return {
        "Open MPI": {
            "OMPI_COMM_WORLD_RANK": me,
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": me,
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            "PMIX_NAMESPACE": job,
        },
        "torchrun": {
            "RANK": me,
            "WORLD_SIZE": "2",
            "LOCAL_RANK": me,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            "TORCHELASTIC_RUN_ID": job,
        },
        "Slurm": {
            "SLURM_PROCID": me,
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_LOCALID": me,
            "SLURM_JOB_ID": job,
            "SLURM_STEP_ID": "0",
            "SLURM_STEP_NODELIST": "127.0.0.1",
        },
        "PMI": {"PMI_RANK": me, "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": me},
    }[launcher]


@pytest.mark.parametrize("launcher", ["Open MPI", "torchrun", "Slurm", "PMI"])
def test_ranks_of_every_launcher_meet(launcher: str) -> None:
    words = [str(PROGRAM), "talk"]
    ended = finish(
        [
            start(words, k, 2, "", CPUFREE_RANK="", CPUFREE_RANKS="", **variables(launcher, k))
            for k in range(2)
        ]
    )
    assert [end.out for end in ended] == ["talked\n"] * 2, ended


def test_rank_0_is_found_at_another_address_than_its_own() -> None:
    # As on another machine: it listens at all of its addresses.
    assert [end.code for end in team("talk", f"127.0.0.2:{free_port()}")] == [0, 0, 0]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_the_command_line_works_under_mpirun() -> None:
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    ended = subprocess.run(
        [*command, sys.executable, *cli(["solve", SMALL])],
        env=clean() | {"CPUFREE_JOIN_LIMIT": LIMIT, "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Converged after") == 1
    assert "cpu_processes: 2 PEs, one in each process" in ended.stdout


def test_two_teams_at_ports_of_their_own_do_not_mix() -> None:
    # Both are told nothing but a name: they look at the same kind of places.
    jobs = [
        start([str(PROGRAM), "talk"], rank, 2, "", PMI_RANK=str(rank), PMI_SIZE="2",
              MPI_LOCALNRANKS="2", CPUFREE_RANK="", CPUFREE_JOB=job)
        for job in (f"first-{os.getpid()}", f"second-{os.getpid()}")
        for rank in range(2)
    ]  # fmt: skip
    assert [end.out for end in finish(jobs)] == ["talked\n"] * 4


def test_a_rank_that_never_comes_is_named(place: str) -> None:
    ended = finish([start([str(PROGRAM), "talk"], 0, 2, place, CPUFREE_JOIN_LIMIT="5")])
    all_say(ended, "rank 1 has not come within 5 s", [0])


def test_a_rank_that_never_comes_is_told_to_all_that_have_come() -> None:
    with (
        hub(3, 77.0) as (server, there),
        member(there, hello(0, 3)) as first,
        member(there, hello(2, 3)) as third,
    ):
        wait_until(lambda: len(server._members) == 2)
        server._latest = 0.0  # the time is up
        for one in (first, third):
            assert wire.receive(one)[0]["message"].startswith("rank 1 has not come within 77 s;")


def test_a_hub_that_never_comes_is_named(place: str) -> None:
    known = {"CPUFREE_SECRET": "0123456789abcdef", "CPUFREE_JOIN_LIMIT": "1"}
    ended = finish([start([str(PROGRAM), "talk"], 1, 2, place, **known)])
    all_say(ended, f"rank 0 was not found at {place} within 1 s", [0])
    all_say(ended, "Connection refused", [0])


def test_a_rank_that_is_killed_is_named_by_all_others(place: str) -> None:
    ended = team("die", place)
    assert ended[1].code == -9
    all_say(ended, "rank 1 (", [0, 2])
    all_say(ended, "has ended without a word", [0, 2])


def test_the_end_of_rank_0_is_noticed_by_all_others(place: str) -> None:
    ended = team("first_dies", place)
    assert ended[0].code == -9
    all_say(ended, "rank 0 (", [1, 2])


def test_a_process_that_no_error_reaches_is_ended(place: str) -> None:
    ended = team("hang", place)
    assert [end.code for end in ended] == [4, 1, 4]
    told = [end.err for end in ended if "cpufree: error:" in end.err]
    assert told == ["cpufree: error: rank 1: rank 1 cannot go on\n"]


def test_ranks_that_do_different_things_are_told(place: str) -> None:
    ended = team("call_another", place)
    assert any("'there', but others to 'here'" in end.out or "'here', but others to 'there'"
               in end.out for end in ended)  # fmt: skip
    assert [end.code for end in ended] == [4, 4, 4]


def test_a_rank_without_a_part_for_each_of_the_others_is_told(place: str) -> None:
    all_say(team("too_few_parts", place), "rank 1 has given 2 parts to 'parts'", [0, 1, 2])


def test_ranks_that_are_given_different_facts_are_told_which(place: str) -> None:
    all_say(
        team("disagree", place), "rank 1 has another size than rank 0, 4 instead of 3", [0, 1, 2]
    )


def test_a_rank_that_leaves_too_early_is_named(place: str) -> None:
    ended = team("leave_early", place)
    assert ended[1].code == 0
    all_say(ended, "rank 1 has left", [0, 2])


def test_ranks_of_different_numbers_are_refused(place: str) -> None:
    ended = finish([start([str(PROGRAM), "talk"], k, 2 + k, place) for k in range(2)])
    all_say(ended, "rank 1 is one of 3 ranks, but rank 0 one of 2", [0, 1])


def test_one_rank_twice_is_refused(place: str) -> None:
    ended = finish([start([str(PROGRAM), "talk"], k, 3, place) for k in (0, 1, 1)])
    all_say(ended, "rank 1 is there twice", [0])


def test_who_comes_to_a_complete_team_is_sent_away_and_the_team_goes_on(
    place: str, tmp_path: Path
) -> None:
    words = [str(PROGRAM), "stay", str(tmp_path / "end")]
    known = {"CPUFREE_SECRET": "0123456789abcdef"}
    there = [start(words, rank, 2, place, **known) for rank in range(2)]
    assert there[0].stdout is not None
    assert there[0].stdout.readline() == "here\n"
    late = finish([start(words, 1, 2, place, **known), start(words, 2, 3, place, **known)])
    (tmp_path / "end").touch()
    all_say(late[:1], "rank 1 is there twice", [0])
    all_say(late[1:], "rank 2 is one of 3 ranks, but rank 0 one of 2", [0])
    assert [end.out.split()[-1] for end in finish(there)] == ["stayed", "stayed"]


def test_ranks_of_different_versions_are_refused(place: str) -> None:
    words = "import sys, cpufree.distributed.meeting as m; m._version = lambda: '0.0.1'; "
    words += f"sys.argv = ['', 'talk']; sys.path.insert(0, {str(PROGRAM.parent)!r}); "
    words += "import rank_program; sys.exit(rank_program.main(vars(rank_program)))"
    ended = finish([start([str(PROGRAM), "talk"], 0, 2, place), start(["-c", words], 1, 2, place)])
    all_say(ended, "rank 1 has cpufree 0.0.1, but rank 0 has ", [0, 1])


def test_a_solver_works_in_several_processes(place: str) -> None:
    assert [end.out for end in team("solve", place)] == ["solved\n"] * 3


def test_different_right_hand_sides_are_refused(place: str) -> None:
    words = "rank 1 has another right-hand side than rank 0"
    all_say(team("other_vector", place), words, [0, 1, 2])


@pytest.mark.parametrize(
    ("what", "words"),
    [("bad_vector", "b has"), ("bad_matrix", "symmetric"), ("no_matrix", "nowhere.mtx")],
)
@pytest.mark.few(1)
def test_input_that_one_rank_alone_finds_wrong_ends_all(what: str, words: str, place: str) -> None:
    ended = team(what, place)
    all_say(ended, "rank 1: ", [0, 2])
    all_say(ended, words, [0, 2])


def test_a_closed_solver_knows_its_rows(place: str) -> None:
    assert [end.out for end in team("closed_rows", place)] == ["the same\n"] * 3


class FakeTeam:
    """Rank 0 of two ranks, of which a number are on this machine; the other one fails."""

    rank, size = 0, 2

    def __init__(self, size_here: int) -> None:
        self.size_here = size_here

    def tell_all(self, what: str, facts: dict[str, str]) -> list[dict[str, str]]:
        """Return the facts of both."""
        return [facts, {}]

    def barrier(self, what: str) -> None:
        """Fail, as the other rank has."""
        raise RankFailedError("rank 1 was killed", 1)


def test_no_part_of_a_file_is_left_where_a_rank_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve_command.distributed, "current", lambda: FakeTeam(2))
    with pytest.raises(RankFailedError):
        path = str(tmp_path / "x.npy")
        rank_commands.write_together(path, (9,), np.arange(4), np.ones(4), "solution")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("size_here", "gathered"), [(2, False), (1, True)])
def test_ranks_of_several_machines_do_not_write_into_one_file(
    monkeypatch: pytest.MonkeyPatch, size_here: int, gathered: bool
) -> None:
    monkeypatch.setattr(solve_command.distributed, "current", lambda: FakeTeam(size_here))
    outputs = Outputs(out="x.npy", json=None, plot=None)
    work = solve_command.SolveWork("A", {"check": False}, "auto", outputs)
    assert work.wants_all(own=False) == gathered
    assert not work.wants_all(own=True)  # own rows alone are gathered nowhere


@pytest.mark.parametrize("rank", [0, 1])
def test_the_doctor_tells_of_a_solve_that_gave_nothing_but_nan(
    monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    result = SimpleNamespace(
        x=np.full(400, np.nan), converged=True, iterations=1, reason=Reason.CONVERGED_RTOL
    )
    told = [{"error": np.inf}, {"error": 0.0}]
    members = SimpleNamespace(rank=rank, size=2, given=[])

    def tell_all(what: str, facts: dict[str, float]) -> list[dict[str, float]]:
        members.given.append(facts)
        return told

    members.tell_all = tell_all
    monkeypatch.setattr(rank_commands, "choose_engine", lambda team: "cpu_processes")
    monkeypatch.setattr(cpufree.solvers.once, "solve", lambda *_, **__: result)
    assert rank_doctor.engine_finding(members).status is Status.FAILED
    assert members.given == [told[rank]]
