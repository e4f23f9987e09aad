"""Ranks that are stopped or stuck: waits for them are bounded."""

from __future__ import annotations

import re
import socket
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hub_here import members
from ranks_here import (
    PATIENCE,
    PROGRAM,
    launch_pair,
    launched,
    wait_until,
)

from cpufree.distributed import hub, launch, wire
from cpufree.distributed.hub import Hub
from cpufree.distributed.pulse import watched_by

FROZEN = PROGRAM.with_name("rank_frozen_program.py")


def call(member: socket.socket, **more: float) -> None:
    """Come to a round."""
    wire.send(member, {"do": "call", "what": "round", "to": "all", "sizes": [0], **more})


def come(server: Hub, rank: int, member: socket.socket) -> None:
    """Come to a round, and return once the hub knows that."""
    call(member)
    wait_until(lambda: server._members[rank].given is not None)


def test_a_member_that_does_not_answer_in_time_is_named() -> None:
    with members(3) as (server, (first, second, third)):
        come(server, 2, third)
        call(first, limit=0.2)
        for one in (first, second, third):
            verdict, _ = wire.receive(one)
            assert verdict["message"].startswith(
                "rank 1 (here, process 71) has not answered for 0.2 s: it may be stopped"
            )
            assert (verdict["rank"], verdict["code"], verdict["teller"]) == (1, 4, 0)


def test_all_members_that_do_not_answer_are_named() -> None:
    with members(4) as (server, every):
        come(server, 2, every[2])
        call(every[0], limit=0.2)
        assert (
            "has not answered for 0.2 s, nor have ranks 3: " in wire.receive(every[0])[0]["message"]
        )


def test_the_shortest_limit_of_a_round_counts() -> None:
    with members(3) as (server, every):
        come(server, 0, every[0])
        call(every[2], limit=0.2)
        assert "has not answered for 0.2 s" in wire.receive(every[0])[0]["message"]


def test_who_does_not_answer_is_not_the_one_to_tell_why() -> None:
    with members(2) as (_, (_, second)):
        call(second, limit=0.2)
        verdict, _ = wire.receive(second)
        assert (verdict["rank"], verdict["teller"]) == (0, 1)


def test_a_hub_does_not_wait_for_a_member_that_does_not_answer_to_leave() -> None:
    with members(2) as (server, (first, _)):
        call(first, limit=0.2)
        assert wire.receive(first)[0]["do"] == "end"
        wire.send(first, {"do": "leave"})
        server.wait(PATIENCE)
        assert not server._thread.is_alive()


def test_time_in_which_the_hub_was_stopped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    later, looks = 0.0, 0

    def monotonic() -> float:
        nonlocal looks
        looks += 1
        return time.monotonic() + later

    monkeypatch.setattr(hub, "time", SimpleNamespace(monotonic=monotonic))
    with members(2) as (_, every):
        call(every[0], limit=500.0)
        later, looks = 1000.0, 0
        wait_until(lambda: looks >= 8)  # of the hub, at its clock
        call(every[1])
        assert [wire.receive(one)[0]["do"] for one in every] == ["answer", "answer"]


@pytest.mark.parametrize(("rank", "seconds"), [(0, 1.5), (1, 0.5)])
@pytest.mark.few(1)
def test_a_stopped_rank_is_named_by_the_other_and_ended(
    tmp_path: Path, rank: int, seconds: float
) -> None:
    words = [str(FROZEN), "stop", str(rank), str(tmp_path / "works")]
    ended = launched(sys.executable, *words, ranks=2)
    assert ended.code == 4
    assert f"failed: rank {rank} (" in ended.out
    assert f"has not answered for {seconds:g} s: it may be stopped" in ended.out


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.few(1)
def test_a_stopped_rank_is_named_by_others_that_would_wait_for_long(rank: int) -> None:
    ended = launched(sys.executable, str(FROZEN), "stop_in_a_barrier", str(rank))
    assert ended.code == 4, ended
    words = f"rank {rank} ({socket.gethostname()}, process "
    assert ended.out.count(f"failed: {words}") == 2, ended
    assert "has been stopped for 2 s, by SIGSTOP or the like, while others wait" in ended.out


def test_a_rank_for_which_nobody_waits_may_be_stopped(tmp_path: Path) -> None:
    words = [str(FROZEN), "stop_where_nobody_waits", str(tmp_path / "works")]
    ended = launched(sys.executable, *words, ranks=2)
    assert (ended.code, ended.out) == (0, "met\n" * 2), ended


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.few(1)
def test_a_time_limit_ends_a_solve_in_which_a_rank_is_stopped(rank: int) -> None:
    ended = launched(sys.executable, str(FROZEN), "stop_in_a_solve", str(rank), ranks=2)
    assert ended.code == 4, ended
    assert f"failed: rank {rank} (" in ended.out
    assert "by SIGSTOP or the like, beyond the time limit" in ended.out


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.few(1)
def test_a_rank_that_is_stopped_longer_than_waits_last_is_named_as_stopped(rank: int) -> None:
    words = [str(FROZEN), "stop_in_a_solve_with_short_waits", str(rank)]
    ended = launched(sys.executable, *words, ranks=2)
    assert ended.code == 4, ended
    assert f"failed: rank {rank} (" in ended.out
    assert re.search("has been stopped for [23] s, by SIGSTOP or the like, while others", ended.out)


def test_each_rank_is_looked_at_by_another_one_of_its_machine() -> None:
    machines = ["a", "b", "a", "b", "a", "c"]
    members = [
        {"machine": name, "processes": "all", "pid": 100 + k} for k, name in enumerate(machines)
    ]
    watched = [watched_by(rank, members) for rank in range(len(members))]
    assert watched == [{2: 102}, {3: 103}, {0: 100, 4: 104}, {1: 101}, {0: 100}, {}]


def test_processes_that_other_containers_number_are_not_looked_at() -> None:
    members = [{"machine": "a", "processes": one, "pid": 7} for one in ("these", "those")]
    assert watched_by(0, members) == watched_by(1, members) == {}


STOP = "os.kill(os.getpid(), signal.SIGSTOP)"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_stopped_rank_does_not_outlive_one_that_has_failed(
    monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    monkeypatch.setattr(launch, "GRACE", 0.5)
    assert launch_pair(lambda k: STOP if k == rank else "sys.exit(3)") == 3
