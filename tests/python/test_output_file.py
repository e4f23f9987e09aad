"""Writing output files: whole or not at all, and never over what the name stands for."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from cpufree import output_file
from cpufree.errors import FileFormatError
from cpufree.matrix.save import save_matrix
from cpufree.output_file import Draft, require_writable, write_file, write_text


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_file_is_there_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    with write_file(path) as file:
        file.write(b"new")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), write_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_mode_of_the_old_file_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "x.txt"
    path.touch()
    path.chmod(mode)
    write_text(path, "new")
    assert (path.read_text(), mode_of(path)) == ("new", mode)


def test_draft_of_a_private_file_is_private_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.touch(0o600)
    draft = Draft(path)
    assert mode_of(Path(draft.name)) == 0o600
    draft.discard()


def test_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    write_text(tmp_path / "x.txt", "new")
    (tmp_path / "usual").touch()
    assert mode_of(tmp_path / "x.txt") == mode_of(tmp_path / "usual")


def test_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "x.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert list((tmp_path / "there").iterdir()) == [target]


def test_link_that_leads_nowhere_gets_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "new.txt")
    write_text(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "new.txt").read_text() == "new"


def test_two_drafts_of_one_file_have_different_names(tmp_path: Path) -> None:
    one, two = Draft(tmp_path / "x"), Draft(tmp_path / "x")
    assert one.name != two.name
    one.discard()
    two.discard()
    assert list(tmp_path.iterdir()) == []


def test_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "A.npz"
    os.mkfifo(pipe)
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()), daemon=True)
    reader.start()
    save_matrix(pipe, np.eye(3))  # a format that is written with seeks
    reader.join(120)
    assert seen[0][:2] == b"PK"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_pipe_from_which_nobody_reads_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(output_file, "READER_LIMIT", 0.05)
    with pytest.raises(FileFormatError, match="cannot be written: the pipe has no reader"):
        write_text(tmp_path / "pipe", "text")


def test_device_is_written_into_and_stays() -> None:
    write_text("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_ranks_do_not_replace_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe or device"):
        Draft(tmp_path / "pipe")


def test_look_at_whether_a_file_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    require_writable(tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        require_writable(tmp_path / "nowhere" / "x.txt")
    with pytest.raises(IsADirectoryError):
        require_writable(tmp_path)


def test_name_with_a_nul_byte_is_refused() -> None:
    with pytest.raises(FileFormatError, match="null byte"):
        write_text("a\0b", "text")
