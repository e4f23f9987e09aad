"""Where ranks meet: files that the user alone can read, addresses, secrets."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest
from hub_here import hub
from ranks_here import PATIENCE, free_port, team

from cpufree.distributed import meeting, places
from cpufree.env import RankEnv
from cpufree.errors import InvalidInputError, RankFailedError

SECRET = "0123456789abcdef"


def of(rank: int = 0, rendezvous: str = "", host: str = "", secret: str = "") -> RankEnv:
    """Return what is known of one of two ranks."""
    env = RankEnv(rank, 2, None, "PMI", "job", host, rendezvous=rendezvous, join_limit=0.1)
    return RankEnv(**(vars(env) | {"secret": secret}))


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home and a folder for what is passing, of the test's own; return where they are."""
    (tmp_path / "home").mkdir()
    (tmp_path / "passing").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "passing"))
    return tmp_path


@pytest.mark.parametrize(
    ("rendezvous", "host"),
    [
        ("local:{}/meet", ""),
        ("", "127.0.0.1"),
        ("127.0.0.1:{port}", ""),
        ("localhost:{port}", "node7"),
    ],
)
def test_ranks_of_one_machine_meet_where_no_other_machine_comes(
    folders: Path, rendezvous: str, host: str
) -> None:
    env = of(0, rendezvous.format(folders, port=free_port()), host)
    listener, secret = places.listen(env)
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        found = places.look(env)
        assert (found.port, found.secret) == (listener.getsockname()[1], secret)


def test_rank_0_listens_at_the_one_address_that_is_named() -> None:
    with places.listen(of(0, f"127.0.0.2:{free_port()}"))[0] as listener:
        assert listener.getsockname()[0] == "127.0.0.2"


def test_rank_0_listens_everywhere_where_its_name_stands_for_itself_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostbyname", lambda name: "127.0.1.1")
    with places.listen(of(0, f"node7:{free_port()}", secret=SECRET))[0] as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


def test_ranks_of_several_machines_meet_by_a_file_in_the_home_that_they_share(
    folders: Path,
) -> None:
    env = of(0, host="node7")
    listener, secret = places.listen(env)
    with listener:
        (file,) = (folders / "home/.cache/cpufree").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert not listener.getsockname()[0].startswith("127.")
        assert places.look(env).secret == secret
        places.forget(env)
        assert not file.exists()


def test_secrets_are_new_for_each_meeting() -> None:
    found = []
    for _ in range(2):
        listener, secret = places.listen(of(0, host="127.0.0.1"))
        listener.close()
        found.append(secret)
    assert found[0] != found[1]
    assert min(map(len, found)) >= 32


def test_an_address_and_a_secret_need_no_file(folders: Path) -> None:
    env = of(0, f"127.0.0.1:{free_port()}", secret=SECRET)
    with places.listen(env)[0]:
        assert [*(folders / "home").iterdir(), *(folders / "passing").iterdir()] == []
    assert places.look(env).secret == SECRET.encode()


def test_a_secret_of_the_environment_is_not_written_down(folders: Path) -> None:
    env = of(0, f"file:{folders}/meet", secret=SECRET)
    with places.listen(env)[0]:
        assert SECRET not in (folders / "meet").read_text()
        assert places.look(env).secret == SECRET.encode()


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_file_that_others_can_read_or_write_is_not_trusted(folders: Path, mode: int) -> None:
    env = of(0, f"file:{folders}/meet")
    with places.listen(env)[0]:
        (folders / "meet").chmod(mode)
        with pytest.raises(places.NotAnnounced, match="is not this user's alone"):
            places.look(env)


def test_a_file_of_another_user_is_not_trusted(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = of(0, f"file:{folders}/meet")
    with places.listen(env)[0]:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        with pytest.raises(places.NotAnnounced, match="mode 0600"):
            places.look(env)


def test_a_link_that_another_user_may_have_made_is_not_followed(folders: Path) -> None:
    with places.listen(of(0, f"file:{folders}/meet"))[0]:
        (folders / "link").symlink_to(folders / "meet")
        with pytest.raises(OSError, match="link"):
            places.look(of(1, f"file:{folders}/link"))


def test_a_folder_that_another_user_may_have_made_is_refused(folders: Path) -> None:
    folder = folders / "passing" / f"cpufree-{os.geteuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(RankFailedError, match="is not this user's alone"):
        places.listen(of(0, host="127.0.0.1"))


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 4000, json.dumps({"secret": "x"})])
def test_a_file_without_sense_is_none_of_rank_0(folders: Path, text: str) -> None:
    file = folders / "meet"
    file.touch(0o600)
    file.write_text(text)
    with pytest.raises(places.NotAnnounced):
        places.look(of(1, f"file:{file}"))


def test_who_finds_no_file_is_told_what_to_set() -> None:
    with contextlib.ExitStack() as stack, pytest.raises(RankFailedError) as told:
        meeting.connect(of(1, host="node7"), "1", stack)
    assert "CPUFREE_RENDEZVOUS=HOST:PORT and CPUFREE_SECRET" in str(told.value)
    assert "is not there, which rank 0 writes" in str(told.value)


def test_a_run_without_a_name_is_told_to_take_one() -> None:
    with contextlib.ExitStack() as stack, pytest.raises(InvalidInputError, match="CPUFREE_JOB"):
        meeting.connect(RankEnv(1, 2, None, "PMI", ""), "1", stack)


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    values = {"CPUFREE_RANK": "0", "CPUFREE_RANKS": "2", "CPUFREE_SECRET": "hunter2"}
    with pytest.raises(InvalidInputError, match="has 7 characters, which can be guessed"):
        RankEnv.read(values)


def test_ranks_meet_by_a_secret_of_the_environment(place: str) -> None:
    ended = team("talk", place, CPUFREE_SECRET=SECRET)
    assert [end.out for end in ended] == ["talked\n"] * 3


def test_a_rank_with_another_secret_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting._enter, "__defaults__", (PATIENCE,))
    with hub(2) as (_, (host, port)), contextlib.ExitStack() as stack:
        other = of(1, f"{host}:{port}", secret=SECRET)
        with pytest.raises(RankFailedError, match="it has hung up: it is not of this job"):
            meeting.connect(other, "1", stack)
