"""The hub and those who knock: ranks, and strangers of all kinds."""

from __future__ import annotations

import json
import resource
import socket
import struct
import threading
import time
from typing import Any

import pytest
from hub_here import KEY, connect, hello, hub, member, members
from ranks_here import PATIENCE, PROGRAM, finish, start, wait_until

from cpufree.distributed import facts, handshake, places, wire
from cpufree.distributed.team import Team
from cpufree.env import RankEnv

OTHER = handshake.key_for(b"another secret", "job")
ESCAPE = "\x1b[2J\x1b]0;mine\x07 done\r\u202e"


def hung_up(connection: socket.socket) -> bool:
    """Return whether the other side ends the connection, with nothing said or a reset."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def still_meets(place: tuple[str, int]) -> None:
    """Check that both ranks of a hub come as if nothing had been."""
    with member(place, hello(0, 2)) as first, member(place, hello(1, 2)) as second:
        for one in (first, second):
            assert wire.receive(one)[0]["do"] == "begin"


# -- strangers --


def test_who_does_not_know_the_secret_does_not_come_in() -> None:
    with hub(2) as (_, place):
        with connect(place) as stranger, pytest.raises(ConnectionError, match="not of this job"):
            handshake.enter(stranger, OTHER, hello(1, 2), PATIENCE)
        still_meets(place)


def test_who_knows_the_secret_of_another_job_does_not_come_in() -> None:
    other_job = handshake.key_for(b"the secret of the tests", "other job")
    with hub(2) as (_, place), connect(place) as stranger, pytest.raises(ConnectionError):
        handshake.enter(stranger, other_job, hello(1, 2), PATIENCE)


def recorded(place: tuple[str, int]) -> dict[str, Any]:
    """Return the hello of a rank that has come in, as a listener has it."""
    with connect(place) as connection:
        heard: list[dict[str, Any]] = []
        send = wire.send
        try:
            wire.send = lambda to, said, data=b"": (heard.append(said), send(to, said, data))[1]  # type: ignore[assignment]
            handshake.enter(connection, KEY, hello(1, 2), PATIENCE)
        finally:
            wire.send = send
    return next(said for said in heard if said["do"] == "hello")


def test_a_hello_cannot_be_said_again() -> None:
    with hub(2) as (_, place):
        said = recorded(place)
    with hub(2) as (_, place):
        with connect(place) as stranger:
            assert wire.receive_first(stranger)["do"] == "challenge"
            wire.send(stranger, said)
            stranger.settimeout(PATIENCE)
            assert hung_up(stranger)
        still_meets(place)


def reflect(listener: socket.socket) -> None:
    """Play a hub that knows no secret, and gives back the proof that it gets."""
    there, _ = listener.accept()
    with there:
        wire.send(there, {"do": "challenge", "nonce": "00"})
        wire.send(there, wire.receive_first(there, PATIENCE) | {"do": "welcome"})
        hung_up(there)


def test_a_hub_that_does_not_know_the_secret_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stranger = threading.Thread(target=reflect, args=(listener,))
        stranger.start()
        with (
            connect(listener.getsockname()) as rank,
            pytest.raises(wire.Damaged, match="does not know the secret"),
        ):
            handshake.enter(rank, KEY, hello(1, 2), PATIENCE)
        stranger.join()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100,
        struct.pack("!4sIQ", b"cpfr", 2**32 - 1, 0),
        struct.pack("!4sIQ", b"cpfr", 2, 2**63) + b"{}",
        struct.pack("!4sIQ", b"cpfr", 4096, 0) + b"[" * 4096,
        struct.pack("!4sIQ", b"cpfr", 2, 0) + b"{}",
    ],
    ids=["http", "many facts", "much data", "deep", "empty"],
)
def test_what_makes_no_sense_ends_its_connection_alone(sent: bytes) -> None:
    with hub(2) as (_, place):
        with connect(place) as stranger:
            assert wire.receive_first(stranger)["do"] == "challenge"
            stranger.settimeout(PATIENCE)
            stranger.sendall(sent)
            assert hung_up(stranger)
        still_meets(place)


def test_who_hangs_up_at_once_does_no_harm() -> None:
    with hub(2) as (_, place):
        for _ in range(20):
            connect(place).close()
        still_meets(place)


def test_who_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(2) as (_, place):
        with connect(place) as stranger, monkeypatch.context() as patch:
            patch.setattr(wire.receive_first, "__defaults__", (0.2,))
            assert wire.receive_first(stranger, PATIENCE)["do"] == "challenge"
            stranger.settimeout(PATIENCE)
            assert hung_up(stranger)
        still_meets(place)


def test_many_who_say_nothing_do_not_have_a_thread_each() -> None:
    with hub(2) as (server, place):
        crowd = [connect(place) for _ in range(80)]
        wait_until(lambda: server._knocking._value == 0)
        assert hung_up(crowd[-1])
        for stranger in crowd:
            stranger.close()
        wait_until(lambda: server._knocking._value >= 60)
        still_meets(place)


def test_a_stranger_at_a_meeting_of_ranks_does_no_harm(place: str) -> None:
    first = start([str(PROGRAM), "talk"], 0, 2, place)
    host, _, port = place.rpartition(":")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            stranger = socket.create_connection((host, int(port)))
            break
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100)
    second = start([str(PROGRAM), "talk"], 1, 2, place)
    assert [end.code for end in finish([first, second])] == [0, 0]
    stranger.close()


# -- what members send --


def test_a_length_alone_takes_no_memory() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(struct.pack("!4sIQ", b"cpfr", 2, 2**39) + b"{}" + b"x" * 1000)
        there.shutdown(socket.SHUT_WR)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ConnectionError):
            wire.receive(here)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 16  # KiB


def test_a_length_beyond_all_memory_is_no_message() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(struct.pack("!4sIQ", b"cpfr", 2, 2**41) + b"{}")
        with pytest.raises(wire.Damaged):
            wire.receive(here)


def test_escape_codes_and_exit_codes_of_a_member_reach_nobody() -> None:
    with members(2) as (_, (first, second)):
        said = {"do": "fail", "about": 99, "message": f"rank 1: {ESCAPE}", "code": 0}
        wire.send(second, said)
        verdict, _ = wire.receive(first)
    assert verdict["message"] == "rank 1: ?[2J?]0;mine? done ?"
    assert (verdict["rank"], verdict["code"]) == (1, 4)


def test_escape_codes_of_a_hub_reach_nobody() -> None:
    here, there = socket.socketpair()
    with here, there:
        team = Team(here, 1, 2, None)
        wire.send(there, {"do": "end", "rank": 0, "message": ESCAPE, "code": -1, "teller": 9})
        assert team._judged.wait(PATIENCE)
    assert team._verdict is not None
    assert team._verdict.message == "?[2J?]0;mine? done ?"
    assert (team._verdict.code, team._verdict.teller) == (4, -1)


def test_names_of_hosts_are_shown_without_escape_codes() -> None:
    with hub(1) as (_, place), member(place, hello(0, 1, host=ESCAPE)) as only:
        assert wire.receive(only)[0]["members"][0]["host"] == "?[2J?]0;mine? done ?"


@pytest.mark.parametrize(
    ("name", "value"), [("rank", True), ("rank", 2), ("pid", "1"), ("host", None), ("version", 1)]
)
def test_a_rank_that_says_nonsense_of_itself_is_none(name: str, value: Any) -> None:
    with pytest.raises(wire.Damaged):
        facts.member(hello(1, 2) | {name: value})


def test_parts_that_are_not_the_data_end_the_member() -> None:
    with members(2) as (_, (first, second)):
        called = {"do": "call", "what": "round", "to": "all", "sizes": [2**62]}
        wire.send(second, called, b"few")
        assert wire.receive(first)[0]["rank"] == 1


@pytest.mark.parametrize(
    ("code", "kept"), [(3, 3), (255, 255), (0, 4), (256, 4), (-9, 4), ("3", 4), (True, 4)]
)
def test_an_exit_code_of_a_failure_tells_of_one(code: object, kept: int) -> None:
    assert facts.exit_code(code) == kept


def test_a_long_message_is_cut() -> None:
    assert len(facts.clean("word " * 10_000)) == 4000


@pytest.mark.parametrize(
    ("said", "data"), [({}, b"x"), ({"job": "j" * 5000}, b"")], ids=["data", "large"]
)
def test_a_first_message_is_small(said: dict[str, str], data: bytes) -> None:
    here, there = socket.socketpair()
    with here, there:
        wire.send(there, said, data)
        with pytest.raises(wire.Damaged):
            wire.receive_first(here)


def test_a_first_message_that_does_not_come_is_not_waited_for() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"cpfr")
        with pytest.raises(TimeoutError):
            wire.receive_first(here, 0.1)


# -- ranks --


def test_a_rank_that_has_given_a_knock_up_may_knock_again() -> None:
    with hub(1) as (server, place):
        with connect(place) as slow:
            assert wire.receive_first(slow)["do"] == "challenge"
        with member(place, hello(0, 1)) as only:
            assert wire.receive(only)[0]["do"] == "begin"
            wire.send(only, {"do": "leave"})
            server.wait(PATIENCE)


def test_a_hub_ends_with_its_rank_0_where_the_others_have_not_come() -> None:
    with hub(2) as (server, place), member(place, hello(0, 2)) as first:
        wire.send(first, {"do": "leave"})
        server.wait(PATIENCE / 3)
        assert not server._thread.is_alive()


def test_rank_0_comes_after_a_rank_that_does_not_fit_and_tells_why() -> None:
    with hub(2) as (server, place):
        for rank, version in (1, "0"), (0, "1"):
            with member(place, hello(rank, 2, version=version)) as one:
                verdict, _ = wire.receive(one)
                assert verdict["message"].startswith("rank 1 has cpufree 0, but rank 0 has 1")
                assert verdict["teller"] == 0
                assert one.recv(1) == b""
                if rank == 1:
                    server.wait(0.5)  # it does not end: rank 0 has not come
                    assert server._thread.is_alive()
        server.wait(PATIENCE)
        assert not server._thread.is_alive()


def test_a_secret_is_not_shown_with_what_is_known_of_a_rank() -> None:
    env = RankEnv(0, 2, None, "cpufree", "job", secret="s" * 32)
    assert "sss" not in repr(env) + repr(places.Place("host", 1, b"s" * 32))
    assert "sss" not in json.dumps(hello(0, 2))
