"""Ranks that end before all have come, and how long the others wait."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ranks_here import PROGRAM, launch_pair, launched

from cpufree.distributed import ends, launch
from cpufree.env import for_rank


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_ends_before_it_has_come_is_told_to_the_others(rank: int) -> None:
    program = (
        f"import os, runpy, sys; os.environ['CPUFREE_RANK'] == '{rank}' and sys.exit(0); "
        f"sys.argv = [{str(PROGRAM)!r}, 'talk']; sys.path.insert(0, {str(PROGRAM.parent)!r}); "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    ended = launched(sys.executable, "-c", program, ranks=2)
    assert ended.code == 4
    assert f"failed: rank {rank} has ended with exit code 0 before all" in ended.out


def test_a_rank_that_has_failed_is_noticed_whatever_its_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "GRACE", 0.1)
    assert launch_pair(lambda rank: "sys.exit(3)" if rank == 1 else "time.sleep(600)") == 3
    said = "cpufree: rank 1 has ended with exit code 3; ranks that still ran 0.1 s later are ended"
    assert capsys.readouterr().err.strip() == said


def test_how_ranks_have_ended_is_read_as_it_was_written(tmp_path: Path) -> None:
    meeting = tmp_path / "rank0"
    assert ends.read(meeting) == {}
    ends.write(meeting, {0: ends.spell(2), 3: ends.spell(-9)})
    assert ends.read(meeting) == {0: "with exit code 2", 3: "by SIGKILL"}


def test_ranks_of_our_own_launcher_may_take_their_time_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CPUFREE_JOIN_LIMIT", raising=False)
    assert for_rank(0, 2, "local:there", "job", "secret")["CPUFREE_JOIN_LIMIT"] == "60"
    monkeypatch.setenv("CPUFREE_JOIN_LIMIT", "3")
    assert for_rank(0, 2, "local:there", "job", "secret")["CPUFREE_JOIN_LIMIT"] == "3"
