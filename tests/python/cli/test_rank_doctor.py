"""cpufree doctor --distributed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ranks_here import launched

from cpufree.cli import rank_commands, rank_doctor
from cpufree.cli.doctor import Finding, Status
from cpufree.engines import in_processes, remote
from cpufree.errors import UnsupportedError


def test_ranks_are_listed_and_an_engine_is_tried_across_them(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    ended = launched("doctor", "--distributed", "--json", str(file), ranks=2)
    assert ended.code == 0, ended
    report = json.loads(file.read_text())
    names = [finding["name"] for finding in report["ranks"]]
    assert names == ["launcher", "rank 0", "rank 1", "a round of all ranks"]
    engine, litmus = report["engine across ranks"]
    assert engine["status"] == "ok"
    assert "on 2 ranks" in engine["detail"]
    assert litmus["status"] == "note" and "not tried" in litmus["detail"]


def test_a_process_that_was_started_alone_is_told_how_to_start_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CPUFREE_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    (section,) = rank_doctor.examine()
    assert section.findings[0].status is Status.NOTE
    assert "cpufree run -n 2 doctor --distributed" in section.findings[0].hint


def litmus(monkeypatch: pytest.MonkeyPatch, nodes: int, wrong: int, hosts: int = 2) -> Finding:
    """Return what the doctor says of two ranks whose litmus test finds this."""
    seen = {"nodes": nodes, "messages": 6400, "wrong": wrong}
    team: Any = SimpleNamespace(rank=0, size=2, size_here=2 // hosts)
    team.tell_all = lambda what, facts: [facts, facts]
    core = SimpleNamespace(litmus=lambda *_: seen)
    monkeypatch.setattr(rank_commands, "choose_engine", lambda _: "nccl")
    monkeypatch.setattr(remote.Library, "find_kernels", lambda _: "_nccl.fatbin")
    monkeypatch.setattr(in_processes, "choose_gpu", lambda *_: (SimpleNamespace(index=0), []))
    monkeypatch.setattr(remote, "prepare", lambda *_: "libnccl.so.2")
    monkeypatch.setattr(rank_doctor, "load_for", lambda _: core)
    return rank_doctor.litmus_finding(team)


def test_what_the_litmus_test_between_nodes_finds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CPUFREE_NODE_SIZE", raising=False)
    assert "all ranks are on one machine" in litmus(monkeypatch, 1, 0, hosts=1).detail
    assert "all GPUs reach one another" in litmus(monkeypatch, 1, 0).detail
    good, bad = litmus(monkeypatch, 2, 0), litmus(monkeypatch, 2, 5)
    assert good.status is Status.OK and "6400 messages between 2 nodes" in good.detail
    assert bad.status is Status.FAILED and "5 values were not there" in bad.detail
    monkeypatch.setenv("CPUFREE_NODE_SIZE", "1")
    imitated = litmus(monkeypatch, 2, 0, hosts=1)
    assert imitated.status is Status.OK and "without a network" in imitated.detail


@pytest.mark.parametrize(
    ("loads", "engine"),
    [(("nvshmem", "nccl"), "nvshmem"), (("nccl",), "nccl"), ((), "nvshmem")],
)
def test_ranks_take_the_library_that_all_of_them_have(
    monkeypatch: pytest.MonkeyPatch, loads: tuple[str, ...], engine: str
) -> None:
    def version(kind: remote.Library, _: str = "") -> str:
        if kind.engine not in loads:
            raise UnsupportedError("it does not load")
        return "3.4.5"

    monkeypatch.setattr(remote.Library, "version", version)
    team: Any = SimpleNamespace(tell_all=lambda what, facts: [facts, facts])
    assert remote.choose(team) == engine


def test_a_library_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done = SimpleNamespace(stdout=b"[2, 27, 7]", stderr=b"", returncode=0)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: done)
    with pytest.raises(UnsupportedError, match=r"is NCCL 2\.27\.7, which lacks .* of 2\.28"):
        remote.NCCL.version("old.so")
